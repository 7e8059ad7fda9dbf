/** Requests that drive their lanes, and the lanes that nobody drives. */
import { describe, expect, it } from "vitest";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";
import { drive } from "./drive.ts";

/**
 * Drives one event after the other, so that each turn accepts one and has one to claim: it is begun while the worker is paused, or
 * the first would be leased as it is accepted. Does `meanwhile` along the way.
 */
async function underTraffic(bench: Bench, meanwhile: () => void): Promise<readonly { readonly refused: number }[]> {
  bench.worker.pause();
  const first = await bench.accept("traffic");
  bench.worker.resume();
  const told = [drive(bench, first)];
  for (let count = 0; count < 100; count++) {
    told.push(drive(bench, await bench.accept(`traffic${count}`)));
    if (count === 10) meanwhile();
  }
  return told;
}

describe("Worker.drive()", () => {
  it("does not keep a running worker from other lanes", async () => {
    const slow = deferred();
    const seen: string[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        seen.push(ctx.meta.lane.messageId);
        return ctx.meta.lane.messageId === "driven" ? slow.promise : undefined;
      });
    const bench = await openBench({ register });
    const driven = await bench.accept("driven");
    drive(bench, driven);
    await bench.accept("other");
    bench.worker.start();
    await rounds();
    expect(seen.toSorted()).toEqual(["driven", "other"]);
  });

  it("does not keep a drain from ending", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    const gap = await bench.accept("gap", 2);
    await bench.accept("other");
    const drained = bench.worker.drain({});
    drive(bench, gap);
    expect(await drained).toEqual({ claimed: 1, complete: true });
  });

  it("notices a lane of another message accepted in the same turn", async () => {
    const slow = deferred();
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => (ctx.meta.lane.messageId === "driven" ? slow.promise : undefined));
    const bench = await openBench({ register });
    const driven = await bench.accept("driven");
    bench.worker.start();
    // One turn claims the driven lane, accepts the other, and may not lease it.
    drive(bench, driven);
    await Promise.all([bench.accept("other")]);
    await rounds();
    expect((await bench.lane("other")).events[0]?.outcome).toBe("handled");
  });

  it("keeps no lane that becomes ready by itself waiting while deliveries come, each of which is driven (I9)", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        if (ctx.meta.lane.messageId === "retry" && ctx.attempt === 1) throw new Error("once");
      });
    const bench = await openBench({ register });
    bench.worker.start();
    await bench.accept("retry");
    await rounds();
    const told = await underTraffic(bench, () => bench.clock.set(bench.clock.now() + 60_000));
    expect((await bench.lane("retry")).events[0]?.state).toBe("done");
    await rounds();
    expect(told.filter(({ refused }) => refused > 0)).toEqual([]);
    await bench.expectNothingLeaked();
  });

  it("keeps no lane that becomes ready by itself waiting while requests take every place (I9)", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        if (ctx.meta.lane.messageId === "retry" && ctx.attempt === 1) throw new Error("once");
        return new Promise<void>((resolve) => bench.clock.setTimeout(resolve, 1_000));
      });
    const bench: Bench = await openBench({ register, worker: { concurrency: 1 } });
    bench.worker.start();
    await bench.accept("retry");
    await rounds();
    for (const acceptance of await bench.acceptMany(3, "driven")) drive(bench, acceptance);
    for (let count = 0; count < 12; count++) {
      drive(bench, await bench.accept(`traffic${count}`));
      await bench.clock.advance(1_000);
    }
    expect((await bench.lane("retry")).events[0]?.state).toBe("done");
    expect((await bench.lane("traffic11")).events[0]?.state).toBe("pending");
  });

  it("keeps no drain from its work and its end while deliveries come, each of which is driven", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    await bench.acceptMany(3, "waiting");
    let result: unknown = null;
    await underTraffic(bench, () => {
      void bench.worker.drain({}).then((drained) => {
        result = drained;
      });
    });
    expect(result).toMatchObject({ complete: true });
    expect((await bench.states()).slice(0, 3)).toEqual(Array(3).fill("handled"));
  });
});

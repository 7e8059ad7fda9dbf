/** Requests that drive their lanes, and the lanes that nobody drives. */
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { type Bench, deferred, ENDS, openBench, rounds, startBench } from "./bench.ts";

/**
 * Drives one event after the other, so that each turn accepts one and has one to claim: it is begun while the worker is paused, or
 * the first would be leased as it is accepted. Does `meanwhile` along the way.
 */
async function underTraffic(bench: Bench, meanwhile: () => void): Promise<readonly { readonly refused: number }[]> {
  bench.worker.pause();
  const first = await bench.accept("traffic");
  bench.worker.resume();
  const told = [bench.drive(first)];
  for (let count = 0; count < 100; count++) {
    told.push(bench.drive(await bench.accept(`traffic${count}`)));
    if (count === 10) meanwhile();
  }
  return told;
}

describe("Worker.claimOnDemand()", () => {
  it("handles what is before the event in its lane first (I4)", async () => {
    const seen: number[] = [];
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId)) });
    await bench.accept("a", 1);
    const told = bench.drive(await bench.accept("a", 2));
    await rounds();
    expect(seen).toEqual([1, 2]);
    expect(told.refused).toBe(0);
  });

  it("says so when the event waits for a gap, for a backoff, or behind a failure, or is done", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        if (ctx.meta.lane?.startsWith("b")) throw new Error("down");
      });
    const bench = await openBench({ register });
    const gap = bench.drive(await bench.accept("a", 2));
    const failing = await bench.accept("b");
    const first = bench.drive(failing);
    await rounds();
    expect([gap.refused, first.refused]).toEqual([1, 0]);
    expect(bench.endings).toEqual([[2, "retry"]]);
    const backoff = bench.drive(failing);
    await rounds();
    expect(backoff.refused).toBe(1);
    const done = await bench.accept("c");
    bench.drive(done);
    await rounds();
    const again = bench.drive(done);
    await rounds();
    expect(again.refused).toBe(1);
    await bench.accept("bad", 1);
    const behind = bench.drive(await bench.accept("bad", 2));
    await rounds();
    expect(behind.refused).toBe(1);
  });

  it("says so when the turn fails", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    const acceptance = await bench.accept("a");
    bench.recorder.failNextTurns = 1;
    const failed = bench.drive(acceptance);
    await rounds();
    expect(failed.refused).toBe(1);
    bench.drive(acceptance);
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("claims a lane whose lease expired when nothing else would, and only that lane (RCV-3)", async () => {
    const hung = new Promise(() => {});
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const before = await openBench({ store, clock, register: (on) => on.onAny(() => hung) });
    const [crashed] = await Promise.all([before.accept("crashed"), before.accept("crashed too")]);
    for (const acceptance of await Promise.all([crashed, before.accept("crashed too")])) before.drive(acceptance);
    await rounds();
    await store.close();
    const bench = await openBench({ store, clock, register: (on) => on.onAny(() => {}) });
    const told = bench.drive(crashed);
    await rounds();
    expect(told.refused).toBe(0);
    expect(await bench.states()).toEqual(["handled", "pending"]);
  });

  it("joins what runs already, and waits behind it for a later event", async () => {
    const gate = deferred();
    const seen: number[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        seen.push(ctx.meta.eventId);
        await gate.promise;
      });
    const bench = await openBench({ register });
    const first = await bench.accept("a", 1);
    const told = [bench.drive(first)];
    await rounds();
    told.push(bench.drive(first));
    const second = await bench.accept("a", 2);
    told.push(bench.drive(second), bench.drive(second));
    await rounds();
    expect(seen).toEqual([1]);
    gate.resolve();
    await rounds();
    expect(seen).toEqual([1, 2]);
    expect(told.map(({ refused }) => refused)).toEqual([0, 0, 0, 0]);
    expect(bench.endings).toEqual([
      [1, "done"],
      [2, "done"],
    ]);
  });

  it("joins what a claim that was under way has leased meanwhile (I10)", async () => {
    const inner = memoryStore({ volatile: true });
    const store = { ...inner, capabilities: { ...inner.capabilities, parallelTurns: true } };
    const [handler, slowTurn] = [deferred(), deferred()];
    const bench = await openBench({ store, register: (on) => on.onAny(() => handler.promise) });
    bench.worker.start();
    await rounds();
    bench.recorder.gate = slowTurn.promise;
    bench.groupCommit.settle(ENDS.effects, () => {});
    await rounds();
    bench.recorder.gate = null;
    const told = bench.drive(await bench.accept("a"));
    slowTurn.resolve();
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    handler.resolve();
    await rounds();
    expect([told.refused, bench.endings]).toEqual([0, [[1, "done"]]]);
  });

  it("joins what a running worker claims as it settles the event before", async () => {
    const gate = deferred();
    const bench = await startBench(() => gate.promise);
    await bench.accept("a", 1);
    const told = bench.drive(await bench.accept("a", 2));
    await rounds();
    gate.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled"]);
    expect(told.refused).toBe(0);
  });

  it("waits behind an event whose claim is under way", async () => {
    const [handler, claim] = [deferred(), deferred()];
    const bench = await openBench({ register: (on) => on.onAny(() => handler.promise) });
    const [first, second] = await Promise.all([bench.accept("a", 1), bench.accept("a", 2)]);
    bench.recorder.gate = claim.promise;
    const told = [bench.drive(first)];
    await rounds();
    told.push(bench.drive(second));
    claim.resolve();
    await rounds();
    handler.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled"]);
    expect(told.map(({ refused }) => refused)).toEqual([0, 0]);
  });

  it("keeps what waits for a place while another turn claims nothing", async () => {
    const gate = deferred();
    const bench = await openBench({ register: (on) => on.onAny(() => gate.promise), worker: { concurrency: 1 } });
    for (const acceptance of await bench.acceptMany(2)) bench.drive(acceptance);
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(2);
    await bench.accept("other");
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(2);
    gate.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled", "pending"]);
  });
});

describe("Worker.claimOnDemand() and other lanes", () => {
  it("does not keep a drain from ending", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    const gap = await bench.accept("gap", 2);
    await bench.accept("other");
    const drained = bench.worker.drain({});
    bench.drive(gap);
    expect(await drained).toEqual({ claimed: 1, complete: true });
  });

  it("notices a lane of another message accepted in the same turn", async () => {
    const slow = deferred();
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => (ctx.meta.lane === "driven" ? slow.promise : undefined));
    const bench = await openBench({ register });
    const driven = await bench.accept("driven");
    bench.worker.start();
    // One turn claims the driven lane, accepts the other, and may not lease it.
    bench.drive(driven);
    await Promise.all([bench.accept("other")]);
    await rounds();
    expect((await bench.lane("other")).events[0]?.outcome).toBe("handled");
  });

  it("keeps no lane that becomes ready by itself waiting while deliveries come, each of which is driven (I9)", async () => {
    const bench = await startBench((_, ctx) => {
      if (ctx.meta.lane === "retry" && ctx.attempt === 1) throw new Error("once");
    });
    await bench.accept("retry");
    await rounds();
    const told = await underTraffic(bench, () => bench.clock.set(bench.clock.now() + 60_000));
    expect((await bench.lane("retry")).events[0]?.state).toBe("done");
    await rounds();
    expect(told.filter(({ refused }) => refused > 0)).toEqual([]);
    await bench.expectNothingLeaked();
  });

  it("keeps no lane that becomes ready by itself waiting while requests take every place (I9)", async () => {
    const bench: Bench = await startBench(
      (_, ctx) => {
        if (ctx.meta.lane === "retry" && ctx.attempt === 1) throw new Error("once");
        return new Promise<void>((resolve) => bench.clock.setTimeout(resolve, 1_000));
      },
      { worker: { concurrency: 1 } },
    );
    await bench.accept("retry");
    await rounds();
    for (const acceptance of await bench.acceptMany(3, "driven")) bench.drive(acceptance);
    for (let count = 0; count < 12; count++) {
      bench.drive(await bench.accept(`traffic${count}`));
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

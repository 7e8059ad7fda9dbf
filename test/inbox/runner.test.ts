import { describe, expect, it } from "vitest";
import { PermanentError } from "../../src/errors.ts";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";

describe("the run of an event", () => {
  it("calls handlers in order and restarts at the first after a failure", async () => {
    const calls: string[] = [];
    const bench = await openBench({
      register: (on) => {
        on.onAny(() => void calls.push("first"));
        on.onAny(async () => void calls.push("second"));
        on.on("message.sent", (_, ctx) => {
          calls.push("third");
          if (ctx.attempt === 1) throw new Error("x");
        });
        on.onAny(() => void calls.push("fourth"));
      },
    });
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(1_000);
    expect(calls).toEqual(["first", "second", "third", "first", "second", "third", "fourth"]);
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("waits for each handler before the next", async () => {
    const calls: string[] = [];
    const slowly = (name: string) => async () => {
      calls.push(`${name} begins`);
      await rounds(3);
      calls.push(`${name} ends`);
    };
    const bench = await openBench({
      register: (on) => {
        on.onAny(slowly("first"));
        on.onAny(slowly("second"));
      },
    });
    await bench.accept("a");
    await bench.worker.drain({});
    expect(calls).toEqual(["first begins", "first ends", "second begins", "second ends"]);
  });

  it("does not call further handlers after the time-out", async () => {
    const calls: string[] = [];
    const bench: Bench = await openBench({
      register: (on) => {
        on.onAny(() => new Promise<void>((resolve) => bench.clock.setTimeout(resolve, 2_000)));
        on.onAny(() => void calls.push("second"));
      },
      ...{ handlerTimeoutMs: 1_000, worker: { maxAttempts: 1 } },
    });
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(60_000);
    expect(calls).toEqual([]);
    expect(bench.dead).toMatchObject([{ code: "handler_timeout" }]);
    const message = "A handler took longer than handlerTimeoutMs (1000 ms).";
    expect(bench.failures).toMatchObject([{ error: { code: "handler_timeout", message } }]);
  });

  it("has one end, however late a handler returns (I3)", async () => {
    const late = deferred();
    const bench = await openBench({
      register: (on) => on.onAny(() => late.promise),
      ...{ handlerTimeoutMs: 1_000, worker: { maxAttempts: 1 } },
    });
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(31_000);
    expect(bench.endings).toEqual([[1, "dead"]]);
    late.resolve();
    await rounds();
    expect(bench.endings).toEqual([[1, "dead"]]);
    expect(bench.recorder.turns.flatMap((turn) => turn.settles)).toHaveLength(1);
  });

  it("completes an event that nobody takes as unhandled (I10)", async () => {
    const bench = await openBench({ register: (on) => on.on("message.failed", () => {}) });
    await bench.accept("a");
    await bench.worker.drain({});
    expect(await bench.states()).toEqual(["unhandled"]);
  });

  it("gives late events to onLate only, and their replay to the ordinary handlers (RCV-7)", async () => {
    const seen: string[] = [];
    const note = (handler: string) => (_: unknown, ctx: { replay: boolean; outOfOrder: boolean; missing: unknown }) =>
      void seen.push(`${handler} ${ctx.replay ? "replay" : "first"} ${ctx.outOfOrder} ${JSON.stringify(ctx.missing)}`);
    const bench = await openBench({
      register: (on) => {
        on.onAny(note("any"));
        on.onLate(note("late"));
      },
    });
    bench.worker.start();
    await bench.accept("a", 2, { gapWaitMs: 0 });
    await rounds();
    const late = await bench.accept("a", 1);
    await rounds();
    expect(late.outcome).toBe("late");
    expect(seen).toEqual(['any first false {"from":1,"to":1}', "late first true null"]);
    await bench.recorder.store.act({ kind: "replay", event: 2 }, "test");
    bench.groupCommit.poke();
    await rounds();
    expect(seen[2]).toBe("any replay true null");
    expect(await bench.states()).toEqual(["handled", "handled"]);
  });

  it("parses the stored bytes when the event was claimed later than accepted", async () => {
    const texts: unknown[] = [];
    const bench = await openBench({
      register: (on) => on.on("message.sent", (event) => void texts.push(event.data.to)),
    });
    await bench.accept("a");
    await bench.worker.drain({});
    bench.worker.start();
    await bench.accept("b");
    await rounds();
    expect(texts).toEqual(["+15550100002", "+15550100002"]);
  });

  it("dead-letters a stored body that is no event any more", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    await bench.accept("a", 1, { raw: Buffer.from('{"eventType":"message.read"}') });
    const sound = bench.recorder.store;
    const step = sound.step;
    Object.assign(sound, {
      step: async (turn: Parameters<typeof step>[0]) => {
        const result = await step(turn);
        return { ...result, leases: result.leases.map((lease) => ({ ...lease, raw: Buffer.from("no event") })) };
      },
    });
    await bench.worker.drain({});
    expect(await bench.states()).toEqual(["dead"]);
    expect(bench.dead).toMatchObject([{ attempts: 1, code: "permanent_failure" }]);
    const error =
      "The stored body is not an event for this version of oncehook, although it was accepted as one. Replay it after an upgrade.";
    expect((await bench.lane("a")).attempts).toMatchObject([{ error }]);
  });

  it("says that PermanentErrors of an async handler are final", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => Promise.reject(new PermanentError("no"))) });
    await bench.accept("a");
    await bench.worker.drain({});
    expect(await bench.states()).toEqual(["dead"]);
  });

  it("fails with effects on a store without transactions, naming one that has them", async () => {
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => ctx.commit(() => {})) });
    await bench.accept("a");
    await bench.worker.drain({});
    expect((await bench.lane("a")).attempts).toMatchObject([
      { errorCode: "effects_unsupported", error: expect.stringContaining("sqliteStore") },
    ]);
  });
});

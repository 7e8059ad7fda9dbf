import { describe, expect, it } from "vitest";
import { type Bench, deferred, openBench, rounds, startBench } from "./bench.ts";

describe("the run of an event", () => {
  it("calls handlers one after the other and restarts at the first after a failure", async () => {
    const calls: string[] = [];
    const bench = await openBench({
      register: (on) => {
        on.onAny(() => void calls.push("first"));
        on.onAny(async () => {
          await rounds(3);
          calls.push("second");
        });
        on.on("message.sent", (_, ctx) => {
          calls.push("third");
          if (ctx.attempt === 1) throw new Error("x");
        });
        on.onAny(() => void calls.push("fourth"));
      },
    });
    bench.worker.start();
    await bench.accept("a");
    await rounds();
    await bench.clock.advance(1_000);
    await rounds();
    expect(calls).toEqual(["first", "second", "third", "first", "second", "third", "fourth"]);
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("aborts the signal at handlerTimeoutMs, and retries at the end of the grace (I3)", async () => {
    let aborted = 0;
    const bench: Bench = await openBench({
      register: (on) =>
        on.onAny((_, ctx) => {
          ctx.signal.addEventListener("abort", () => {
            aborted = bench.clock.now() - start;
          });
          return new Promise(() => {});
        }),
      handlerTimeoutMs: 8_000,
    });
    const start = bench.clock.now();
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(37_999);
    expect(aborted).toBe(8_000);
    expect((await bench.lane("a")).status).toBe("leased");
    await bench.clock.advance(1);
    expect(await bench.lane("a")).toMatchObject({ status: "backoff", attempts: [{ errorCode: "handler_timeout" }] });
    await bench.clock.advance(0);
    expect(bench.endings).toEqual([[1, "retry"]]);
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
    await bench.clock.advance(2_000);
    await rounds();
    // It returned within the grace.
    expect(bench.endings).toEqual([[1, "dead"]]);
    await bench.clock.advance(60_000);
    expect(calls).toEqual([]);
    expect(bench.dead).toMatchObject([{ code: "handler_timeout" }]);
    const message = "A handler took longer than handlerTimeoutMs (1000 ms).";
    expect(bench.failures).toMatchObject([{ error: { code: "handler_timeout", message } }]);
  });

  it("has one end, however late a handler returns (I3)", async () => {
    const late = deferred();
    const bench = await startBench(() => late.promise, { ...{ handlerTimeoutMs: 1_000, worker: { maxAttempts: 1 } } });
    await bench.accept("a");
    await bench.clock.advance(31_000);
    expect(bench.endings).toEqual([[1, "dead"]]);
    late.resolve();
    await rounds();
    expect(bench.endings).toEqual([[1, "dead"]]);
    expect(bench.recorder.turns.flatMap((turn) => turn.settles)).toHaveLength(1);
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

  it("fails with effects on a store without transactions, naming one that has them", async () => {
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => ctx.commit(() => {})) });
    await bench.accept("a");
    await bench.worker.drain({});
    expect((await bench.lane("a")).attempts).toMatchObject([
      { errorCode: "effects_unsupported", error: expect.stringContaining("sqliteStore") },
    ]);
  });
});

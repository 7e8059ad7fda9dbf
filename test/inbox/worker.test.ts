import { describe, expect, it } from "vitest";
import { type Bench, openBench, rounds, startBench } from "./bench.ts";
import { slowHandlers } from "./slow-handlers.ts";

describe("Worker", () => {
  it("handles events as they come, and a message's in ascending sequence (RCV-7, I4)", async () => {
    const seen: string[] = [];
    const bench = await startBench(
      (_, ctx) => void seen.push(`${ctx.meta.lane}/${ctx.identity.length}/${ctx.attempt}`),
    );
    await Promise.all([bench.accept("a", 2), bench.accept("a", 1), bench.accept("b", 1)]);
    await bench.clock.advance(0);
    expect(await bench.states()).toEqual(["handled", "handled", "handled"]);
    expect((await bench.lane("a")).cursor).toBe(2);
    expect(seen.toSorted()).toEqual(["a/64/1", "a/64/1", "b/64/1"]);
    await bench.expectNothingLeaked();
  });

  it("runs `concurrency` handlers at most, and one event of a lane at a time (I3)", async () => {
    const slow = slowHandlers();
    const bench = await startBench(slow.handler, { worker: { concurrency: 2 } });
    await Promise.all([bench.accept("a", 1), bench.accept("a", 2), bench.accept("b"), bench.accept("c")]);
    await bench.clock.advance(0);
    expect(slow.running()).toBe(2);
    await slow.endEach(6, () => bench.clock.advance(0));
    expect(slow.most()).toBe(2);
    await bench.expectAllHandled(4);
  });

  it("gives fresh events three of four slots while older ones wait, and neither starves", async () => {
    const slow = slowHandlers();
    const started: (string | null)[] = [];
    const bench = await openBench({
      register: (on) =>
        on.onAny((_, ctx) => {
          started.push(ctx.meta.lane);
          return slow.handler();
        }),
      worker: { concurrency: 1 },
      handlerTimeoutMs: 3_600_000,
    });
    await bench.acceptMany(40, "old");
    await bench.clock.advance(120_000);
    bench.worker.start();
    await bench.clock.advance(0);
    await bench.acceptMany(40, "fresh");
    for (let round = 0; round < 40; round++) {
      await bench.clock.advance(1_000);
      slow.endOne();
      await rounds();
    }
    const fresh = started.slice(1, 41).filter((lane) => lane?.startsWith("fresh")).length;
    expect([started.length, fresh]).toEqual([41, 30]);
  });

  it("claims the oldest first while none waits for long, as ever", async () => {
    const started: (string | null)[] = [];
    const register = (on: Bench["registry"]) => on.onAny((_, ctx) => void started.push(ctx.meta.lane));
    const bench = await openBench({ register, worker: { concurrency: 1 } });
    await bench.acceptMany(5);
    bench.worker.start();
    await bench.clock.advance(1_000);
    expect(started).toEqual(["m0", "m1", "m2", "m3", "m4"]);
    expect(bench.recorder.turns.filter(({ claim }) => claim.fresh !== undefined)).toEqual([]);
  });

  it("asks for no turns while every place is taken and lanes wait", async () => {
    const slow = slowHandlers();
    const bench = await startBench(slow.handler, { worker: { concurrency: 1 } });
    await bench.acceptMany(4);
    await bench.accept("m4");
    await rounds();
    const turns = bench.recorder.turns.length;
    // A turn asked for by each turn would never let this end.
    await Promise.race([bench.clock.advance(1_000), rounds(2_000)]);
    expect(bench.recorder.turns.length - turns).toBeLessThan(3);
    await slow.endEach(5);
    expect(await bench.states()).toEqual(Array(5).fill("handled"));
  });

  it.each([
    ["started, as they come", "start"],
    ["started, with a backlog", "backlog"],
    ["drained", "drain"],
  ])("holds bodies of 16 MiB and one more at most, and handles all: %s", async (_, way) => {
    const slow = slowHandlers();
    const bench = await openBench({ register: (on) => on.onAny(slow.handler), worker: { concurrency: 30 } });
    if (way === "start") bench.worker.start();
    const large = { body: { note: "x".repeat(1_500_000) } };
    await Promise.all(Array.from({ length: 30 }, (_, index) => bench.accept(`m${index}`, 1, large)));
    await bench.clock.advance(0);
    if (way === "backlog") bench.worker.start();
    const drained = way === "drain" ? bench.worker.drain({}) : null;
    await bench.clock.advance(0);
    expect(slow.running()).toBe(12);
    await slow.endEach(30, () => bench.clock.advance(0));
    expect([slow.most(), await bench.states()]).toEqual([12, Array(30).fill("handled")]);
    expect(await drained).toEqual(drained === null ? null : { claimed: 30, complete: true });
    await bench.expectNothingLeaked();
  });

  it("runs 10,000 handlers that return at once without overflowing the stack", async () => {
    let handled = 0;
    const register = (on: Bench["registry"]) => on.onAny(() => void handled++);
    const bench = await openBench({ register, batch: { maxQueued: 20_000 }, worker: { concurrency: 10_000 } });
    await bench.acceptMany(10_000);
    await bench.worker.drain({});
    expect(handled).toBe(10_000);
    expect(bench.recorder.outstanding.size).toBe(0);
    expect(bench.recorder.doubled).toEqual([]);
  });

  it("wakes exactly when a backoff ends", async () => {
    const attempts: number[] = [];
    const bench: Bench = await startBench((_, ctx) => {
      attempts.push(bench.clock.now());
      if (ctx.attempt < 3) throw new Error("not yet");
    });
    const start = bench.clock.now();
    await bench.accept("a");
    await bench.clock.advance(60_000);
    expect(attempts.map((at) => at - start)).toEqual([0, 1_000, 6_000]);
    expect(await bench.states()).toEqual(["handled"]);
    expect(bench.failures.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(bench.endings.map(([, ending]) => ending)).toEqual(["retry", "retry", "done"]);
  });

  it("asks again a second later when the store does not say what is next", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    bench.recorder.nextDueGate = Promise.reject(new Error("no answer"));
    bench.recorder.nextDueGate.catch(() => {});
    bench.worker.start();
    await bench.accept("a", 2);
    await rounds();
    bench.recorder.nextDueGate = null;
    await bench.clock.advance(90_000);
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("looks again a second after a turn that failed", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    await bench.accept("a");
    bench.recorder.failNextTurns = 1;
    bench.worker.start();
    await bench.clock.advance(999);
    expect(await bench.states()).toEqual(["pending"]);
    await bench.clock.advance(1);
    expect(await bench.states()).toEqual(["handled"]);
    const message = "The inbox could not be written; deliveries that were not stored are answered with 503.";
    expect(bench.lines).toContainEqual({
      level: "error",
      fields: expect.objectContaining({ code: "Error", error: "Error" }),
      message,
    });
  });

  it("wakes when the store says that another process made a lane due, until it stops", async () => {
    const { memoryStore } = await import("../../src/stores/memory.ts");
    let wake: (() => void) | null = null;
    const onWake = (listener: () => void) => {
      wake = listener;
      return () => {
        wake = null;
      };
    };
    const bench = await startBench(() => {}, { store: { ...memoryStore({ volatile: true }), onWake } });
    await rounds();
    const turns = bench.recorder.turns.length;
    (wake as (() => void) | null)?.();
    await rounds();
    expect(bench.recorder.turns.length).toBe(turns + 1);
    await bench.worker.stop(0);
    expect(wake).toBeNull();
  });
});

describe("failures of handlers", () => {
  const throws = (thrown: unknown) => () => {
    throw thrown;
  };
  it.each<[string, () => unknown, string]>([
    ["throws", throws(new Error("boom")), "Error"],
    ["rejects", () => Promise.reject(new TypeError("boom")), "TypeError"],
    ["throws null", throws(null), "thrown"],
    ["rejects with undefined", () => Promise.reject(undefined), "thrown"],
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about
    ["returns a thenable that throws", () => ({ then: throws(new RangeError("then")) }), "RangeError"],
  ])("are retried when a handler %s, and the worker goes on", async (_, fail, code) => {
    let calls = 0;
    const bench = await startBench(() => (++calls === 1 ? fail() : undefined));
    await bench.accept("a");
    for (let round = 0; round < 20; round++) await bench.clock.advance(0);
    expect((await bench.lane("a")).attempts).toMatchObject([{ attempt: 1, errorCode: code }]);
    await bench.accept("b");
    await bench.clock.advance(1_000);
    await bench.expectAllHandled(2);
  });
});

import { describe, expect, it } from "vitest";
import { checkDrainOptions, type DrainOptions } from "../../src/inbox/claims.ts";
import { type Bench, deferred, openBench, rounds, startBench, stepElsewhere, watched } from "./bench.ts";
import { takenAhead } from "./slow-handlers.ts";

describe("checkDrainOptions()", () => {
  it.each([{}, { budgetMs: 1, limit: 1 }, { budgetMs: 86_400_000, limit: 86_400_000 }])("takes %o", (options) => {
    expect(() => checkDrainOptions(options)).not.toThrow();
  });

  it.each<[object, string]>([
    [{ budgetMs: 0 }, 'Option "budgetMs" must be a whole number from 1 to 86400000 ms; it is 0.'],
    [{ budgetMs: 86_400_001 }, 'Option "budgetMs" must be a whole number from 1 to 86400000 ms; it is 86400001.'],
    [{ limit: 0 }, 'Option "limit" must be a whole number from 1 to 86400000 events; it is 0.'],
    [{ limit: 86_400_001 }, 'Option "limit" must be a whole number from 1 to 86400000 events; it is 86400001.'],
    [{ budget: 5 }, 'drain has no option "budget". Did you mean "budgetMs"?'],
    [{ limits: 5 }, 'drain has no option "limits". Did you mean "limit"?'],
  ])("refuses %o", (options, message) => {
    expect(() => checkDrainOptions(options as DrainOptions)).toThrow(
      expect.objectContaining({ code: "invalid_option", message }),
    );
  });
});

describe("Worker.drain()", () => {
  it("handles what is ready now and says that nothing is left", async () => {
    const seen: string[] = [];
    const bench = await openBench({ register: (on) => on.onAny((event) => void seen.push(event.eventType)) });
    await bench.accept("m", 1, { eventType: "message.queued" });
    await bench.accept("m", 2);
    expect(await bench.worker.drain({})).toEqual({ claimed: 2, complete: true });
    expect(seen).toEqual(["message.queued", "message.sent"]);
    await bench.expectNothingLeaked();
  });

  it("comes to what waits behind more used-up events than one turn retires", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}), worker: { maxAttempts: 1 } });
    await bench.acceptMany(300);
    const failure = { code: "failed", message: "failed", durationMs: 1 };
    const { store } = bench.recorder;
    const { leases } = await stepElsewhere(store, { limit: 300 });
    const settles = leases.map((lease) => ({ kind: "retry" as const, lease, delayMs: 0, failure }));
    await stepElsewhere(store, { limit: 0 }, { settles });
    await bench.accept("last");
    expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: true });
    expect((await bench.states()).toSorted()).toEqual([...Array(300).fill("dead"), "handled"]);
  });

  it("handles exactly as many events as its limit", async () => {
    const seen: number[] = [];
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId)) });
    await bench.acceptMany(5);
    expect(await bench.worker.drain({ limit: 1 })).toEqual({ claimed: 1, complete: false });
    expect(seen).toEqual([1]);
    expect(await bench.worker.drain({ limit: 3 })).toEqual({ claimed: 3, complete: false });
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(await bench.worker.drain({ limit: 3 })).toEqual({ claimed: 1, complete: true });
    await bench.expectNothingLeaked();
  });

  it("gives back what it had taken ahead when its budget is over, and resolves when the rest has ended", async () => {
    const slow = deferred();
    let quick = true;
    const register = (on: Bench["registry"]) => on.onAny(() => (quick ? undefined : slow.promise));
    const bench = await openBench({ register, worker: { concurrency: 1 } });
    await bench.acceptMany(10, "quick");
    await bench.worker.drain({});
    quick = false;
    await bench.acceptMany(5, "slow");
    const drained = bench.worker.drain({ budgetMs: 1_000 });
    await rounds();
    const over = watched(drained);
    expect(bench.recorder.outstanding.size).toBe(5);
    await bench.clock.advance(1_000);
    await rounds();
    expect([bench.recorder.outstanding.size, over()]).toEqual([1, false]);
    slow.resolve();
    expect(await drained).toEqual({ claimed: 1, complete: false });
    expect((await bench.events()).map((event) => event.attempts)).toEqual([...Array(11).fill(1), 0, 0, 0, 0]);
    await bench.expectNothingLeaked();
  });

  it("takes nothing from a running worker when its budget ends", async () => {
    const { bench, slow } = await takenAhead({ quick: 10, slow: 3 }, { worker: { concurrency: 1 } });
    const drained = bench.worker.drain({ budgetMs: 1_000 });
    await bench.clock.advance(1_000);
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(3);
    await slow.endEach(3);
    expect(await drained).toMatchObject({ complete: false });
    expect(bench.endings.map(([, ending]) => ending)).toEqual(Array(13).fill("done"));
  });

  it("waits neither for gaps nor for backoffs", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny(() => {
        throw new Error("down");
      });
    const bench = await openBench({ register });
    await Promise.all([bench.accept("a", 1), bench.accept("b", 2)]);
    expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: true });
    expect([(await bench.lane("a")).status, (await bench.lane("b")).status]).toEqual(["backoff", "gap"]);
    await bench.clock.advance(1_000);
    expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: true });
  });

  it("resolves at once with nothing to do, with a paused worker, and with a stopped one", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    expect(await bench.worker.drain({})).toEqual({ claimed: 0, complete: true });
    await bench.accept("a");
    bench.worker.pause();
    expect(await bench.worker.drain({})).toEqual({ claimed: 0, complete: false });
    bench.worker.resume();
    expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: true });
  });

  it("is cut off by a pause, and resolves when what runs has ended", async () => {
    const slow = deferred();
    const bench = await openBench({ register: (on) => on.onAny(() => slow.promise), worker: { concurrency: 1 } });
    await bench.acceptMany(3);
    const drained = bench.worker.drain({});
    await rounds();
    bench.worker.pause();
    slow.resolve();
    expect(await drained).toEqual({ claimed: 1, complete: false });
    await bench.expectNothingLeaked();
  });

  it("rejects with the store's error, all that are under way; the next handles everything", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    await bench.acceptMany(3);
    bench.recorder.failNextTurns = 1;
    const drains = await Promise.allSettled([bench.worker.drain({}), bench.worker.drain({ limit: 1 })]);
    expect(drains).toEqual(Array(2).fill({ status: "rejected", reason: new Error("the disk is on fire") }));
    expect(await bench.worker.drain({})).toEqual({ claimed: 3, complete: true });
  });

  it.each([{}, { limit: 1 }, { budgetMs: 1 }])(
    "with %j rejects not before a settle that failed was written at last",
    async (options) => {
      const fail = async () => {
        await sleepFor(bench, 10);
        bench.recorder.failNextTurns = 3;
      };
      const bench: Bench = await openBench({ register: (on) => on.onAny(() => fail()) });
      await bench.accept("a");
      let stateThen: unknown = null;
      const drained = bench.worker.drain(options).catch(async (error: unknown) => {
        stateThen = await bench.states();
        throw error;
      });
      const rejected = expect(drained).rejects.toThrow("the disk is on fire");
      await bench.clock.advance(60_000);
      await rejected;
      expect(stateThen).toEqual(["handled"]);
    },
  );

  it("joins others: each ends by its own bounds, and all see the same work", async () => {
    const bench = await openBench({ register: (on) => on.onAny(async () => {}), worker: { concurrency: 2 } });
    await bench.acceptMany(9);
    const drains = [bench.worker.drain({ limit: 2 }), bench.worker.drain({}), bench.worker.drain({ budgetMs: 60_000 })];
    const results = await Promise.all(drains);
    expect(results).toEqual([
      { claimed: 2, complete: false },
      { claimed: 9, complete: true },
      { claimed: 9, complete: true },
    ]);
    await bench.expectNothingLeaked();
  });

  it("joins a running worker, idle or at work", async () => {
    const slow = deferred();
    const bench = await startBench(() => slow.promise);
    expect(await bench.worker.drain({})).toEqual({ claimed: 0, complete: true });
    await bench.accept("a", 1);
    await bench.accept("a", 2);
    const drained = bench.worker.drain({});
    slow.resolve();
    expect(await drained).toEqual({ claimed: 1, complete: true });
    expect(await bench.states()).toEqual(["handled", "handled"]);
  });

  it("ends under steady traffic that never lets the worker rest", async () => {
    const bench: Bench = await openBench({ register: (on) => on.onAny(() => sleepFor(bench, 100)) });
    let over = 0;
    await bench.accept("first");
    void bench.worker.drain({}).then(() => over++);
    for (let round = 0; round < 40; round++) {
      await bench.accept(`traffic${round}`);
      void bench.worker.drain({}).then(() => over++);
      await bench.clock.advance(50);
    }
    expect(over).toBeGreaterThan(30);
  });
});

function sleepFor(bench: Bench, ms: number): Promise<void> {
  return new Promise((resolve) => bench.clock.setTimeout(resolve, ms));
}

import { describe, expect, it } from "vitest";
import { LeaseLost, PermanentError, RetryAfter } from "../../src/errors.ts";
import { PROBE_MS } from "../../src/inbox/breaker.ts";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";

/** A handler that each test ends by hand: `running` counts, `ends` lets the oldest go. */
function slowHandlers() {
  const gates: ReturnType<typeof deferred<void>>[] = [];
  let most = 0;
  let now = 0;
  const handler = async () => {
    most = Math.max(most, ++now);
    const gate = deferred();
    gates.push(gate);
    await gate.promise;
    now--;
  };
  return {
    handler,
    running: () => now,
    most: () => most,
    endOne: () => gates.shift()?.resolve(),
    endAll: () => {
      for (const gate of gates.splice(0)) gate.resolve();
    },
  };
}

async function settleRounds(bench: Bench, count = 20): Promise<void> {
  for (let round = 0; round < count; round++) await bench.clock.advance(0);
}

describe("Worker", () => {
  it("handles events as they come, and a message's in ascending sequence (RCV-7, I4)", async () => {
    const seen: string[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => void seen.push(`${ctx.meta.lane.messageId}/${ctx.identity.length}/${ctx.attempt}`));
    const bench = await openBench({ register });
    bench.worker.start();
    await Promise.all([bench.accept("a", 2), bench.accept("a", 1), bench.accept("b", 1)]);
    await bench.clock.advance(0);
    expect(await bench.states()).toEqual(["handled", "handled", "handled"]);
    expect((await bench.lane("a")).cursor).toBe(2);
    expect(seen.toSorted()).toEqual(["a/64/1", "a/64/1", "b/64/1"]);
    await bench.expectNothingLeaked();
  });

  it("runs `concurrency` handlers at most, and one event of a lane at a time (I3)", async () => {
    const slow = slowHandlers();
    const bench = await openBench({ register: (on) => on.onAny(slow.handler), worker: { concurrency: 2 } });
    bench.worker.start();
    await Promise.all([bench.accept("a", 1), bench.accept("a", 2), bench.accept("b"), bench.accept("c")]);
    await bench.clock.advance(0);
    expect(slow.running()).toBe(2);
    for (let round = 0; round < 6; round++) {
      slow.endOne();
      await bench.clock.advance(0);
    }
    expect(slow.most()).toBe(2);
    expect(await bench.states()).toEqual(Array(4).fill("handled"));
    await bench.expectNothingLeaked();
  });

  it("asks for no turns while every place is taken and lanes wait", async () => {
    const slow = slowHandlers();
    const bench = await openBench({ register: (on) => on.onAny(slow.handler), worker: { concurrency: 1 } });
    bench.worker.start();
    await bench.acceptMany(4);
    await bench.accept("m4");
    await rounds();
    const turns = bench.recorder.turns.length;
    // A turn asked for by each turn would never let this end.
    await Promise.race([bench.clock.advance(1_000), rounds(2_000)]);
    expect(bench.recorder.turns.length - turns).toBeLessThan(3);
    for (let round = 0; round < 5; round++) {
      slow.endOne();
      await rounds();
    }
    expect(await bench.states()).toEqual(Array(5).fill("handled"));
  });

  it("runs 10,000 handlers that return at once without overflowing the stack", async () => {
    let handled = 0;
    const register = (on: Bench["registry"]) => on.onAny(() => void handled++);
    const bench = await openBench({ register, batch: { maxQueued: 20_000 } });
    bench.worker.start();
    await bench.acceptMany(10_000);
    await bench.worker.drain({});
    expect(handled).toBe(10_000);
    expect(bench.recorder.outstanding.size).toBe(0);
    expect(bench.recorder.doubled).toEqual([]);
  });

  it("wakes exactly when a backoff ends", async () => {
    const attempts: number[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        attempts.push(bench.clock.now());
        if (ctx.attempt < 3) throw new Error("not yet");
      });
    const bench: Bench = await openBench({ register });
    const start = bench.clock.now();
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(60_000);
    expect(attempts.map((at) => at - start)).toEqual([0, 1_000, 6_000]);
    expect(await bench.states()).toEqual(["handled"]);
    expect(bench.failures.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(bench.endings.map(([, ending]) => ending)).toEqual(["retry", "retry", "done"]);
  });

  it("wakes exactly when a gap is given up, and tells the handler what is missing (I6, RCV-7)", async () => {
    const seen: unknown[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => void seen.push([bench.clock.now() - start, ctx.missing]));
    const bench: Bench = await openBench({ register });
    const start = bench.clock.now();
    bench.worker.start();
    await bench.accept("a", 1);
    await bench.accept("a", 4);
    await bench.clock.advance(89_999);
    expect(seen).toEqual([[0, null]]);
    await bench.clock.advance(1);
    expect(seen).toEqual([
      [0, null],
      [90_000, { from: 2, to: 3 }],
    ]);
  });

  it("handles the missing event in its place when it comes in time", async () => {
    const seen: number[] = [];
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId)) });
    bench.worker.start();
    await bench.accept("a", 2);
    await bench.clock.advance(89_999);
    await bench.accept("a", 1);
    await bench.clock.advance(0);
    expect(seen).toEqual([2, 1]);
  });

  it("notices a lane that became due while the store was asked for the next one", async () => {
    const seen: number[] = [];
    const register = (on: Bench["registry"]) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId));
    const bench = await openBench({ register });
    const gate = deferred();
    bench.recorder.nextDueGate = gate.promise;
    bench.worker.start();
    await rounds();
    expect(bench.recorder.nextDueCalls).toBe(1);
    // Asked before, answered after: the answer knows nothing of this gap.
    await bench.accept("a", 2);
    await rounds();
    bench.recorder.nextDueGate = null;
    gate.resolve();
    await bench.clock.advance(90_000);
    expect(seen).toEqual([1]);
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
    expect(bench.lines).toContainEqual(expect.objectContaining({ level: "error", fields: { code: "Error" } }));
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
    const bench = await openBench({
      register: (on) => on.onAny(() => {}),
      store: { ...memoryStore({ volatile: true }), onWake },
    });
    bench.worker.start();
    await rounds();
    const turns = bench.recorder.turns.length;
    (wake as (() => void) | null)?.();
    await rounds();
    expect(bench.recorder.turns.length).toBe(turns + 1);
    await bench.worker.stop(0);
    expect(wake).toBeNull();
  });

  describe("failures", () => {
    it.each<[string, () => unknown, string]>([
      [
        "throws",
        () => {
          throw new Error("boom");
        },
        "Error",
      ],
      [
        "rejects",
        async () => {
          throw new TypeError("boom");
        },
        "TypeError",
      ],
      [
        "throws null",
        () => {
          throw null;
        },
        "thrown",
      ],
      [
        "throws a string",
        () => {
          throw "boom";
        },
        "thrown",
      ],
      ["rejects with undefined", () => Promise.reject(undefined), "thrown"],
      [
        "throws an error whose message is no string",
        () => {
          throw Object.assign(new Error(), { message: { deep: 1 } });
        },
        "Error",
      ],
      [
        "throws what throws when it is read",
        () => {
          throw {
            get code() {
              throw new Error("code");
            },
          };
        },
        "thrown",
      ],
      [
        "returns a thenable that throws",
        () => ({
          // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about
          then() {
            throw new RangeError("then");
          },
        }),
        "RangeError",
      ],
    ])("are retried when a handler %s, and the worker goes on", async (_, fail, code) => {
      let calls = 0;
      const bench = await openBench({ register: (on) => on.onAny(() => (++calls === 1 ? fail() : undefined)) });
      bench.worker.start();
      await bench.accept("a");
      await settleRounds(bench);
      expect((await bench.lane("a")).attempts).toMatchObject([{ attempt: 1, errorCode: code }]);
      await bench.accept("b");
      await bench.clock.advance(1_000);
      expect(await bench.states()).toEqual(["handled", "handled"]);
      await bench.expectNothingLeaked();
    });

    it("become a dead letter on the twelfth attempt, after the whole table of waits (I7)", async () => {
      const bench = await openBench({
        register: (on) =>
          on.onAny(() => {
            throw new Error("always");
          }),
      });
      bench.worker.start();
      await bench.accept("a");
      await bench.clock.advance(25 * 3_600_000);
      expect(await bench.states()).toEqual(["dead"]);
      expect(bench.dead).toMatchObject([{ attempts: 12, code: "Error" }]);
      expect(bench.failures).toHaveLength(12);
      const at = (await bench.lane("a")).attempts.map((attempt) => attempt.at);
      const minutes = at.slice(1).map((time, index) => (time - (at[index] ?? 0)) / 60_000);
      expect(minutes).toEqual([1 / 60, 5 / 60, 0.5, 2, 10, 30, 60, 120, 240, 480, 480]);
    });

    it("wait as long as RetryAfter says, 0 or 24 h", async () => {
      const seen: number[] = [];
      const waits = [0, 86_400_000];
      const bench: Bench = await openBench({
        register: (on) =>
          on.onAny(() => {
            seen.push(bench.clock.now() - start);
            const ms = waits.shift();
            if (ms !== undefined) throw new RetryAfter(ms);
          }),
      });
      const start = bench.clock.now();
      bench.worker.start();
      await bench.accept("a");
      await bench.clock.advance(0);
      expect(seen).toEqual([0, 0]);
      await bench.clock.advance(86_399_999);
      expect(seen).toEqual([0, 0]);
      await bench.clock.advance(1);
      expect(seen).toEqual([0, 0, 86_400_000]);
    });

    it("are final at once with a PermanentError; the lane goes on, or is blocked", async () => {
      for (const onDead of ["continue", "block"] as const) {
        const bench = await openBench({
          worker: { onDead },
          register: (on) => {
            on.on("message.queued", () => {
              throw new PermanentError("never");
            });
            on.on("message.sent", () => {});
          },
        });
        bench.worker.start();
        await Promise.all([bench.accept("a", 1, { eventType: "message.queued" }), bench.accept("a", 2)]);
        await bench.clock.advance(0);
        expect(await bench.states()).toEqual(["dead", onDead === "block" ? "pending" : "handled"]);
        expect(bench.dead).toMatchObject([{ attempts: 1, code: "permanent_failure" }]);
        await bench.expectNothingLeaked();
      }
    });
  });

  describe("leases", () => {
    it("are renewed at a third of their time, also those taken ahead of a free place", async () => {
      const slow = slowHandlers();
      let quick = true;
      const bench = await openBench({
        register: (on) => on.onAny(() => (quick ? undefined : slow.handler())),
        worker: { concurrency: 2 },
        handlerTimeoutMs: 600_000,
      });
      bench.worker.start();
      await bench.acceptMany(20, "quick");
      await bench.clock.advance(0);
      quick = false;
      await bench.acceptMany(20, "slow");
      await rounds();
      expect(slow.running()).toBe(2);
      expect(bench.recorder.outstanding.size).toBe(20);
      await bench.clock.advance(10_000);
      expect(bench.recorder.extended.at(-1)?.toSorted((a, b) => a - b)).toEqual(
        [...Array(20).keys()].map((n) => n + 21),
      );
      await bench.clock.advance(300_000);
      expect(slow.most()).toBe(2);
      for (let round = 0; round < 20; round++) {
        slow.endAll();
        await rounds();
      }
      expect(await bench.states()).toEqual(Array(40).fill("handled"));
      await bench.expectNothingLeaked();
    });

    it("that are lost abort their handler, whose effects and completion do not happen (I3)", async () => {
      const gate = deferred();
      let reason: unknown;
      const bench = await openBench({
        register: (on) =>
          on.onAny(async (_, ctx) => {
            ctx.signal.addEventListener("abort", () => {
              reason = ctx.signal.reason;
            });
            await gate.promise;
          }),
      });
      bench.worker.start();
      await bench.accept("a");
      await rounds();
      const lease = [...bench.recorder.outstanding.values()][0];
      if (lease === undefined) throw new Error("no lease");
      bench.recorder.losing.add(lease.event);
      await bench.clock.advance(10_000);
      expect(reason).toBeInstanceOf(LeaseLost);
      gate.resolve();
      await rounds();
      expect(bench.endings).toHaveLength(1);
    });

    it("that are lost before they were started are forgotten: drains, stop and requests go on", async () => {
      const slow = slowHandlers();
      let quick = true;
      const bench = await openBench({
        register: (on) => on.onAny(() => (quick ? undefined : slow.handler())),
        ...{ worker: { concurrency: 1 }, handlerTimeoutMs: 600_000 },
      });
      bench.worker.start();
      await bench.acceptMany(10, "quick");
      await bench.clock.advance(0);
      quick = false;
      await bench.acceptMany(2, "slow");
      await rounds();
      expect(bench.recorder.outstanding.size).toBe(2);
      bench.recorder.losing.add(12);
      await bench.clock.advance(10_000);
      expect(bench.endings.at(-1)).toEqual([12, "put_back"]);
      slow.endOne();
      await rounds();
      let stopped = false;
      void bench.worker.stop(60_000).then(() => {
        stopped = true;
      });
      await rounds();
      expect(stopped).toBe(true);
    });

    it("are renewed again after a renewal that failed", async () => {
      const slow = slowHandlers();
      const bench = await openBench({ register: (on) => on.onAny(slow.handler), handlerTimeoutMs: 600_000 });
      bench.worker.start();
      await bench.accept("a");
      bench.recorder.failExtends = 1;
      await bench.clock.advance(60_000);
      expect(slow.most()).toBe(1);
      expect(bench.lines.filter((line) => line.message.includes("could not be renewed"))).toHaveLength(1);
      slow.endAll();
      await rounds();
      expect(await bench.states()).toEqual(["handled"]);
      await bench.clock.advance(60_000);
      const renewals = bench.recorder.extended.length;
      await bench.clock.advance(60_000);
      expect(bench.recorder.extended.length).toBe(renewals);
    });
  });

  describe("pause() and resume()", () => {
    it("claims nothing, gives back what has not started, and goes on later", async () => {
      const slow = slowHandlers();
      let quick = true;
      const bench = await openBench({
        register: (on) => on.onAny(() => (quick ? undefined : slow.handler())),
        worker: { concurrency: 1 },
      });
      bench.worker.start();
      await bench.acceptMany(10, "quick");
      await bench.clock.advance(0);
      quick = false;
      await bench.acceptMany(3, "slow");
      await rounds();
      expect(bench.recorder.outstanding.size).toBe(3);
      bench.worker.pause();
      expect(bench.worker.isPaused).toBe(true);
      await rounds();
      expect(bench.recorder.outstanding.size).toBe(1);
      const waiting = (await bench.events()).filter((event) => event.state === "pending" && event.attempts === 0);
      expect(waiting).toHaveLength(2);
      slow.endOne();
      await bench.accept("later");
      await bench.clock.advance(60_000);
      expect(slow.most()).toBe(1);
      expect(bench.recorder.outstanding.size).toBe(0);
      bench.worker.resume();
      for (let round = 0; round < 5; round++) {
        await rounds();
        slow.endOne();
      }
      await rounds();
      expect(await bench.states()).toEqual(Array(14).fill("handled"));
      await bench.expectNothingLeaked();
    });

    it("gives back with its attempt what a turn under way had claimed", async () => {
      const gate = deferred();
      let ran = 0;
      const bench = await openBench({ register: (on) => on.onAny(() => void ran++) });
      await bench.acceptMany(3);
      bench.recorder.gate = gate.promise;
      bench.worker.start();
      await rounds();
      bench.worker.pause();
      bench.recorder.gate = null;
      gate.resolve();
      await rounds();
      expect(ran).toBe(0);
      expect((await bench.events()).map((event) => event.attempts)).toEqual([0, 0, 0]);
      await bench.expectNothingLeaked();
      bench.worker.resume();
      await rounds();
      expect(ran).toBe(3);
    });
  });

  describe("stop()", () => {
    it("waits for running handlers, gives the others back with their attempt, and claims nothing more", async () => {
      const slow = slowHandlers();
      let quick = true;
      const bench = await openBench({
        register: (on) => on.onAny(() => (quick ? undefined : slow.handler())),
        worker: { concurrency: 2 },
      });
      bench.worker.start();
      await bench.acceptMany(10, "quick");
      await bench.clock.advance(0);
      quick = false;
      await bench.acceptMany(6, "slow");
      await rounds();
      let stopped = false;
      const stop = bench.worker.stop(30_000).then(() => {
        stopped = true;
      });
      await rounds();
      expect(stopped).toBe(false);
      expect(bench.worker.isStarted).toBe(false);
      slow.endAll();
      await stop;
      await bench.clock.advance(600_000);
      const pending = (await bench.events()).filter((event) => event.state === "pending");
      expect(pending.map((event) => event.attempts)).toEqual([0, 0, 0, 0]);
      expect(slow.most()).toBe(2);
      await bench.expectNothingLeaked();
    });

    it("waits no longer than timeoutMs; what runs on then can still settle", async () => {
      const slow = slowHandlers();
      const bench = await openBench({ register: (on) => on.onAny(slow.handler) });
      bench.worker.start();
      await bench.accept("a");
      await rounds();
      let stopped = false;
      const stop = bench.worker.stop(5_000).then(() => {
        stopped = true;
      });
      await bench.clock.advance(4_999);
      expect(stopped).toBe(false);
      await bench.clock.advance(1);
      await stop;
      slow.endAll();
      await rounds();
      expect(await bench.states()).toEqual(["handled"]);
    });

    it("starts nothing that a turn under way had claimed", async () => {
      const gate = deferred();
      let ran = 0;
      const bench = await openBench({ register: (on) => on.onAny(() => void ran++) });
      await bench.acceptMany(3);
      bench.recorder.gate = gate.promise;
      bench.worker.start();
      await rounds();
      const stop = bench.worker.stop(1_000);
      bench.recorder.gate = null;
      gate.resolve();
      await stop;
      await bench.batcher.close();
      expect(ran).toBe(0);
      expect((await bench.events()).map((event) => event.attempts)).toEqual([0, 0, 0]);
      await bench.expectNothingLeaked();
    });

    it("is harmless without a start, and twice", async () => {
      const bench = await openBench();
      await bench.worker.stop(1_000);
      await bench.worker.stop(1_000);
    });
  });

  describe("handlers' time", () => {
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

    it("retries a handler that returns within the grace, and ignores one that returns after it", async () => {
      const gates = [deferred(), deferred()];
      const commits: unknown[] = [];
      let calls = 0;
      const bench = await openBench({
        register: (on) =>
          on.onAny(async (_, ctx) => {
            const gate = gates[calls++];
            await gate?.promise;
            try {
              ctx.commit(() => {});
            } catch (error) {
              commits.push((error as { code: string }).code);
            }
          }),
        handlerTimeoutMs: 1_000,
      });
      bench.worker.start();
      await bench.accept("a");
      await bench.clock.advance(20_000);
      gates[0]?.resolve();
      await bench.clock.advance(0);
      expect(bench.endings).toEqual([[1, "retry"]]);
      await bench.clock.advance(60_000);
      expect(bench.endings.length).toBeGreaterThanOrEqual(2);
      gates[1]?.resolve();
      await rounds();
      expect(commits.length).toBeGreaterThanOrEqual(2);
    });
  });

  describe("its own pause", () => {
    const failing = (bench: () => Bench, state: { broken: boolean; runs: number[] }) => (on: Bench["registry"]) =>
      on.on("message.sent", () => {
        state.runs.push(bench().clock.monotonic());
        if (state.broken) throw new Error("database down");
      });

    async function tripped(count = 20) {
      const state = { broken: true, runs: [] as number[] };
      const bench: Bench = await openBench({ register: failing(() => bench, state), worker: { concurrency: 1 } });
      bench.worker.start();
      await bench.acceptMany(count);
      await rounds(200);
      return { bench, state };
    }

    it("does not begin with 19 lanes, nor with one lane that fails often, nor with an event nobody handles", async () => {
      const { bench } = await tripped(19);
      expect(bench.worker.isTripped).toBe(false);
      const alone = await openBench({
        register: (on) =>
          on.onAny(() => {
            throw new RetryAfter(0);
          }),
        worker: { maxAttempts: 100 },
      });
      alone.worker.start();
      await alone.accept("a");
      await alone.clock.advance(0);
      for (let round = 0; round < 30; round++) await alone.clock.advance(0);
      expect(alone.worker.isTripped).toBe(false);
    });

    it("begins after 20 lanes in a row, though events that nobody handles lie between", async () => {
      const { bench } = await tripped(19);
      await bench.accept("nobody's", 1, { eventType: "message.queued" });
      await rounds();
      expect((await bench.lane("nobody's")).events[0]?.outcome).toBe("unhandled");
      await bench.accept("twentieth");
      await rounds();
      expect(bench.worker.isTripped).toBe(true);
      expect(bench.lines).toContainEqual(
        expect.objectContaining({ fields: { code: "worker_paused", probeMs: PROBE_MS } }),
      );
    });

    it("is not begun by PermanentErrors", async () => {
      const bench = await openBench({
        register: (on) =>
          on.onAny(() => {
            throw new PermanentError("no");
          }),
      });
      bench.worker.start();
      await bench.acceptMany(40);
      await rounds(200);
      expect(bench.worker.isTripped).toBe(false);
      expect(bench.dead).toHaveLength(40);
    });

    it("probes one lane every 5 s and gives its attempt back; a success ends it", async () => {
      const { bench, state } = await tripped(60);
      expect(bench.worker.isTripped).toBe(true);
      expect(state.runs).toHaveLength(20);
      const attempts = async () => (await bench.events()).reduce((sum, event) => sum + event.attempts, 0);
      expect(await attempts()).toBe(20);
      await bench.clock.advance(4_999);
      expect(state.runs).toHaveLength(20);
      await bench.clock.advance(1);
      expect(state.runs).toHaveLength(21);
      await bench.clock.advance(20_000);
      expect(state.runs).toHaveLength(25);
      expect(state.runs.slice(20).map((at, index) => at - (state.runs[20] ?? 0) - index * PROBE_MS)).toEqual([
        0, 0, 0, 0, 0,
      ]);
      expect(await attempts()).toBe(20);
      expect(bench.recorder.outstanding.size).toBe(0);
      state.broken = false;
      await bench.clock.advance(PROBE_MS);
      expect(bench.worker.isTripped).toBe(false);
      await bench.clock.advance(60_000);
      expect(await bench.states()).toEqual(Array(60).fill("handled"));
      await bench.expectNothingLeaked();
    });

    it("starts nothing but probes, whatever was claimed ahead when it began", async () => {
      const { bench, state } = await tripped(200);
      expect(state.runs.length).toBe(20);
      expect(bench.recorder.outstanding.size).toBe(0);
      const pending = (await bench.events()).filter((event) => event.attempts > 0);
      expect(pending).toHaveLength(20);
    });

    it("ends drains at once, and lets a later one probe", async () => {
      const state = { broken: true, runs: [] as number[] };
      const bench: Bench = await openBench({ register: failing(() => bench, state), worker: { concurrency: 1 } });
      await bench.acceptMany(30);
      expect(await bench.worker.drain({})).toMatchObject({ complete: false });
      expect(state.runs).toHaveLength(20);
      expect(await bench.worker.drain({})).toEqual({ claimed: 0, complete: false });
      await bench.clock.advance(PROBE_MS);
      expect(await bench.worker.drain({})).toEqual({ claimed: 1, complete: false });
      state.broken = false;
      await bench.clock.advance(PROBE_MS);
      await bench.worker.drain({});
      expect(await bench.worker.drain({})).toMatchObject({ complete: true });
      await bench.expectNothingLeaked();
    });

    it("goes on with probes under steady traffic", async () => {
      const { bench, state } = await tripped(30);
      for (let round = 0; round < 20; round++) {
        await bench.clock.advance(1_000);
        await bench.accept(`traffic${round}`);
      }
      await rounds();
      expect(state.runs.length).toBe(24);
    });
  });
});

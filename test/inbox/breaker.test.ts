import { describe, expect, it } from "vitest";
import { PermanentError, RetryAfter } from "../../src/errors.ts";
import { PROBE_MS } from "../../src/inbox/worker.ts";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";

describe("the pause of a worker whose handlers all fail", () => {
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

  it("passes over events that nobody handles, and ends with the first that is handled (I9)", async () => {
    const { bench, state } = await tripped();
    for (let n = 0; n < 200; n++) await bench.accept(`nobody's ${n}`, 1, { eventType: "message.queued" });
    state.broken = false;
    // The failed lanes are due again after their probes' delay, behind all that nobody handles.
    await bench.clock.advance(PROBE_MS);
    await rounds(2_000);
    await bench.clock.advance(60_000);
    await rounds(2_000);
    expect(bench.worker.isTripped).toBe(false);
    expect((await bench.states()).filter((one) => one === "pending")).toEqual([]);
  });

  it("ends with a PermanentError too: the handler works", async () => {
    let thrown: Error = new Error("database down");
    const bench = await openBench({
      register: (on) =>
        on.onAny(() => {
          throw thrown;
        }),
    });
    bench.worker.start();
    await bench.acceptMany(20);
    await rounds(200);
    expect(bench.worker.isTripped).toBe(true);
    thrown = new PermanentError("no");
    await bench.clock.advance(PROBE_MS);
    expect(bench.worker.isTripped).toBe(false);
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

  it("gives back what a turn under way had claimed when it began", async () => {
    const gate = deferred();
    const last = deferred();
    const runs: string[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        runs.push(ctx.meta.lane.messageId);
        return ctx.meta.lane.messageId === "last" ? last.promise : Promise.reject(new Error("database down"));
      });
    const bench = await openBench({ register, worker: { concurrency: 8 } });
    bench.worker.start();
    await bench.accept("last");
    await bench.acceptMany(19);
    await rounds(200);
    expect(bench.worker.isTripped).toBe(false);
    bench.recorder.gate = gate.promise;
    const accepted = bench.acceptMany(5, "late");
    await rounds();
    last.reject(new Error("database down"));
    await rounds();
    expect(bench.worker.isTripped).toBe(true);
    bench.recorder.gate = null;
    gate.resolve();
    await accepted;
    await rounds();
    expect(runs).toHaveLength(20);
    await bench.expectNothingLeaked();
  });

  it("counts anew after an event that was handled", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        if (ctx.meta.lane.messageId !== "good") throw new Error("database down");
      });
    const bench = await openBench({ register });
    bench.worker.start();
    await bench.acceptMany(19, "before");
    await bench.accept("good");
    await bench.acceptMany(19, "after");
    await rounds();
    expect(bench.worker.isTripped).toBe(false);
    await bench.accept("twentieth");
    await rounds();
    expect(bench.worker.isTripped).toBe(true);
  });
});

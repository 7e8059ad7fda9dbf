/** The pause of a worker whose handlers all fail: what each verdict and its commit do to it, and what runs meanwhile. */
import { describe, expect, it } from "vitest";
import { PermanentError } from "../../src/errors.ts";
import { NOTHING_QUOTED } from "../../src/inbox/masking.ts";
import { failed, type Verdict } from "../../src/inbox/runner.ts";
import { Breaker, PROBE_MS } from "../../src/inbox/worker.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { type Bench, deferred, openBench, rounds, startBench } from "./bench.ts";

const FAILED: Verdict<never> = failed(new Error("database down"), NOTHING_QUOTED);
const PERMANENT: Verdict<never> = failed(new PermanentError("no"), NOTHING_QUOTED);
const HANDLED: Verdict<never> = { kind: "complete", outcome: "handled", effects: [], event: {} as never };
const WITH_EFFECTS: Verdict<never> = { ...HANDLED, effects: [() => {}] };
const UNHANDLED: Verdict<never> = { ...HANDLED, outcome: "unhandled" };

function scene() {
  const clock = createFakeClock();
  const lines: unknown[] = [];
  const log = (fields: object, message: string) => void lines.push([fields, message]);
  const breaker = new Breaker(clock, { debug: log, info: log, warn: log, error: log });
  /** Lets handlers of `count` lanes fail, and says what the last did. */
  const fail = (count: number) => {
    const changes = Array.from({ length: count }, (_, lane) => breaker.ended(lane, FAILED));
    return changes.at(-1) ?? null;
  };
  return { clock, lines, breaker, fail };
}

describe("Breaker", () => {
  it("opens at the 20th lane in a row, closes at a success or a PermanentError, and says both", () => {
    const { breaker, lines, fail } = scene();
    const permanent = Array.from({ length: 40 }, (_, lane) => breaker.ended(lane, PERMANENT));
    expect(permanent).toEqual(Array(40).fill(null));
    // One lane that fails often, and events that nobody handles, change nothing.
    const changes = Array.from({ length: 40 }, () => [breaker.ended(1, FAILED), breaker.ended(2, UNHANDLED)]);
    expect(changes.flat()).toEqual(Array(80).fill(null));
    expect(fail(19)).toBe(null);
    breaker.ended(100, HANDLED);
    expect([breaker.ended(100, FAILED), fail(18)]).toEqual([null, null]);
    expect(fail(19)).toBe("opened");
    expect(breaker.isOpen).toBe(true);
    expect(breaker.ended(1, HANDLED)).toBe("closed");
    expect(breaker.isOpen).toBe(false);
    expect(lines).toEqual([
      [
        { code: "worker_paused", probeMs: PROBE_MS },
        "Every handler failed: the worker paused itself, and tries one event at a time.",
      ],
      [{ code: "worker_resumed" }, "A probe succeeded: the worker handles events again."],
    ]);
    fail(20);
    expect(breaker.ended(1, PERMANENT)).toBe("closed");
    expect(breaker.isOpen).toBe(false);
  });

  it("takes a handler with effects for no success before they are committed", () => {
    const { breaker, fail } = scene();
    fail(20);
    expect(breaker.ended(1, WITH_EFFECTS)).toBe(null);
    expect(breaker.isOpen).toBe(true);
    expect(breaker.committed(WITH_EFFECTS, "settled")).toBe("closed");
  });

  it("asks one lane more for each effect that is undecided, whatever was handled without any", () => {
    const { breaker, fail } = scene();
    breaker.ended(100, HANDLED);
    expect(breaker.committed(HANDLED, "settled")).toBe(null);
    breaker.ended(101, WITH_EFFECTS);
    breaker.ended(102, WITH_EFFECTS);
    expect(fail(21)).toBe(null);
    breaker.committed(WITH_EFFECTS, "lost");
    expect(fail(1)).toBe("opened");
  });

  it("opens under load, where some effect is always undecided and each fails", () => {
    const { breaker } = scene();
    const concurrency = 8;
    for (let lane = 0; lane < concurrency; lane++) breaker.ended(lane, WITH_EFFECTS);
    const changes: unknown[] = [];
    for (let lane = 0; lane < 28; lane++) {
      breaker.ended(lane + concurrency, WITH_EFFECTS);
      breaker.committed(WITH_EFFECTS, "effect_failed");
      changes.push(breaker.ended(lane, FAILED));
    }
    expect(changes).toEqual([...Array(27).fill(null), "opened"]);
  });

  it("counts anew after an effect that was committed, however many failed meanwhile", () => {
    const { breaker, fail } = scene();
    breaker.ended(100, WITH_EFFECTS);
    fail(20);
    breaker.committed(WITH_EFFECTS, "settled");
    expect(fail(19)).toBe(null);
    expect(fail(20)).toBe("opened");
  });

  it("asks for another probe after one that nobody handles, while it is open only", () => {
    const { breaker, fail } = scene();
    expect(breaker.ended(1, UNHANDLED)).toBe(null);
    expect(breaker.committed(UNHANDLED, "settled")).toBe(null);
    fail(20);
    expect(breaker.takeProbe()).toBe(false);
    expect(breaker.committed(UNHANDLED, "settled")).toBe("probe_again");
    expect(breaker.takeProbe()).toBe(true);
  });

  it("allows a probe every 5 s from when it opened, though what was under way fails later", async () => {
    const { breaker, clock, fail } = scene();
    fail(20);
    await clock.advance(PROBE_MS - 1);
    expect(breaker.takeProbe()).toBe(false);
    expect(fail(40)).toBe(null);
    await clock.advance(1);
    expect(breaker.takeProbe()).toBe(true);
    expect(breaker.takeProbe()).toBe(false);
    await clock.advance(PROBE_MS);
    expect(breaker.takeProbe()).toBe(true);
  });
});

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
    await bench.expectAllHandled(60);
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
    const last = deferred();
    const runs: (string | null)[] = [];
    const bench = await startBench(
      (_, ctx) => {
        runs.push(ctx.meta.lane);
        return ctx.meta.lane === "last" ? last.promise : Promise.reject(new Error("database down"));
      },
      { worker: { concurrency: 8 } },
    );
    await bench.accept("last");
    await bench.acceptMany(19);
    await rounds(200);
    expect(bench.worker.isTripped).toBe(false);
    const letGo = bench.hold();
    const accepted = bench.acceptMany(5, "late");
    await rounds();
    last.reject(new Error("database down"));
    await rounds();
    expect(bench.worker.isTripped).toBe(true);
    letGo();
    await accepted;
    await rounds();
    expect(runs).toHaveLength(20);
    await bench.expectNothingLeaked();
  });
});

/** What each verdict, and its commit, does to the pause. */
import { describe, expect, it } from "vitest";
import { PermanentError } from "../../src/errors.ts";
import { NOTHING_QUOTED } from "../../src/inbox/masking.ts";
import { failed, type Verdict } from "../../src/inbox/runner.ts";
import { Breaker, PROBE_MS } from "../../src/inbox/worker.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

const FAILED: Verdict<never> = failed(new Error("database down"), NOTHING_QUOTED);
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
  it("opens at the 20th lane in a row, and says so", () => {
    const { breaker, lines, fail } = scene();
    expect(fail(19)).toBe(null);
    expect(fail(20)).toBe("opened");
    expect(breaker.isOpen).toBe(true);
    expect(lines).toEqual([
      [
        { code: "worker_paused", probeMs: PROBE_MS },
        "Every handler failed: the worker paused itself, and tries one event at a time.",
      ],
    ]);
  });

  it("closes at the first success, and says so", () => {
    const { breaker, lines, fail } = scene();
    fail(20);
    expect(breaker.ended(1, HANDLED)).toBe("closed");
    expect(breaker.isOpen).toBe(false);
    expect(lines[1]).toEqual([{ code: "worker_resumed" }, "A probe succeeded: the worker handles events again."]);
  });

  it("closes at a PermanentError, which says that the handler works", () => {
    const { breaker, fail } = scene();
    fail(20);
    expect(breaker.ended(1, failed(new PermanentError("no"), NOTHING_QUOTED))).toBe("closed");
    expect(breaker.isOpen).toBe(false);
  });

  it("takes a handler with effects for no success before they are committed", () => {
    const { breaker, fail } = scene();
    fail(20);
    expect(breaker.ended(1, WITH_EFFECTS)).toBe(null);
    expect(breaker.isOpen).toBe(true);
    expect(breaker.committed(WITH_EFFECTS, "settled")).toBe("closed");
  });

  it("opens when every effect fails, once none is undecided", () => {
    const { breaker } = scene();
    const changes: unknown[] = [];
    for (let lane = 0; lane < 20; lane++) {
      changes.push(breaker.ended(lane, WITH_EFFECTS));
      changes.push(breaker.committed(WITH_EFFECTS, "effect_failed"));
      changes.push(breaker.ended(lane, FAILED));
    }
    expect(changes).toEqual([...Array(59).fill(null), "opened"]);
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

  it("opens within a turn that tells of many effects, each of which failed", () => {
    const { breaker } = scene();
    for (let lane = 0; lane < 40; lane++) breaker.ended(lane, WITH_EFFECTS);
    for (let lane = 0; lane < 30 && !breaker.isOpen; lane++) {
      breaker.committed(WITH_EFFECTS, "effect_failed");
      breaker.ended(lane, FAILED);
    }
    expect(breaker.isOpen).toBe(true);
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

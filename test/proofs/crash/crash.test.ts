/**
 * A few kills under load as a quick test; `npm run prove -- crash` makes many, and shows that it would see a loss.
 *
 * @module-tag full
 */
import { describe, expect, it } from "vitest";
import { breachLines } from "../history.ts";
import { mostRecoveryMs, tooSlow } from "./recovery.ts";
import { torture } from "./torture.ts";

const SEED = Number(process.env.SEED ?? 20_251_120);
const KILLS = 10;

describe("a receiver that is killed", () => {
  it(`loses nothing acknowledged and repeats no effect, over ${KILLS} SIGKILLs under load (I2, I3, I4, I5, RCV-3, RCV-7)`, {
    timeout: 120_000,
  }, async () => {
    const outcome = await torture({ seed: SEED, kills: KILLS, lanes: 50, flaws: [] });
    expect(breachLines(outcome.breaches)).toEqual([]);
    expect(outcome.problems).toEqual([]);
    expect(outcome.acknowledged).toBeGreaterThan(KILLS * 8);
    // Otherwise no kill hit anything.
    expect(outcome.unanswered).toBeGreaterThan(0);
    expect(outcome.handedOutAgain).toBeGreaterThan(0);
    expect(tooSlow(outcome.recovery, mostRecoveryMs())).toEqual([]);
  });
});

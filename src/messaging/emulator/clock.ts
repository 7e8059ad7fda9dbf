/** The emulator's time: standing still, or running with the real one at some speed, and moved ahead on request. */
import { createHash } from "node:crypto";
import type { Clock } from "../../internal/clock.ts";
import { invalidOption } from "../../internal/options.ts";

/** `"virtual"` moves only by `advance`; `"real"` also runs with the real clock, `"x60"` sixty times as fast (1 to 100,000). */
export type ClockMode = "real" | "virtual" | `x${number}`;

/** Time as the emulator sees it, in epoch milliseconds. It never goes back. */
export interface EmulatorTime {
  /** Emulator milliseconds per real one; 0 while time moves only on request. */
  readonly rate: number;
  now(): number;
  /** The wall clock behind it: what a receiver on the same clock reads. */
  realNow(): number;
  /**
   * How far it is ahead of real time, ms; of use for differences. While both run alike only `raiseTo` changes it: corrections of
   * the wall clock do not count.
   */
  aheadMs(): number;
  /** Makes `now()` at least `instant`. */
  raiseTo(instant: number): void;
}

/** The clock as its users move it. */
export interface EmulatorClock {
  /** The emulator's time, epoch ms. */
  now(): number;
  /**
   * Moves time on by `ms` (0 to ten years); resolves when all that came due has happened and every attempt has ended. Rejects with an
   * `OncehookError` with code `closed` once the emulator has closed.
   */
  advance(ms: number): Promise<void>;
  /** Resolves when nothing is due and no attempt is under way. */
  idle(): Promise<void>;
}

/** Time that starts at `startAt`, or where the wall clock stands. */
export function createTime(clock: Clock, mode: ClockMode, startAt: number = clock.now()): EmulatorTime {
  const rate = rateOf(mode);
  const begun = clock.monotonic();
  const begunAt = clock.now();
  let offset = startAt;
  const now = () => Math.floor(offset + rate * (clock.monotonic() - begun));
  return {
    rate,
    now,
    realNow: () => clock.now(),
    // Not `now() - realNow()`: two readings of two clocks are never of the same moment.
    aheadMs: () => Math.floor(offset - begunAt + (rate - 1) * (clock.monotonic() - begun)),
    raiseTo(instant) {
      offset += Math.max(0, instant - now());
    },
  };
}

/** @throws SetupError for an unknown mode */
export function rateOf(mode: ClockMode): number {
  if (mode === "virtual") return 0;
  if (mode === "real") return 1;
  const rate = /^x\d{1,6}$/.test(mode) ? Number(mode.slice(1)) : 0;
  if (rate >= 1 && rate <= 100_000) return rate;
  throw invalidOption("clock", 'must be "real", "virtual" or a speed from "x1" to "x100000"', mode);
}

// Randomness that repeats: a number per seed and purpose, whatever else was asked in between.

/** Hexadecimal text of `bytes` bytes (at most 32) that `seed` and `purpose` alone decide. */
export function seededHex(seed: string, purpose: string, bytes: number): string {
  return digest(seed, purpose).toString("hex", 0, bytes);
}

/** A number in [0, 1) that `seed` and `purpose` alone decide. */
export function seededFraction(seed: string, purpose: string): number {
  return digest(seed, purpose).readUIntBE(0, 6) / 2 ** 48;
}

function digest(seed: string, purpose: string): Buffer {
  return createHash("sha256")
    .update(JSON.stringify([seed, purpose]))
    .digest();
}

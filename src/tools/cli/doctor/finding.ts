/** What a check of `oncehook doctor` found, and how to fix it. */

import type { InboxStats } from "../../../inbox/record.ts";
import type { Clock } from "../../../internal/clock.ts";
import { lasting } from "../../../internal/lasting.ts";

/** `problem` ends the command with 3; `warning` may be meant so; `skipped` could not be looked at. */
export type Level = "ok" | "warning" | "problem" | "skipped";

export interface Finding {
  /** Stable. Of `ok` and `skipped`, the name of the check. */
  readonly code: string;
  readonly level: Level;
  /** Never a secret, a phone number or a text. */
  readonly what: string;
  /** What to do; null where nothing is to be done. Of `skipped`, what lets it be looked at: flags, or a sentence. */
  readonly fix: string | null;
}

export function ok(code: string, what: string): Finding {
  return { code, level: "ok", what, fix: null };
}

export function warning(code: string, what: string, fix: string): Finding {
  return { code, level: "warning", what, fix };
}

export function problem(code: string, what: string, fix: string): Finding {
  return { code, level: "problem", what, fix };
}

export function skipped(code: string, what: string, fix: string): Finding {
  return { code, level: "skipped", what, fix };
}

/** With a capital at its beginning. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

const MOST_NAMED = 3;

/** The first ids, and how many more there are. */
export function named(ids: readonly string[]): string {
  const more = ids.length - MOST_NAMED;
  return ids.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

// Whether this machine's clock agrees with those that it is compared with: the service's, and the database's.

/** A receiver takes a timestamp that is 5 minutes ahead; a moment more or less is harmless. */
const LITTLE_MS = 30_000;
const MUCH_MS = 240_000;

const FIX = "Set this machine's clock by NTP: a receiver refuses timestamps more than 5 minutes ahead, or 90 behind.";

/** What another clock said, and how far ours is ahead of it. */
interface Reading {
  readonly aheadMs: number;
  /** Half of what is not known. */
  readonly unsureMs: number;
}

/** Compares with the `Date` headers of all answers that come through `fetch`; the closest one counts. */
export class ServiceClock {
  readonly fetch: typeof globalThis.fetch;
  #reading: Reading | null = null;

  constructor(clock: Clock, fetch: typeof globalThis.fetch) {
    this.fetch = async (...args) => {
      const asked = clock.now();
      const response = await fetch(...args);
      this.#compare(response.headers.get("date"), asked, clock.now());
      return response;
    };
  }

  findings(): Finding[] {
    return this.#reading === null ? [] : [clockFinding("the service's", this.#reading)];
  }

  #compare(date: string | null, asked: number, answered: number): void {
    const shown = Date.parse(date ?? "");
    if (Number.isNaN(shown)) return;
    // The header's second began at `shown`, and lies between the question and the answer.
    const unsureMs = (1_000 + answered - asked) / 2;
    const reading = { aheadMs: (asked + answered) / 2 - (shown + 500), unsureMs };
    if (this.#reading === null || unsureMs < this.#reading.unsureMs) this.#reading = reading;
  }
}

export function clockFinding(whose: string, { aheadMs, unsureMs }: Reading): Finding {
  const off = Math.abs(aheadMs) - unsureMs;
  if (off < LITTLE_MS) return ok("clock", `This machine's clock and ${whose} agree.`);
  const what = `This machine's clock is ${lasting(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"} ${whose}.`;
  return off < MUCH_MS ? warning("clock_skew", what, FIX) : problem("clock_skew", what, FIX);
}

type NewestDelivery = Pick<InboxStats, "newestSignedAt">;

/** A delivery that was verified lies in the future: then the clock was set back, or that of another receiver is ahead. */
export function newestDeliveryFindings({ newestSignedAt }: NewestDelivery, clock: Clock): Finding[] {
  const ahead = (newestSignedAt ?? 0) - clock.now();
  if (ahead < LITTLE_MS) return [];
  const what = `The newest delivery was signed ${lasting(ahead)} ahead of this machine's clock.`;
  return [ahead < MUCH_MS ? warning("clock_skew", what, FIX) : problem("clock_skew", what, FIX)];
}

/** Whether this machine's clock agrees with those that it is compared with: the service's, and the database's. */
import type { InboxStats } from "../../inbox/store.ts";
import type { Clock } from "../../internal/clock.ts";
import { type Finding, lasting, ok, problem, warning } from "./finding.ts";

/** A receiver takes a timestamp that is 5 minutes ahead; an emulator's or a person's moment is no reason to worry. */
const LITTLE_MS = 30_000;
const MUCH_MS = 240_000;

const FIX = "Set this machine's clock by NTP: a receiver refuses timestamps more than 5 minutes ahead, or 90 behind.";

/** What another clock said, and how far ours is ahead of it. */
export interface Reading {
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

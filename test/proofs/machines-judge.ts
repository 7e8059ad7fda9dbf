/** What became of the service's events at machines that share an inbox: its ledger against the history and the inbox itself. */
import type { Delivery, EventRecord } from "../../src/messaging/emulator/index.ts";
import { type Breach, breachesOf, breachLines, type HandledEffect, type StoredEvent } from "./history.ts";
import { deliveryOf } from "./sender.ts";

/** Sequences of a message that were waited for in vain. */
export interface SkippedGap {
  /** The message's id. */
  readonly lane: string;
  readonly from: number;
  readonly to: number;
  /** When the first event behind it was accepted, epoch ms. */
  readonly behindAt: number;
  /** Epoch ms. */
  readonly skippedAt: number;
}

/** All that is known at the end of a run. */
export interface Accounts {
  readonly events: readonly EventRecord[];
  readonly deliveries: readonly Pick<Delivery, "eventId" | "attempts" | "state">[];
  readonly effects: readonly HandledEffect[];
  readonly stored: readonly StoredEvent[];
  readonly gaps: readonly SkippedGap[];
  /** What each gap has to be waited for. */
  readonly gapWaitMs: number;
  /** Lanes that are not idle. */
  readonly busyLanes: number;
}

/** Names of events; empty lists are what is hoped for. */
export interface Verdict {
  readonly breaches: readonly Breach[];
  /** Refused for its signature at least once, although every attempt was signed as configured. */
  readonly unverified: readonly string[];
  /** Neither handled nor late at the end: pending, dead or discarded. */
  readonly unsettled: readonly string[];
  /** Called late, although nothing behind it had waited its whole time. */
  readonly wronglyLate: readonly string[];
  readonly busyLanes: number;
}

/** What arrived must be handled; an event that is called late with a reason is in its place. */
export function judge({ events, deliveries, effects, stored, gaps, gapWaitMs, busyLanes }: Accounts): Verdict {
  const identities = new Map(events.map(({ eventId, body }) => [eventId, deliveryOf(JSON.parse(body)).identity]));
  const ofDeliveries = (isMeant: (delivery: Accounts["deliveries"][number]) => boolean) =>
    deliveries.filter(isMeant).map(({ eventId }) => identities.get(eventId) ?? eventId);
  const late = effects.filter((effect) => effect.late);
  const hasReason = ({ lane, sequence }: HandledEffect) => {
    const own = gaps.filter((gap) => gap.lane === lane);
    return own.some((gap) => gap.from <= sequence && sequence <= gap.to && waitedMs(gap, own) >= gapWaitMs);
  };
  return {
    breaches: breachesOf({
      ...{ sent: identities.values(), forged: [], acknowledged: ofDeliveries(({ state }) => state === "delivered") },
      ...{ replayed: [], effects, stored, moment: "ended", everyHandlerWrites: true },
    }),
    unverified: ofDeliveries(({ attempts }) => attempts.some(({ status }) => status === 401)),
    unsettled: stored.filter(({ state }) => state !== "handled").map((row) => `${nameOf(row)} (${row.state})`),
    wronglyLate: late.filter((effect) => !hasReason(effect)).map(nameOf),
    busyLanes,
  };
}

/** One line for each finding, the first 20 of each kind. */
export function findings({ breaches, unverified, unsettled, wronglyLate, busyLanes }: Verdict): string[] {
  const lines = (what: string, names: readonly string[]) => names.slice(0, 20).map((name) => `${what} ${name}`);
  return [
    ...breachLines(breaches),
    ...lines("unverified", unverified),
    ...lines("unsettled", unsettled),
    ...lines("wrongly late", wronglyLate),
    ...(busyLanes > 0 ? [`${busyLanes} lanes are not idle`] : []),
  ];
}

/** The counts, in words. */
export function countsOf({ breaches, unverified, unsettled, wronglyLate }: Verdict): string {
  const count = (...kinds: Breach["kind"][]) => breaches.filter(({ kind }) => kinds.includes(kind)).length;
  const first = `${count("lost")} lost, ${count("double", "phantom")} twice, ${count("inversion")} out of order`;
  const ends = `${unsettled.length} unsettled, ${wronglyLate.length} wrongly late, ${count("half done")} half done`;
  return `${first}, ${unverified.length} unverified, ${ends}`;
}

/** A gap is waited for once something lies behind it and the gaps before it have been given up. */
function waitedMs({ from, behindAt, skippedAt }: SkippedGap, gaps: readonly SkippedGap[]): number {
  const before = gaps.filter(({ to }) => to < from).map((gap) => gap.skippedAt);
  return skippedAt - Math.max(behindAt, ...before);
}

const nameOf = ({ lane, sequence }: Pick<HandledEffect, "lane" | "sequence">) => `${lane} ${sequence}`;

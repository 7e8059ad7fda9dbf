/** What became of the service's events at a receiver: the service's own ledger against the history that handlers committed. */
import type { Delivery, EventRecord } from "../../../src/emulator/index.ts";

/** What a handler wrote, in the transaction of its event's completion, in that order. */
export interface HandledRow {
  readonly message_id: string | null;
  /** 0 for an inbound message, which has none. */
  readonly sequence: number;
  readonly event_type: string;
}

/** What the service knows: all that happened, and how it was handed over. */
export interface Ledger {
  readonly events: readonly EventRecord[];
  readonly deliveries: readonly Pick<Delivery, "eventId" | "attempts">[];
}

/** Names of events: empty lists are what is hoped for. */
export interface Verdict {
  readonly lost: readonly string[];
  /** Handled twice, or without having happened. */
  readonly twice: readonly string[];
  /** Handled behind a later event of its message. */
  readonly outOfOrder: readonly string[];
  /** Refused for its signature at least once, although every attempt was signed as configured. */
  readonly unverified: readonly string[];
}

export function verdictOn({ events, deliveries }: Ledger, handled: readonly HandledRow[]): Verdict {
  const names = new Map(events.map((event) => [event.eventId, nameOfEvent(event)]));
  const counts = new Map([...names.values()].map((name) => [name, 0]));
  for (const row of handled) counts.set(nameOf(row), (counts.get(nameOf(row)) ?? 1) + 1);
  return {
    lost: [...counts].filter(([, times]) => times === 0).map(([name]) => name),
    twice: [...counts].filter(([, times]) => times > 1).map(([name]) => name),
    outOfOrder: inversions(handled),
    unverified: deliveries
      .filter(({ attempts }) => attempts.some(({ status }) => status === 401))
      .map(({ eventId }) => names.get(eventId) ?? eventId),
  };
}

/** One line for each finding, the first 20. */
export function findings(verdict: Verdict): string[] {
  return [
    ...verdict.lost.map((name) => `lost ${name}`),
    ...verdict.twice.map((name) => `twice ${name}`),
    ...verdict.outOfOrder.map((name) => `out of order ${name}`),
    ...verdict.unverified.map((name) => `unverified ${name}`),
  ].slice(0, 20);
}

/** The counts, in words. */
export function countsOf({ lost, twice, outOfOrder, unverified }: Verdict): string {
  return `${lost.length} lost, ${twice.length} twice, ${outOfOrder.length} out of order, ${unverified.length} unverified`;
}

function inversions(rows: readonly HandledRow[]): string[] {
  const highest = new Map<string, number>();
  return rows
    .filter((row) => {
      const id = row.message_id ?? "";
      const before = highest.get(id) ?? -1;
      highest.set(id, Math.max(before, row.sequence));
      return row.sequence < before;
    })
    .map(nameOf);
}

export const nameOf = (row: HandledRow) => `${row.message_id} ${row.sequence} ${row.event_type}`;
export const nameOfEvent = (event: EventRecord) => `${event.messageId} ${event.sequence ?? 0} ${event.eventType}`;

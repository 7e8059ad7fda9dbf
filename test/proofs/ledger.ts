/** The emulator's ledger against what handlers committed: the same judge, for programmes that send through the emulator. */
import type { Delivery, Emulator, EventRecord } from "../../src/messaging/emulator/index.ts";
import { type Breach, breachesOf, type HandledEffect } from "./history.ts";

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

/** Each event must have been handled, once and in its place. */
export function verdictOn({ events, deliveries }: Ledger, handled: readonly HandledRow[]): Verdict {
  const names = new Map(events.map((event) => [event.eventId, nameOfEvent(event)]));
  const effects = handled.map((row): HandledEffect => {
    const { message_id, sequence } = row;
    return { identity: nameOf(row), lane: message_id ?? "", sequence, attempt: 1, late: false, replay: false };
  });
  const stored = new Map(effects.map((effect) => [effect.identity, { ...effect, state: "handled", attempts: 1 }]));
  const breaches = breachesOf({
    ...{ sent: names.values(), forged: [], acknowledged: new Set(names.values()), replayed: [], effects },
    ...{ stored: [...stored.values()], moment: "ended", everyHandlerWrites: true },
  });
  return {
    lost: eventsOf(breaches, "lost"),
    twice: [...new Set([...eventsOf(breaches, "double"), ...eventsOf(breaches, "phantom")])],
    outOfOrder: eventsOf(breaches, "inversion"),
    unverified: deliveries
      .filter(({ attempts }) => attempts.some(({ status }) => status === 401))
      .map(({ eventId }) => names.get(eventId) ?? eventId),
  };
}

/** The identities of a kind of breach, which are names here. */
function eventsOf(breaches: readonly Breach[], kind: Breach["kind"]): string[] {
  return breaches.filter((breach) => breach.kind === kind).map(({ identity }) => identity);
}

/** One line for each finding, the first 20. */
export function findings({ lost, twice, outOfOrder, unverified }: Verdict): string[] {
  return [
    ...lost.map((name) => `lost ${name}`),
    ...twice.map((name) => `twice ${name}`),
    ...outOfOrder.map((name) => `out of order ${name}`),
    ...unverified.map((name) => `unverified ${name}`),
  ].slice(0, 20);
}

/** The counts, in words. */
export function countsOf({ lost, twice, outOfOrder, unverified }: Verdict): string {
  return `${lost.length} lost, ${twice.length} twice, ${outOfOrder.length} out of order, ${unverified.length} unverified`;
}

const nameOf = (row: HandledRow) => `${row.message_id} ${row.sequence} ${row.event_type}`;
const nameOfEvent = (event: EventRecord) => `${event.messageId} ${event.sequence ?? 0} ${event.eventType}`;

/** What the service knows while it goes on. */
export interface Watched {
  readonly events: readonly EventRecord[];
  readonly deliveries: ReadonlyMap<string, Delivery>;
}

/** All that the service knows, also of what it forgets. */
export function watched({ control }: Emulator): Watched {
  const events: EventRecord[] = [];
  const deliveries = new Map<string, Delivery>();
  control.watch((entry) => {
    if (entry.type === "event") events.push(entry.event);
    if (entry.type === "delivery") deliveries.set(entry.delivery.deliveryId, entry.delivery);
  });
  return { events, deliveries };
}

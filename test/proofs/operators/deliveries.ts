/** What an inbox of several people is sent: events of messages, invoices that they share, and bodies that are not events. */
import type { InboxStore, KnownEvent } from "../../../src/index.ts";
import { fixtures, lifecycle, type SignedRequest, shuffled, signedRequest } from "../../../src/tools/testing/index.ts";
import { otherIdentity, serviceIdentity } from "../sources.ts";

export const NAMES = ["messages", "billing"] as const;

const MESSAGES = 10;
const INVOICES = 12;
/** One number is the beginning of another, and one is all digits. */
export const PEOPLE = ["+1415555010", "+14155550101", "14155550102"] as const;
export type Person = (typeof PEOPLE)[number];

export interface Delivery {
  readonly source: (typeof NAMES)[number];
  /** Empty for a body that is not an event. */
  readonly identity: string;
  /** Who is named in it. */
  readonly person: Person;
  readonly content: object | string;
}

/** Begins a body that no parser took when it came, and one of a later version takes. */
const NOT_YET = "not yet: ";

/** Shuffled; those of another `round` are others. */
export function newDeliveries(round: string, now: number, random: () => number): readonly Delivery[] {
  const anyone = () => PEOPLE[Math.floor(random() * PEOPLE.length)] ?? PEOPLE[0];
  const outbound = (event: object, person: Person): Delivery => {
    const identity = serviceIdentity(event as KnownEvent);
    return { source: "messages", identity, person, content: event };
  };
  const messages = Array.from({ length: MESSAGES }, (_, index) => {
    const person = anyone();
    const options = { messageId: `msg_${round}_${index}`, occurredAt: now, data: { to: person } };
    return lifecycle(options).map((event) => outbound(event, person));
  });
  const invoices = Array.from({ length: INVOICES }, (_, index): Delivery => {
    const person = anyone();
    const data = { id: `in_${round}_${index % 2}`, phone: person };
    const event = fixtures.stripe({ id: `evt_${round}_${index}`, data });
    const content = { ...event, created: event.created + index };
    return { source: "billing", identity: otherIdentity("billing", JSON.stringify(content)), person, content };
  });
  const others = PEOPLE.flatMap((person): readonly Delivery[] => {
    const event = fixtures.queued({ messageId: `msg_${round}_of_${person}`, occurredAt: now, data: { to: person } });
    const later = outbound(event, person);
    const unknown = { messageId: `msg_${round}_about_${person}`, sequence: 1, occurredAt: now, data: { note: person } };
    return [
      // Nothing but its body tells whom it is about.
      outbound(fixtures.unknown(unknown), person),
      { source: "messages", identity: "", person, content: textNaming(person, round) },
      { source: "messages", identity: "", person, content: JSON.stringify({ round, to: person }) },
      { ...later, content: `${NOT_YET}${JSON.stringify(event)}` },
    ];
  });
  return shuffled([...messages.flat(), ...invoices, ...others], random);
}

/** A body that is not JSON. */
function textNaming(person: Person, round: string): string {
  return `${person}, call (${round}) ${person}: 4155550102, ${person}0`;
}

export function requestOf({ source, content }: Delivery, timestamp: number): SignedRequest {
  return source === "billing"
    ? signedRequest(content, { timestamp, source: "stripe" })
    : signedRequest(content, { timestamp });
}

/** Whether it was kept in the quarantine, and is an event for the version that reads it now. */
export function isForLater({ content }: Delivery): boolean {
  return typeof content === "string" && content.startsWith(NOT_YET);
}

/** As if an older version had kept what this one can read. */
export function keepingForLater<Tx>(store: InboxStore<Tx>): InboxStore<Tx> {
  const step: typeof store.step = (turn) => {
    const quarantines = turn.quarantines.map((each) => {
      const text = Buffer.from(each.raw).toString();
      return text.startsWith(NOT_YET) ? { ...each, raw: Buffer.from(text.slice(NOT_YET.length)) } : each;
    });
    return store.step({ ...turn, quarantines });
  };
  return { ...store, step };
}

/** What the demo sends: shuffled lifecycles, repeats, and everything that a receiver has to refuse or set aside. */
import type { WebhookEvent } from "oncehook";
import { fixtures, lifecycle, seededRandom, shuffled } from "oncehook/testing";

const MESSAGES = 100;
const MINUTE_MS = 60_000;

export type DeliveryKind = "event" | "duplicate" | "forged" | "stale" | "malformed" | "no event";

export interface Delivery {
  readonly kind: DeliveryKind;
  readonly body: string;
  readonly secret: "current" | "previous" | "wrong";
  /** How old its timestamp is. */
  readonly ageMs: number;
  /** Sent in the place of the signature. */
  readonly signature?: string;
  /** The event, for those that carry one and are signed. */
  readonly event?: EventKey;
}

export interface EventKey {
  /** An event of an unknown type that names no message has none. */
  readonly messageId: string | null;
  readonly sequence: number;
  readonly eventType: string;
}

/** The same for the sender, the receiver's output and its table. */
export function nameOf({ messageId, sequence, eventType }: EventKey): string {
  return `${messageId}/${sequence}/${eventType}`;
}

export interface Load {
  /** In the order of sending. */
  readonly deliveries: readonly Delivery[];
  readonly events: readonly EventKey[];
  /** Messages whose handler fails twice for each of their events. */
  readonly failsTwice: readonly string[];
  /** Once these are acknowledged the receiver is killed: half of the load is over, and their handler still has to fail twice. */
  readonly killAt: readonly EventKey[];
  /** Messages that end with `message.failed`. */
  readonly endsFailed: ReadonlySet<string>;
}

/** The same seed makes the same load. */
export function createLoad(seed: number, now: number): Load {
  const random = seededRandom(seed);
  const ids = Array.from({ length: MESSAGES }, (_, index) => `msg_${String(index + 1).padStart(3, "0")}`);
  const endsFailed = new Set(ids.filter((_, index) => index % 7 === 3));
  const messages = ids.map((messageId) => {
    const ending = endsFailed.has(messageId) ? "failed" : "delivery";
    return shuffled(lifecycle({ messageId, occurredAt: now, ending }), random);
  });
  const others: WebhookEvent[] = [
    fixtures.inbound({ occurredAt: now }),
    fixtures.unknown({ occurredAt: now }) as unknown as WebhookEvent, // Its type is declared as "none of the known".
  ];
  const events = [...interleaved(messages, random), ...others];
  const originals = events.map((event) => deliveryOf(event, random() < 0.3 ? "previous" : "current"));
  const duplicates = shuffled(originals, random)
    .slice(0, 60)
    .map((original): Delivery => ({ ...original, kind: "duplicate" }));
  const keys = originals.flatMap(({ event }) => event ?? []);
  const failsTwice = ids.filter((_, index) => index % 20 === 11);
  return {
    deliveries: interleaved([originals, duplicates, ...refused(random, now)], random),
    events: keys,
    failsTwice,
    killAt: keys.filter(({ messageId }) => messageId === failsTwice[Math.floor(failsTwice.length / 2)]),
    endsFailed,
  };
}

/** Merges lists, each in its own order, as requests of many senders meet on their way. */
function interleaved<T>(lists: readonly (readonly T[])[], random: () => number): T[] {
  const placed = lists.flatMap((list, row) =>
    list.map((item, index) => {
      // Short lists, messages, lie next to their neighbours; long ones spread over the whole.
      const at = list.length > 3 ? ((index + random()) / list.length) * lists.length : row + random() * 5 + index;
      return { item, at };
    }),
  );
  return placed.sort((a, b) => a.at - b.at).map(({ item }) => item);
}

function deliveryOf(event: WebhookEvent, secret: Delivery["secret"]): Delivery {
  return { kind: "event", body: JSON.stringify(event), secret, ageMs: 0, event: keyOf(event) };
}

/** What the example writes to its table for the event. */
function keyOf(event: WebhookEvent): EventKey {
  if (event.eventType === "message.inbound")
    return { messageId: event.data.messageId, sequence: 0, eventType: event.eventType };
  const { messageId, sequence, eventType } = event;
  return {
    messageId: typeof messageId === "string" ? messageId : null,
    sequence: typeof sequence === "number" ? sequence : 0,
    eventType,
  };
}

function refused(random: () => number, now: number): Delivery[][] {
  const body = () =>
    JSON.stringify(fixtures.sent({ messageId: `forged_${Math.floor(random() * 1e9)}`, occurredAt: now }));
  const make = (count: number, delivery: () => Delivery) => Array.from({ length: count }, delivery);
  return [
    make(20, () => ({ kind: "forged", body: body(), secret: "wrong", ageMs: 0 })),
    make(12, () => ({ kind: "stale", body: body(), secret: "current", ageMs: 91 * MINUTE_MS })),
    make(12, () => ({
      kind: "malformed",
      body: body(),
      secret: "current",
      ageMs: 0,
      signature: "sha256=not-a-signature",
    })),
    make(8, () => ({ kind: "no event", body: body().slice(0, -20), secret: "current", ageMs: 0 })),
  ];
}

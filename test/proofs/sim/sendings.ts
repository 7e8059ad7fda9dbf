/** What the service sends in a world, and when: lifecycles with all that goes wrong on the way, and what is not the service's. */
import type { KnownEvent } from "../../../src/index.ts";
import { fixtures, lifecycle } from "../../../src/tools/testing/index.ts";
import type { OtherSource, SourceName } from "../sources.ts";
import type { Dice } from "./dice.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** When every world begins, epoch milliseconds. */
export const BEGINNING = 1_760_000_000_000;

/** Something that is delivered: until a 2xx is heard, or once. */
export interface Sending {
  readonly source: SourceName;
  /** Milliseconds after the world's beginning. */
  readonly at: number;
  /** An event, or a body that is none. */
  readonly content: object | string;
  /** What the body hides, to be known again by. */
  readonly marker: string;
  /** With the receiver's secret, or a wrong one; `altered` is signed well and changed on the way. */
  readonly signed: "well" | "wrongly" | "altered";
  /** Retried by the service's schedule, or one delivery more of something that is sent anyway. */
  readonly retried: boolean;
  /** All attempts carry the first one's timestamp. */
  readonly frozen: boolean;
}

/** @param temper - how much goes wrong: 1 usually, less in a calm world */
export function sendingsOf(dice: Dice, temper: number): Sending[] {
  const frozen = dice.chance(0.2);
  const messages = Array.from({ length: dice.whole(1, 4) }, (_, index) => `msg_${index + 1}`);
  const sendings = messages.flatMap((messageId) => ofMessage(dice, { messageId, temper, frozen }));
  if (dice.chance(0.3)) sendings.push(inbound(dice, frozen));
  if (dice.chance(0.1)) sendings.push(noEvent(dice, "messages", frozen));
  return [...sendings, ...sendings.flatMap((sending) => beside(dice, sending, temper))];
}

/**
 * What the other ones of these sources send.
 *
 * @param lanes - of each source. Default: a few
 */
export function othersOf(dice: Dice, sources: readonly SourceName[], temper: number, lanes?: number): Sending[] {
  const sendings = sources.flatMap((source) => (source === "messages" ? [] : ofOther(dice, source, temper, lanes)));
  return [...sendings, ...sendings.flatMap((sending) => beside(dice, sending, temper))];
}

function ofOther(
  dice: Dice,
  source: OtherSource,
  temper: number,
  length = dice.whole(1, source === "code" ? 3 : 2),
): Sending[] {
  const lanes = Array.from({ length }, (_, index) => `${source}-${index + 1}`);
  const sendings = lanes.flatMap((lane) => ofLane(dice, { lane, source, temper }));
  return dice.chance(0.1) ? [...sendings, noEvent(dice, source, false)] : sendings;
}

/** The first events of so many messages, which come within a second. */
export function backlogOf(dice: Dice, messages: number): Sending[] {
  return Array.from({ length: messages }, (_, index): Sending => {
    const at = dice.between(0, SECOND);
    const content = marked(dice, fixtures.queued({ messageId: `msg_${index}` }), at);
    return { source: "messages", at, ...content, signed: "well", retried: true, frozen: false };
  });
}

interface LaneWish extends Pick<Wish, "temper"> {
  readonly lane: string;
  readonly source: OtherSource;
}

/** Events in a lane of another source; a push of `code` is by itself. */
function ofLane(dice: Dice, { lane, source, temper }: LaneWish): Sending[] {
  let occurredAfter = dice.between(0, 5 * MINUTE);
  return Array.from({ length: source === "code" ? 1 : dice.whole(2, 5) }, (_, index): Sending => {
    // Several within one second are common: to Stripe these are at one position.
    if (index > 0) occurredAfter += dice.spread(10, 30 * SECOND);
    const event = source === "billing" ? bill(lane, index, occurredAfter) : push(lane, index);
    const at = occurredAfter + delayOf(dice, temper);
    return { source, at, ...marked(dice, event, occurredAfter), signed: "well", retried: true, frozen: false };
  });
}

function bill(lane: string, index: number, occurredAfter: number): Markable {
  const event = fixtures.stripe({ id: `evt_${lane}_${index}`, data: { id: lane } });
  return { ...event, created: Math.floor((BEGINNING + occurredAfter) / SECOND) };
}

function push(lane: string, index: number): Markable {
  return fixtures.github({ id: `${index + 1}`.padStart(40, "0"), data: { ref: lane } });
}

interface Wish {
  readonly messageId: string;
  readonly temper: number;
  readonly frozen: boolean;
}

function ofMessage(dice: Dice, { messageId, temper, frozen }: Wish): Sending[] {
  const startsAt = dice.between(0, 3 * MINUTE);
  let occurredAfter = startsAt;
  const sendings: Sending[] = [];
  for (const event of eventsOf(dice, messageId)) {
    occurredAfter += dice.spread(10, 30 * SECOND);
    // One that the service never sends leaves a gap for good.
    if (dice.chance(0.04 * temper)) continue;
    const at = occurredAfter + delayOf(dice, temper);
    const content = marked(dice, event, occurredAfter);
    sendings.push({ source: "messages", at, ...content, signed: "well", retried: true, frozen });
  }
  return sendings;
}

/** Of some messages two events have one sequence, and differ by their type. */
function eventsOf(dice: Dice, messageId: string): KnownEvent[] {
  const events = lifecycleOf(dice, messageId);
  const at = dice.whole(0, events.length - 1);
  const same = events[at];
  if (same === undefined || same.direction === "inbound" || !dice.chance(0.4)) return events;
  const { sequence } = same;
  const isFailure = same.eventType === "message.failed";
  const other = isFailure ? fixtures.sent({ messageId, sequence }) : fixtures.failed({ messageId, sequence });
  return events.toSpliced(at + dice.whole(0, 1), 0, other);
}

/** A failure takes the place of the delivery, or the one behind it. */
function lifecycleOf(dice: Dice, messageId: string): KnownEvent[] {
  const ending = dice.pick(["delivery", "delivery", "failed", "failed behind"] as const);
  if (ending !== "failed behind") return lifecycle({ messageId, ending });
  return [fixtures.queued({ messageId }), fixtures.sent({ messageId }), fixtures.failed({ messageId })];
}

/** Most come at once, some overtake each other. */
function delayOf(dice: Dice, temper: number): number {
  if (!dice.chance(0.4 * temper)) return dice.spread(1, SECOND);
  return dice.spread(SECOND, 5 * MINUTE);
}

/** An event, whose field `data` takes the marker. */
type Markable = object & { readonly data?: object; readonly created?: number };

function marked(dice: Dice, event: Markable, occurredAfter: number): Pick<Sending, "content" | "marker"> {
  const marker = `sent-${Math.floor(dice.next() * 2 ** 32).toString(16)}`;
  const data = { ...event.data, externalReference: marker };
  return { content: { ...event, occurredAt: BEGINNING + Math.round(occurredAfter), data }, marker };
}

function inbound(dice: Dice, frozen: boolean): Sending {
  const at = dice.between(0, 5 * MINUTE);
  return { source: "messages", at, ...marked(dice, fixtures.inbound(), at), signed: "well", retried: true, frozen };
}

function noEvent(dice: Dice, source: SourceName, frozen: boolean): Sending {
  const at = dice.between(0, 5 * MINUTE);
  return { source, at, content: `{"no": "event"`, marker: "no-event", signed: "well", retried: true, frozen };
}

/** More deliveries of the same: repeated, with other content (under its identity, unless the body is the identity), or forged. */
function beside(dice: Dice, sending: Sending, temper: number): Sending[] {
  const once = { ...sending, retried: false };
  const later = () => sending.at + dice.spread(1, 10 * MINUTE);
  const more: Sending[] = [];
  if (dice.chance(0.25 * temper)) more.push({ ...once, at: dice.chance(0.3) ? sending.at : later() });
  if (typeof sending.content === "string") return more;
  if (dice.chance(0.05 * temper)) more.push({ ...once, ...remarked(sending, `other-${sending.marker}`), at: later() });
  if (dice.chance(0.1 * temper)) {
    const at = Math.max(0, sending.at - dice.spread(1, MINUTE));
    const signed = dice.pick(["wrongly", "altered"] as const);
    more.push({ ...once, ...remarked(sending, `forged-${sending.marker}`), signed, at });
  }
  return more;
}

function remarked({ content }: Sending, marker: string): Pick<Sending, "content" | "marker"> {
  const event = content as Markable;
  return { content: { ...event, data: { ...event.data, externalReference: marker } }, marker };
}

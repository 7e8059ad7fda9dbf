/** Which event a body is: its known type, its identity and its lane. The body contains no event id (EVT-12), so they follow from its fields. */
import { hash } from "node:crypto";
import type { KnownEvent, KnownEventType, WebhookEvent } from "./types.ts";

/** The event types that the specification lists (EVT-1), in the order of a message's life. */
export const KNOWN_EVENT_TYPES = [
  "message.queued",
  "message.sent",
  "message.delivery",
  "message.failed",
  "message.inbound",
] as const satisfies readonly KnownEventType[];

const knownTypes: ReadonlySet<string> = new Set(KNOWN_EVENT_TYPES);

/** Whether an event type is one that the specification lists (EVT-1). */
export function isKnownEventType(eventType: string): eventType is KnownEventType {
  return knownTypes.has(eventType);
}

/** Whether an event is of a type that the specification lists; narrows it to {@link KnownEvent}. */
export function isKnownEvent(event: WebhookEvent): event is KnownEvent {
  return knownTypes.has(event.eventType);
}

/** `outbound`: one lane per outbound message, in ascending sequence. Lanes with another tag contain one unordered event each. */
export type LaneTag = "outbound" | "inbound" | "unlaned";

/** Identifies a lane. For `unlaned`, `messageId` is the hex SHA-256 of the body. */
export interface LaneKey {
  /** Empty when the body has none (`unlaned` only). */
  readonly apiClientId: string;
  readonly tag: LaneTag;
  readonly messageId: string;
}

/**
 * The message's id if it may be shown. Null for `unlaned`: someone who knows all of a body except eight digits of a
 * phone number could find these digits with the body's digest.
 */
export function publicId({ tag, messageId }: LaneKey): string | null {
  return tag === "unlaned" ? null : messageId;
}

/** The lane of an event and its place there. */
export interface EventPlace {
  readonly lane: LaneKey;
  /** 0 for events that have no place in a sequence. */
  readonly sequence: number;
}

/** The longest string that an identity can contain, in UTF-16 code units. */
export const MAX_IDENTITY_TEXT = 512;

/**
 * Whether a value can be part of an identity: a string of 1 to 512 characters of well-formed Unicode. A lone surrogate
 * would be stored as U+FFFD, so two identities could become one.
 */
export function isIdentityText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= MAX_IDENTITY_TEXT && value.isWellFormed();
}

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Buffer {
  return hash("sha256", bytes, "buffer");
}

/**
 * The lane and the sequence of a parsed event. An outbound event gets its place in its message's lane, even if its type is
 * unknown, if it has both ids and an integer sequence (RCV-11); every other event has a lane of its own.
 *
 * @param bodyDigest Returns the hex SHA-256 of the body; called only for an event that has no place in a message's lane.
 */
export function lanePlaceOf(event: WebhookEvent, bodyDigest: () => string): EventPlace {
  // Adding 0 turns a sequence of -0 into 0, for stores that distinguish them.
  if (isKnownEvent(event)) {
    const { apiClientId } = event;
    return event.direction === "outbound"
      ? { lane: { apiClientId, tag: "outbound", messageId: event.messageId }, sequence: event.sequence + 0 }
      : { lane: { apiClientId, tag: "inbound", messageId: event.data.messageId }, sequence: 0 };
  }
  const { apiClientId, direction, messageId, sequence } = event;
  const hasClient = isIdentityText(apiClientId);
  if (direction === "outbound" && hasClient && isIdentityText(messageId) && isInteger(sequence)) {
    return { lane: { apiClientId, tag: "outbound", messageId }, sequence: sequence + 0 };
  }
  return { lane: { apiClientId: hasClient ? apiClientId : "", tag: "unlaned", messageId: bodyDigest() }, sequence: 0 };
}

/** Hex SHA-256 of the identity's JSON array: users see it as `ctx.identity` and can use it as an idempotency key. */
export function identityOf(lane: LaneKey, sequence: number, eventType: string): string {
  return hash("sha256", JSON.stringify(identityParts(lane, sequence, eventType)));
}

/**
 * The identity of an event: the same for every delivery of it, whatever its timestamp and signature (EVT-12, RCV-6).
 *
 * @param body The exact bytes the event was parsed from; used only for an event that has no place in a message's lane.
 * @returns 64 hex digits.
 */
export function eventIdentity(event: WebhookEvent, body: Uint8Array): string {
  const { lane, sequence } = lanePlaceOf(event, () => sha256(body).toString("hex"));
  return identityOf(lane, sequence, event.eventType);
}

function identityParts(lane: LaneKey, sequence: number, eventType: string): readonly (string | number)[] {
  switch (lane.tag) {
    case "outbound":
      return ["o", lane.apiClientId, lane.messageId, sequence, eventType];
    case "inbound":
      return ["i", lane.apiClientId, lane.messageId];
    case "unlaned":
      return ["u", lane.apiClientId, lane.messageId];
    default:
      return lane.tag satisfies never;
  }
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

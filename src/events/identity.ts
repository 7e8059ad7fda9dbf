/** What makes two deliveries the same event, and the lane it waits in: the body carries no event id (EVT-12). */
import { hash } from "node:crypto";
import { isKnownEvent, type WebhookEvent } from "./types.ts";

/** `outbound`: one lane per outbound message, in ascending sequence. The others hold one unordered event each. */
export type LaneTag = "outbound" | "inbound" | "unlaned";

/** What makes a lane the same lane. For `unlaned`, `messageId` is the hex SHA-256 of the body. */
export interface LaneKey {
  /** Empty when the body carries none (`unlaned` only). */
  readonly apiClientId: string;
  readonly tag: LaneTag;
  readonly messageId: string;
}

/**
 * The message's id as it may be told to anybody. Null for `unlaned`: whoever knows all of a body but eight digits of a
 * number would find them by its digest.
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

/** The longest string that takes part in an identity, in UTF-16 code units. */
export const MAX_IDENTITY_TEXT = 512;

/**
 * Whether a value can take part in an identity: a string of 1 to 512 characters of well-formed Unicode. A lone surrogate
 * would be stored as U+FFFD, so that two identities became one.
 */
export function isIdentityText(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= MAX_IDENTITY_TEXT && value.isWellFormed();
}

/** SHA-256, 32 bytes. */
export function sha256(bytes: Uint8Array): Buffer {
  return hash("sha256", bytes, "buffer");
}

/**
 * The lane and the sequence of a parsed event. An outbound event takes its place in its message's lane, also when its type is
 * unknown, if it has both ids and an integer sequence (RCV-11); every other event has a lane of its own.
 *
 * @param bodyDigest Hex SHA-256 of the body; called only for an event without a place of its own.
 */
export function placeOf(event: WebhookEvent, bodyDigest: () => string): EventPlace {
  // Adding 0 makes a sequence written as -0 the number 0, for stores that would tell them apart.
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
 * @param body The exact bytes the event was parsed from; they count only for an event without a place of its own.
 * @returns 64 hex digits.
 */
export function eventIdentity(event: WebhookEvent, body: Uint8Array): string {
  const { lane, sequence } = placeOf(event, () => sha256(body).toString("hex"));
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

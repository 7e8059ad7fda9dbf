/**
 * Parses a verified body into an event, or returns the reason why it is not one: strict JSON first, then the shape of each known type. Then
 * which event it is: its identity and its lane. The body contains no event id (EVT-12), so they follow from its fields.
 */

import { isUint8Array } from "node:util/types";
import { z } from "zod";
import { ID_TEXT_RULE, identityOf, isIdText } from "../../inbox/lane-key.ts";
import { type JsonFailureCode, type JsonResult, readJson, sha256 } from "../../internal/json.ts";
import { isRecord } from "../../internal/options.ts";
import { type EventPlace, locate } from "../define-source.ts";
import type { Place } from "../definition.ts";
import type { KnownEvent, KnownEventType, UnknownEvent, WebhookEvent } from "./types.ts";
import { kindOf } from "./webhook-kind.ts";

/**
 * Why a body is not an event: the codes of {@link JsonFailureCode}, and
 * - `not_an_object`: JSON, but not an object.
 * - `invalid_event`: an object with the wrong shape or with values out of bounds; `issues` lists where.
 */
export type ParseFailureCode = JsonFailureCode | "not_an_object" | "invalid_event";

export interface ParseFailure {
  readonly ok: false;
  readonly code: ParseFailureCode;
  /** Paths and rules, such as `data.to: expected string`; never a value of the body. */
  readonly issues: readonly string[];
}

/** A typed event, or why the body is not one. */
export type ParseResult = { readonly ok: true; readonly event: WebhookEvent } | ParseFailure;

const AGREEMENT_RULE = "messageId: expected the value of data.messageId";

/**
 * Parses an event; verify its signature first. Never throws.
 *
 * Known types (EVT-1) are checked field by field. Fields and statuses that the specification does not show are kept. An
 * event of an unknown type parses to an `UnknownEvent` (RCV-11).
 *
 * @param input The body's bytes, decoded as strict UTF-8 (no byte order mark, at most 64 levels deep, no duplicate key). Any
 * other value counts as JSON that was already parsed. Prefer bytes: a parser drops duplicate keys, so they cannot be detected.
 * @example
 * const result = parseEvent(body);
 * if (result.ok && result.event.eventType === "message.delivery") console.log(result.event.data.status);
 */
export function parseEvent(input: unknown): ParseResult {
  const json = isUint8Array(input) ? readJson(input) : readParsed(input);
  if (!json.ok) return failure(json.code, []);
  const { value } = json;
  if (!isRecord(value)) return failure("not_an_object", notAnObject(value));
  const { eventType } = value;
  if (typeof eventType === "string" && isKnownEventType(eventType)) return parseKnown(eventType, value);
  if (!isIdText(eventType)) return failure("invalid_event", [`eventType: ${ID_TEXT_RULE}`]);
  return parseUnknown(value);
}

/** Goes through bytes, so that a parsed value is checked by the same rules and the event shares no object with it. */
function readParsed(value: unknown): JsonResult {
  try {
    const text = JSON.stringify(value);
    if (text === undefined) return { ok: false, code: "invalid_json" };
    return readJson(Buffer.from(text));
  } catch {
    // A cycle, a bigint, or a toJSON that throws.
    return { ok: false, code: "invalid_json" };
  }
}

function parseKnown(eventType: KnownEventType, value: unknown): ParseResult {
  const result = eventSchemas[eventType].safeParse(value);
  if (!result.success) return failure("invalid_event", result.error.issues.map(describe));
  const event: KnownEvent = result.data;
  if (!isIdText(event.apiClientId)) return failure("invalid_event", [`apiClientId: ${ID_TEXT_RULE}`]);
  if (!isIdText(event.data.messageId)) return failure("invalid_event", [`data.messageId: ${ID_TEXT_RULE}`]);
  const topLevel: unknown = result.data.messageId;
  // Only an inbound event has none here.
  if (topLevel !== undefined && topLevel !== event.data.messageId) return failure("invalid_event", [AGREEMENT_RULE]);
  return { ok: true, event };
}

/** Refuses only what would harm a lane. With other unexpected values the event gets no place in its message's lane (RCV-11). */
function parseUnknown(value: Readonly<Record<string, unknown>>): ParseResult {
  const { direction, messageId, sequence, data } = value;
  if (typeof sequence === "number" && Number.isInteger(sequence) && (sequence < 0 || sequence > MAX_SEQUENCE)) {
    return failure("invalid_event", [`sequence: expected 0 to ${MAX_SEQUENCE}`]);
  }
  const inner = isRecord(data) ? data.messageId : undefined;
  if (direction === "outbound" && typeof messageId === "string" && typeof inner === "string" && messageId !== inner) {
    return failure("invalid_event", [AGREEMENT_RULE]);
  }
  // The only place that brands an event type as unknown: it is a valid string and not a known type.
  return { ok: true, event: value as UnknownEvent };
}

function failure(code: ParseFailureCode, issues: readonly string[]): ParseFailure {
  return { ok: false, code, issues };
}

function notAnObject(value: unknown): readonly string[] {
  if (typeof value === "string") return ["expected the body's bytes, or an object; this is text"];
  return ["expected an object"];
}

function describe(issue: z.core.$ZodIssue): string {
  return `${issue.path.join(".")}: ${ruleOf(issue)}`;
}

/** The highest accepted sequence: one event with a huge sequence would make all later events of its message late. */
const MAX_SEQUENCE = 10_000;

const messageErrorSchema = z.looseObject({
  code: z.string(),
  message: z.string(),
  details: z.looseObject({}),
});

const outboundData = {
  messageId: z.string(),
  externalReference: z.string(),
  sendFrom: z.string(),
  to: z.string(),
  status: z.string(),
  error: messageErrorSchema.nullable(),
};

const inboundData = {
  messageId: z.string(),
  conversationId: z.string(),
  numberId: z.string(),
  from: z.string(),
  to: z.string(),
  body: z.string(),
  media: z.array(z.unknown()),
  timestamp: z.int(),
};

const commonFields = { occurredAt: z.int(), apiClientId: z.string() };

const outboundFields = {
  ...commonFields,
  direction: z.literal("outbound"),
  messageId: z.string(),
  sequence: z.int().min(0).max(MAX_SEQUENCE),
};

/** A schema for each known event type: loose, so that fields that the specification does not show are kept. `z.int()` accepts safe integers only. */
export const eventSchemas = {
  "message.queued": z.looseObject({
    eventType: z.literal("message.queued"),
    ...outboundFields,
    data: z.looseObject(outboundData),
  }),
  "message.sent": z.looseObject({
    eventType: z.literal("message.sent"),
    ...outboundFields,
    data: z.looseObject(outboundData),
  }),
  "message.delivery": z.looseObject({
    eventType: z.literal("message.delivery"),
    ...outboundFields,
    data: z.looseObject({ ...outboundData, providerMessageRef: z.string().nullish() }),
  }),
  "message.failed": z.looseObject({
    eventType: z.literal("message.failed"),
    ...outboundFields,
    data: z.looseObject({ ...outboundData, error: messageErrorSchema }),
  }),
  "message.inbound": z.looseObject({
    eventType: z.literal("message.inbound"),
    direction: z.literal("inbound"),
    ...commonFields,
    data: z.looseObject(inboundData),
  }),
} satisfies Record<KnownEventType, z.ZodType>;

/** Describes a broken rule without the value. zod's own messages are not used: the application can replace them with ones that quote values. */
export function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${issue.expected}`;
    case "invalid_value":
      return `expected ${issue.values.map(String).join(" or ")}`;
    case "too_small":
      return `expected at least ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}`;
    default:
      return issue.code;
  }
}

/** After these events the service sends no more events of a message (EVT-8, EVT-9). */
export const TERMINAL_EVENT_TYPES: readonly KnownEventType[] = ["message.delivery", "message.failed"];

export function isTerminal(eventType: string): boolean {
  return (TERMINAL_EVENT_TYPES as readonly string[]).includes(eventType);
}

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

/** The source of a receiver of the messaging service alone, and the name of the preset. */
export const SERVICE = "service";

/**
 * An outbound event gets its place in its message's lane, even if its type is unknown, if it has both ids and an integer sequence (RCV-11);
 * every other event is by itself. An event of an unknown type without an `apiClientId` says nothing of its tenant.
 *
 * @param digest - the hex SHA-256 of the body; called only for an event that has no place in a message's lane and no id
 */
export function messagePlace(event: WebhookEvent, digest: () => string): Place {
  const { eventType: type } = event;
  const kind = kindOf(event);
  if (isKnownEvent(event)) {
    const { apiClientId: tenant, occurredAt } = event;
    if (event.direction === "inbound")
      return { type, kind, tenant, occurredAt, id: event.data.messageId, about: event.data.from };
    const { messageId: lane, sequence: at, data } = event;
    return { type, kind, tenant, occurredAt, lane, at, about: data.to, reference: data.externalReference };
  }
  const { apiClientId, direction, messageId, sequence } = event;
  const occurredAt = event.occurredAt as number | undefined;
  const tenant = isIdText(apiClientId) ? apiClientId : undefined;
  const isInMessage =
    direction === "outbound" && tenant !== undefined && isIdText(messageId) && Number.isSafeInteger(sequence);
  return isInMessage
    ? { type, kind, tenant, occurredAt, lane: messageId, at: sequence as number }
    : { type, kind, tenant, occurredAt, id: digest() };
}

/**
 * Where the inbox keeps a parsed event.
 *
 * @param digest - as of `messagePlace`
 * @param source - the name of its entry
 */
export function placeOf(event: WebhookEvent, digest: () => string, source: string = SERVICE): EventPlace {
  const place = messagePlace(event, digest);
  const found = locate(place, source, place.tenant ?? null, "sequence");
  if (found === null) throw new RangeError("The event was not made by parseEvent().");
  return found;
}

/**
 * The identity of an event, as `ctx.identity` of a receiver of the messaging service alone: the same for every delivery of it, whatever its
 * timestamp and signature (EVT-12, RCV-6).
 *
 * @param body The exact bytes the event was parsed from; used only for an event that has no place in a message's lane.
 * @returns 64 hex digits.
 */
export function eventIdentity(event: WebhookEvent, body: Uint8Array): string {
  return identityOf({ ...placeOf(event, () => sha256(body).toString("hex")), eventType: event.eventType });
}

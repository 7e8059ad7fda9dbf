/**
 * Parses a verified body into an event, or returns the reason why it is not one: strict JSON first, then the shape of each known type. Then
 * which event it is: its identity and its lane. The body contains no event id (EVT-12), so they follow from its fields.
 */

import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { isUint8Array } from "node:util/types";
import { z } from "zod";
import { isRecord } from "../internal/options.ts";
import type { KnownEvent, KnownEventType, UnknownEvent, WebhookEvent } from "./types.ts";

/** The longest string that an identity can contain, in UTF-16 code units. */
const MAX_IDENTITY_TEXT = 512;

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

export type ParseResult = { readonly ok: true; readonly event: WebhookEvent } | ParseFailure;

const IDENTITY_TEXT_RULE = `expected 1 to ${MAX_IDENTITY_TEXT} characters of well-formed Unicode`;
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
  if (!isIdentityText(eventType)) return failure("invalid_event", [`eventType: ${IDENTITY_TEXT_RULE}`]);
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
  if (!isIdentityText(event.apiClientId)) return failure("invalid_event", [`apiClientId: ${IDENTITY_TEXT_RULE}`]);
  if (!isIdentityText(event.data.messageId)) return failure("invalid_event", [`data.messageId: ${IDENTITY_TEXT_RULE}`]);
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

/** The deepest accepted nesting of objects and arrays. */
export const MAX_DEPTH = 64;

/**
 * - `invalid_utf8`, `byte_order_mark`: the bytes are not plain UTF-8 text.
 * - `too_deep`: objects and arrays nest more than 64 levels.
 * - `invalid_json`: not JSON.
 * - `forbidden_key`: a key `__proto__`, which could change an object's prototype when it is copied.
 * - `duplicate_key`: an object has the same key twice, so that two readers could see different events.
 */
export type JsonFailureCode =
  | "invalid_utf8"
  | "byte_order_mark"
  | "too_deep"
  | "invalid_json"
  | "forbidden_key"
  | "duplicate_key";

export type JsonResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: JsonFailureCode };

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = 0xfeff;
/** The only bit in which `[` differs from `{`, and `]` from `}`. Setting it turns no other character into a brace. */
const BRACE_BIT = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const TOO_DEEP = -1;
const FORBIDDEN = -1;

/** Reads bytes as strict JSON: valid UTF-8, bounded depth, and no key that two readers could see differently. Never throws. */
export function readJson(bytes: Uint8Array): JsonResult {
  const text = decode(bytes);
  if (text === undefined) return { ok: false, code: "invalid_utf8" };
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) return { ok: false, code: "byte_order_mark" };
  const pairs = countPairs(text);
  if (pairs === TOO_DEEP) return { ok: false, code: "too_deep" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the body, so it is dropped.
    return { ok: false, code: "invalid_json" };
  }
  const keys = countKeys(value);
  if (keys === FORBIDDEN) return { ok: false, code: "forbidden_key" };
  // Keys are counted after escapes were resolved: "sequence" and "\u0073equence" are one key in two pairs.
  if (keys !== pairs) return { ok: false, code: "duplicate_key" };
  return { ok: true, value };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    if (!isUtf8(bytes)) return undefined;
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return buffer.toString("utf8");
  } catch {
    // A detached buffer, or one longer than any string.
    return undefined;
  }
}

/** The number of key/value pairs in a text of valid JSON, or `TOO_DEEP`. For invalid JSON the number has no meaning. */
function countPairs(text: string): number {
  const { length } = text;
  let pairs = 0;
  let depth = 0;
  for (let index = 0; index < length; index++) {
    const char = text.charCodeAt(index);
    if (char === QUOTE) index = closingQuote(text, index + 1);
    else if (char === COLON) pairs++;
    else if ((char | BRACE_BIT) === OPEN) {
      if (++depth > MAX_DEPTH) return TOO_DEEP;
    } else if ((char | BRACE_BIT) === CLOSE) depth--;
  }
  return pairs;
}

/** The index of the quote that ends the string whose content starts at `start`. Jumping with `indexOf` makes the pass cheap. */
function closingQuote(text: string, start: number): number {
  let quote = text.indexOf('"', start);
  while (quote !== -1) {
    let content = quote;
    // Ends at the opening quote at the latest.
    while (text.charCodeAt(content - 1) === BACKSLASH) content--;
    // An even number of backslashes escape each other; with an odd number, the last one escapes the quote.
    if ((quote - content) % 2 === 0) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

/** The number of keys in a JSON value of bounded depth, or `FORBIDDEN`. */
function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const isArray = Array.isArray(value);
  if (!isArray && Object.hasOwn(value, "__proto__")) return FORBIDDEN;
  const children: readonly unknown[] = isArray ? value : Object.values(value);
  let keys = isArray ? 0 : children.length;
  for (const child of children) {
    if (typeof child !== "object" || child === null) continue;
    const inner = countKeys(child);
    if (inner === FORBIDDEN) return FORBIDDEN;
    keys += inner;
  }
  return keys;
}

/**
 * Whether two bodies have the same JSON value, ignoring key order, white space and escapes: a retry that was serialised again is not a
 * conflict. Numbers are compared as parsed, so `0` and `-0` are equal. False when either body is not strict JSON.
 */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  const left = readJson(a);
  const right = readJson(b);
  return left.ok && right.ok && sameValue(left.value, right.value);
}

function sameValue(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && sameElements(a, b);
  if (isRecord(a)) return isRecord(b) && sameFields(a, b);
  return a === b;
}

function sameElements(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((element, index) => sameValue(element, b[index]));
}

function sameFields(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameValue(a[name], b[name]))
  );
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

/**
 * Whether a value can be part of an identity: a string of 1 to 512 characters of well-formed Unicode. A lone surrogate
 * would be stored as U+FFFD, so two identities could become one.
 */
function isIdentityText(value: unknown): value is string {
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

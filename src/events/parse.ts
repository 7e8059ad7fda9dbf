/** From a verified body to an event, or to the reason why it is none. */

import { isUint8Array } from "node:util/types";
import type { z } from "zod";
import { isRecord } from "../internal/type-guards.ts";
import { isIdentityText, MAX_IDENTITY_TEXT } from "./identity.ts";
import { ruleOf } from "./rule-of.ts";
import { eventSchemas, MAX_SEQUENCE } from "./schema.ts";
import { type JsonFailureCode, type JsonResult, readJson } from "./structure.ts";
import {
  isKnownEventType,
  type KnownEvent,
  type KnownEventType,
  type UnknownEvent,
  type WebhookEvent,
} from "./types.ts";

/**
 * Why a body is no event: the codes of {@link JsonFailureCode}, and
 * - `not_an_object`: JSON, but no object.
 * - `invalid_event`: an object that breaks the shape or the bounds of an event; `issues` says where.
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
 * Known types (EVT-1) are checked field by field, fields and statuses that the specification does not show are kept, and an
 * event of an unknown type parses to an `UnknownEvent` (RCV-11).
 *
 * @param input The body's bytes, decoded as strict UTF-8 (no byte order mark, at most 64 levels deep, no duplicate key); any
 * other value is taken as JSON that was parsed already. Prefer bytes: a parser has dropped duplicate keys before we can see them.
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

/** Takes the way through bytes, so that a parsed value meets the same rules and the event shares nothing with it. */
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
  // Only an inbound event gets here without one.
  if (topLevel !== undefined && topLevel !== event.data.messageId) return failure("invalid_event", [AGREEMENT_RULE]);
  return { ok: true, event };
}

/** Refuses only what would harm a lane; anything else odd leaves the event without a place in one (RCV-11). */
function parseUnknown(value: Readonly<Record<string, unknown>>): ParseResult {
  const { direction, messageId, sequence, data } = value;
  if (typeof sequence === "number" && Number.isInteger(sequence) && (sequence < 0 || sequence > MAX_SEQUENCE)) {
    return failure("invalid_event", [`sequence: expected 0 to ${MAX_SEQUENCE}`]);
  }
  const inner = isRecord(data) ? data.messageId : undefined;
  if (direction === "outbound" && typeof messageId === "string" && typeof inner === "string" && messageId !== inner) {
    return failure("invalid_event", [AGREEMENT_RULE]);
  }
  // The one place where an event type gets the mark of an unknown one: it is a valid string and in no known type.
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

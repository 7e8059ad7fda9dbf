/** What every call refuses whatever `validateRequests` says: it could not be sent, or not be told apart from another call. */

import type { Bounds } from "../internal/options.ts";
import { isAbortSignal, isRecord } from "../internal/type-guards.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../internal/webhook-kind.ts";
import type { CallOptions } from "./call.ts";
import { RETRY_BOUNDS, TIMEOUT_BOUNDS } from "./options.ts";
import { unknownFieldIssue } from "./requests.ts";

/** Visible ASCII: what every HTTP implementation carries in a header unchanged. */
const KEY = /^[\x21-\x7e]{1,255}$/;
/** A token of RFC 9110, 5.6.2. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/;
const HEADER_VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;
/** What the client sets itself, and what belongs to the connection (RFC 9110, 7.6.1). */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...["accept", "authorization", "content-encoding", "content-length", "content-type", "idempotency-key"],
  ...["connection", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);
const MOST_HEADERS = 50;
const METHODS: readonly unknown[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Of the last argument of a call. */
export function optionIssues(options: unknown, known: readonly string[]): string[] {
  if (options === undefined) return [];
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return ["options: must be an object, such as { signal }"];
  }
  const issues = Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => unknownFieldIssue("options.", name, known));
  const { signal, timeoutMs, maxRetries, headers }: { [Name in keyof CallOptions]?: unknown } = options;
  if (signal !== undefined && !isAbortSignal(signal)) issues.push("options.signal: must be an AbortSignal");
  issues.push(...numberIssues("timeoutMs", timeoutMs, TIMEOUT_BOUNDS));
  issues.push(...numberIssues("maxRetries", maxRetries, RETRY_BOUNDS), ...headerIssues(headers));
  return issues;
}

function numberIssues(name: string, value: unknown, { min, max, unit }: Bounds): string[] {
  if (value === undefined) return [];
  const fits = typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
  return fits ? [] : [`options.${name}: must be a whole number from ${min} to ${max} ${unit}`];
}

/** Names are shown only where they are plain; values never. */
function headerIssues(headers: unknown): string[] {
  if (headers === undefined) return [];
  const isPlain = isRecord(headers) && !(headers instanceof Headers);
  if (!isPlain) return ['options.headers: must be an object of names and values, such as { "x-trace": "1" }'];
  const entries = Object.entries(headers);
  if (entries.length > MOST_HEADERS) return [`options.headers: must hold at most ${MOST_HEADERS} headers`];
  return entries.flatMap(([name, value]) => headerIssue(name, value) ?? []);
}

function headerIssue(name: string, value: unknown): string | null {
  if (!HEADER_NAME.test(name)) return "options.headers: a name is not the name of a header";
  const shown = /^[a-z-]{1,40}$/i.test(name) ? `options.headers.${name}` : "options.headers: a header";
  if (OWN_HEADERS.has(name.toLowerCase())) return `${shown}: is set by the client itself; leave it out`;
  if (typeof value === "string" && value.length <= 8_192 && HEADER_VALUE.test(value)) return null;
  return `${shown}: must be a text of at most 8192 visible ASCII characters, with spaces only in between`;
}

export function keyIssues(key: unknown): string[] {
  return typeof key === "string" && KEY.test(key)
    ? []
    : ["options.idempotencyKey: must be 1 to 255 visible ASCII characters"];
}

/** `.` and `..` would be taken out of the path, so that another route would get the call. */
export function numberIdIssues(numberId: unknown): string[] {
  const isSegment = typeof numberId === "string" && numberId.isWellFormed() && !["", ".", ".."].includes(numberId);
  return isSegment ? [] : ["numberId: must be a numberId as numbers.list() shows it"];
}

export function methodIssues(method: unknown): string[] {
  return METHODS.includes(method) ? [] : [`method: must be ${METHODS.join(", ")}, in capitals`];
}

/** A path that leads to another place than it says, or to another host, would take the token there. */
export function pathIssues(path: unknown): string[] {
  const isPath = typeof path === "string" && /^\/(?!\/)[\x21\x24-\x5b\x5d-\x7e]*$/.test(path);
  if (!isPath) return ['path: must begin with one slash, and be encoded: visible ASCII without # " and backslash'];
  const segments = (path.split("?")[0] ?? "").split("/");
  return segments.some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment)) ? ["path: must have no . or .. in it"] : [];
}

export function kindIssues(kind: unknown): string[] {
  return isWebhookKind(kind) ? [] : [`kind: ${WEBHOOK_KIND_RULE}`];
}

/** The JSON of a request; undefined for what has none. */
export function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** Of the argument that `body` was made of. */
export function bodyIssues(name: string, value: unknown, body: string | undefined): string[] {
  if (body !== undefined) return [];
  return [`${name}: ${value === undefined ? "is missing; it must be an object" : "cannot be written as JSON"}`];
}

/** What every call refuses whatever `validateRequests` says: it could not be sent, or not be told apart from another call. */
import { isAbortSignal } from "../internal/abort-signal.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../internal/webhook-kind.ts";
import { unknownFieldIssue } from "./requests.ts";

/** Visible ASCII: what every HTTP implementation carries in a header unchanged. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Of the last argument of a call. */
export function optionIssues(options: unknown, known: readonly string[]): string[] {
  if (options === undefined) return [];
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    return ["options: must be an object, such as { signal }"];
  }
  const issues = Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => unknownFieldIssue("options.", name, known));
  const { signal }: { signal?: unknown } = options;
  if (signal !== undefined && !isAbortSignal(signal)) issues.push("options.signal: must be an AbortSignal");
  return issues;
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

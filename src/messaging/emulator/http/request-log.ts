/** The log of API calls, without secrets (TOK-22) and of bounded length. */
import type { ApiAction } from "../faults.ts";
import type { Service } from "../service.ts";
import type { Client, RequestRecord } from "../state/records.ts";
import type { Contract, EmulatorAnswer } from "./answers.ts";
import { parseForm, type RequestBody } from "./route.ts";

/** Kept of a body: 16 KiB of its text. */
const MOST_LOGGED = 16_384;
/** Kept of a path, and of a body from a caller that proved nothing: anybody can make such calls, and their lines are kept. */
const MOST_UNPROVEN = 1024;

interface LoggedCall {
  readonly request: Request;
  readonly path: string;
  readonly contract: Contract;
  readonly now: number;
  readonly body: RequestBody;
  readonly client: Client | null;
  readonly answer: EmulatorAnswer;
  readonly warnings: readonly string[];
  readonly faults: readonly ApiAction[];
}

export function logRequest(service: Service, call: LoggedCall): void {
  const { request, answer } = call;
  const number = service.state.nextNumber("log");
  const record: RequestRecord = {
    number,
    at: call.now,
    method: request.method,
    path: cutText(redactedPath(call.path), MOST_UNPROVEN),
    apiClientId: call.client?.apiClientId ?? null,
    headers: loggedHeaders(request.headers),
    body: requestBodyOf(service, call),
    status: statusOf(answer),
    responseBody: responseBodyOf(answer, mostOf(call)),
    warnings: call.warnings,
    faults: call.faults.map(({ type }) => type),
  };
  service.state.requests.put(String(number), record);
  service.journal.tell({ type: "request", request: record });
}

function loggedHeaders(headers: Headers): Record<string, string> {
  return cutHeaders([...headers].map(([name, value]) => [name, redactedHeader(name, value)]));
}

/** The answer of a fault rule is part of a test, whatever client called. */
function mostOf({ client, faults }: LoggedCall): number {
  return client === null && faults.length === 0 ? MOST_UNPROVEN : MOST_LOGGED;
}

function statusOf(answer: EmulatorAnswer): number {
  if ("status" in answer) return answer.status;
  return answer.kind === "reset" ? 0 : 502;
}

function responseBodyOf(answer: EmulatorAnswer, most: number): unknown {
  if (answer.kind === "reply") return cut(redacted(JSON.parse(answer.text)), { length: answer.text.length, most });
  return answer.kind === "refusal" ? { code: answer.code, message: answer.message, details: answer.details } : null;
}

/** Of a body that is neither JSON nor a form only the length is kept: nothing in it tells secrets from the rest. */
function requestBodyOf(service: Service, call: LoggedCall): unknown {
  const { request, contract, body } = call;
  if (body.bytes === null) return "[longer than 1 MiB]";
  const length = body.bytes.byteLength;
  if (length === 0) return "";
  const size = { length, most: mostOf(call) };
  const parsed = body.json();
  if (parsed.ok && contract === "core") return cut(redacted(parsed.value), size);
  const fields = parsed.ok ? Object.entries(parsed.value) : formFields(request.headers, body.bytes);
  if (fields === null) return `[${length} bytes]`;
  const clientIds = new Set([...service.state.clients.values()].map(({ clientId }) => clientId));
  return cut(redactedCredentials(fields, clientIds), size);
}

function formFields(headers: Headers, bytes: Uint8Array): Iterable<readonly [string, string]> | null {
  if (!/^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "")) return null;
  const form = parseForm(new TextDecoder().decode(bytes));
  return form.ok ? form.fields : null;
}

/** What was `length` long, or the beginning of its text. */
function cut(value: unknown, { length, most }: { length: number; most: number }): unknown {
  if (length <= most) return value;
  const text = JSON.stringify(value);
  return text.length <= most ? value : cutText(text, most, length);
}

// Takes secrets out of what is logged (TOK-22).

const REDACTED = "[redacted]";

/** Headers that carry credentials, also those of schemes that the service does not have (GEN-6). */
const SECRET_HEADER = /auth|cookie|secret|token|password|credential|api-?key|signing-?key/i;
/** Looked for in a field's name without its hyphens and underscores, also as users misspell or extend it. */
const SECRET_FIELD = /secret|password|passphrase|credential|authorization|token|(?:api|signing|private)key/i;
/** A field's name in a form, in XML, or in JSON that was cut. Each word is begun once: anybody may send a long one. */
const NAME = /\b(\w+)["']?\s*[:=>]/g;
/** A client's id, which may be a secret in the wrong place. */
const CLIENT_ID = /^clientid$/i;
/** What `grant_type` may show; anything else may be a form whose separators are wrong. */
const GRANTS: ReadonlySet<unknown> = new Set(["client_credentials", "password", "authorization_code", "refresh_token"]);

export function redactedHeader(name: string, value: string): string {
  return SECRET_HEADER.test(name) ? REDACTED : withoutCredentials(value);
}

/** A path without what stands behind the token route's: a client secret that somebody put there. */
function redactedPath(path: string): string {
  return path.replace(/(\/api\/auth\/token\/*)[^/].*$/is, `$1${REDACTED}`);
}

/** A URL without user name and password; any other text as it is. A secret in its query cannot be told from other values. */
export function withoutCredentials(url: string): string {
  // Any slashes after http(s), and what comes before the last @ of the host: as a URL is parsed, though this need not be one.
  return url.replace(/^(\s*(?:https?:[\\/\s]*|[a-z][a-z\d+.-]*:\/\/))(?:[^\\/?#\s][^\\/?#]*)?@/i, "$1");
}

/** A JSON value without what its field names call a secret, whatever its type, and without credentials in URLs. */
function redacted(value: unknown): unknown {
  if (typeof value === "string") return withoutCredentials(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [
    name,
    isSecret(name, field) ? REDACTED : redacted(field),
  ]);
  return Object.fromEntries(entries);
}

/** A text from anybody: JSON as `redacted` has it. Of another one that has such a field only the length: it may end anywhere. */
export function redactedText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const shown = JSON.stringify(redacted(value));
    return shown === JSON.stringify(value) ? text : shown;
  } catch {
    // No JSON, or nested deeper than the stack.
    return hasNamedSecret(text) ? `[${Buffer.byteLength(text)} bytes]` : withoutCredentials(text);
  }
}

function hasNamedSecret(text: string): boolean {
  for (const [, name = ""] of text.replace(/[-_]/g, "").matchAll(NAME)) if (SECRET_FIELD.test(name)) return true;
  return false;
}

/** Flags such as `hasCurrentSecret` are none, nor are two fields of the service's own answers. */
function isSecret(name: string, value: unknown): boolean {
  if (typeof value === "boolean" || value === null) return false;
  if (name === "previousSecretValidUntil" && typeof value === "number") return false;
  if (name === "token_type" && value === "bearer") return false;
  const bare = name.replace(/[^a-z\d]/gi, "");
  return SECRET_FIELD.test(bare) || CLIENT_ID.test(bare);
}

/** The fields of a token request: those whose value is a known one, and that there were others. */
function redactedCredentials(
  fields: Iterable<readonly [string, unknown]>,
  clientIds: ReadonlySet<unknown>,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    if (name === "grant_type") shown[name] = GRANTS.has(value) ? value : "[unknown]";
    else if (name === "client_id") shown[name] = clientIds.has(value) ? value : "[unknown]";
    else if (name === "client_secret") shown[name] = REDACTED;
    // Not even their names: one may be a secret that lost its own.
    else shown["other fields"] = REDACTED;
  }
  return shown;
}

// Long texts and headers, shortened for a log that keeps many.

/** Kept of one header's value, and of its name. */
const MOST_OF_HEADER = 1024;
const MOST_HEADERS = 64;
/** Kept of all headers of a call together; then come no more. */
const MOST_OF_HEADERS = 4096;

/** The beginning of a text that is longer than `most`, with a mark. `length`: of what the text stands for. */
function cutText(text: string, most: number, length = text.length): string {
  return text.length <= most ? text : `${copied(text.slice(0, most))} [cut, ${length} in all]`;
}

/** The first of the entries. */
function cutHeaders(headers: readonly (readonly [name: string, value: string])[]): Record<string, string> {
  const kept: [string, string][] = [];
  let left = MOST_OF_HEADERS;
  for (const [name, value] of headers) {
    if (left <= 0 || kept.length === MOST_HEADERS) {
      // No header can have this name.
      kept.push(["[cut]", `${headers.length} in all`]);
      break;
    }
    const header: [string, string] = [cutText(name, MOST_OF_HEADER), cutText(value, MOST_OF_HEADER)];
    kept.push(header);
    left -= header.join("").length;
  }
  return Object.fromEntries(kept);
}

/** With memory of its own: a slice keeps the whole text that it was cut from. */
function copied(text: string): string {
  return Buffer.from(text).toString();
}

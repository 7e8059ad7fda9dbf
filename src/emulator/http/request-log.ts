/** The log of API calls, without secrets (TOK-22) and of bounded length. */
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import type { Client, RequestRecord } from "../state/records.ts";
import type { Answer } from "./answers.ts";
import type { Body } from "./body.ts";
import { cutHeaders, cutText } from "./cut.ts";
import { parseForm } from "./form.ts";
import { redacted, redactedCredentials, redactedHeader, redactedPath } from "./redaction.ts";
import type { Contract } from "./responses.ts";

/** Kept of a body: 16 KiB of its text. */
const MOST_LOGGED = 16_384;
/** Kept of a path, and of a body from a caller that proved nothing: anybody can make such calls, and their lines are kept. */
const MOST_UNPROVEN = 1024;

export interface LoggedCall {
  readonly request: Request;
  readonly path: string;
  readonly contract: Contract;
  readonly now: number;
  readonly body: Body;
  readonly client: Client | null;
  readonly answer: Answer;
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

/** What a fault rule answered is somebody's test, whoever called. */
function mostOf({ client, faults }: LoggedCall): number {
  return client === null && faults.length === 0 ? MOST_UNPROVEN : MOST_LOGGED;
}

function statusOf(answer: Answer): number {
  if ("status" in answer) return answer.status;
  return answer.kind === "reset" ? 0 : 502;
}

function responseBodyOf(answer: Answer, most: number): unknown {
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

/** The log of API calls, without secrets (TOK-22) and of bounded length. */
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import type { Client, RequestRecord } from "../state/records.ts";
import type { Answer } from "./answers.ts";
import type { Body } from "./body.ts";
import { parseForm } from "./form.ts";
import { redacted, redactedCredentials, redactedHeader, redactedPath } from "./redaction.ts";
import type { Contract } from "./responses.ts";

/** Kept of a body: 16 KiB of its text. */
const MOST_LOGGED = 16_384;

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
    path: redactedPath(call.path).slice(0, MOST_LOGGED),
    apiClientId: call.client?.apiClientId ?? null,
    headers: loggedHeaders(request.headers),
    body: requestBodyOf(service, call),
    status: statusOf(answer),
    responseBody: responseBodyOf(answer),
    warnings: call.warnings,
    faults: call.faults.map(({ type }) => type),
  };
  service.state.requests.put(String(number), record);
  service.journal.tell({ type: "request", request: record });
}

function loggedHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].map(([name, value]) => [name, redactedHeader(name, value)]));
}

function statusOf(answer: Answer): number {
  if ("status" in answer) return answer.status;
  return answer.kind === "reset" ? 0 : 502;
}

function responseBodyOf(answer: Answer): unknown {
  if (answer.kind === "reply") return cut(redacted(JSON.parse(answer.text)), answer.text.length);
  return answer.kind === "refusal" ? { code: answer.code, message: answer.message, details: answer.details } : null;
}

/** Of a body that is neither JSON nor a form only the length is kept: nothing in it tells secrets from the rest. */
function requestBodyOf(service: Service, { request, contract, body }: LoggedCall): unknown {
  if (body.bytes === null) return "[longer than 1 MiB]";
  const length = body.bytes.byteLength;
  if (length === 0) return "";
  const parsed = body.json();
  if (parsed.ok && contract === "core") return cut(redacted(parsed.value), length);
  const fields = parsed.ok ? Object.entries(parsed.value) : formFields(request.headers, body.bytes);
  if (fields === null) return `[${length} bytes]`;
  const clientIds = new Set([...service.state.clients.values()].map(({ clientId }) => clientId));
  return cut(redactedCredentials(fields, clientIds), length);
}

function formFields(headers: Headers, bytes: Uint8Array): Iterable<readonly [string, string]> | null {
  if (!/^application\/x-www-form-urlencoded\b/i.test(headers.get("content-type") ?? "")) return null;
  const form = parseForm(new TextDecoder().decode(bytes));
  return form.ok ? form.fields : null;
}

/** What was `length` long, or the beginning of its text. */
function cut(value: unknown, length: number): unknown {
  if (length <= MOST_LOGGED) return value;
  return `${JSON.stringify(value).slice(0, MOST_LOGGED)} [cut, ${length} in all]`;
}

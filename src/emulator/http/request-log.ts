/** The log of API calls, without secrets (TOK-22). */
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import type { Client, RequestRecord } from "../state/records.ts";
import type { Answer } from "./answers.ts";

const REDACTED = "[redacted]";
const SECRET_HEADERS = new Set(["authorization", "cookie", "proxy-authorization"]);
const SECRET_FIELDS = new Set(["client_secret", "access_token", "secret", "generatedSecret"]);

export interface LoggedCall {
  readonly request: Request;
  readonly path: string;
  readonly now: number;
  /** Null when it was too long to be read. */
  readonly rawBody: Uint8Array | null;
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
    path: call.path,
    apiClientId: call.client?.apiClientId ?? null,
    headers: redactedHeaders(request.headers),
    body: call.rawBody === null ? "[longer than 1 MiB]" : redactedBody(call.rawBody),
    status: statusOf(answer),
    responseBody: responseBodyOf(answer),
    warnings: call.warnings,
    faults: call.faults.map(({ type }) => type),
  };
  service.state.requests.put(String(number), record);
  service.journal.tell({ type: "request", request: record });
}

function statusOf(answer: Answer): number {
  if ("status" in answer) return answer.status;
  return answer.kind === "reset" ? 0 : 502;
}

function responseBodyOf(answer: Answer): unknown {
  if (answer.kind === "reply") return redacted(JSON.parse(answer.text));
  return answer.kind === "refusal" ? { code: answer.code, message: answer.message, details: answer.details } : null;
}

function redactedHeaders(headers: Headers): Record<string, string> {
  const entries = [...headers].map(([name, value]) => [name, SECRET_HEADERS.has(name) ? REDACTED : value]);
  return Object.fromEntries(entries);
}

function redactedBody(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes);
  try {
    return redacted(JSON.parse(text));
  } catch {
    // A form, or neither: then nothing tells its secrets from the rest.
    return text.includes("=") ? redacted(Object.fromEntries(new URLSearchParams(text))) : `[${bytes.byteLength} bytes]`;
  }
}

function redacted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [
    name,
    SECRET_FIELDS.has(name) && typeof field === "string" ? REDACTED : redacted(field),
  ]);
  return Object.fromEntries(entries);
}

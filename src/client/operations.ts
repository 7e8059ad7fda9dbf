/** What each method asks of which route, and how its arguments are checked. */
import { randomUUID } from "node:crypto";
import type { CallOptions, CoreCall, RequestMethod, RequestOptions, SendOptions } from "./call.ts";
import { recordOf } from "./refusal.ts";
import {
  bodyIssues,
  jsonOf,
  keyIssues,
  kindIssues,
  methodIssues,
  numberIdIssues,
  numberUpdateIssues,
  optionIssues,
  pathIssues,
  searchIssues,
  sendIssues,
  webhookUpdateIssues,
} from "./requests.ts";
import { numbersOf, type Operation, sendResultOf, updatedConfigOf, updatedNumberOf } from "./responses.ts";
import type {
  NumberSearch,
  NumberSearchResult,
  NumberUpdate,
  PhoneNumber,
  SendRequest,
  SendResult,
  UpdatedWebhookConfig,
  WebhookDefaults,
  WebhookKind,
  WebhookUpdate,
  Whoami,
} from "./types.ts";

/** Whether requests are held to the service's rules before they are made. */
export interface Checks {
  readonly validateRequests: boolean;
}

/** The one place where the service's JSON becomes a type: its schema was looked at as `validateResponses` says. */
function asShown<T>(body: unknown): T {
  return body as T;
}

const CALL_OPTIONS = ["signal", "timeoutMs", "maxRetries", "headers"] as const satisfies (keyof CallOptions)[];
const SEND_OPTIONS = [...CALL_OPTIONS, "idempotencyKey"] as const satisfies (keyof SendOptions)[];
const REQUEST_OPTIONS = [...SEND_OPTIONS, "body"] as const satisfies (keyof RequestOptions)[];
/** A repetition of these does no more than the first (RFC 9110, 9.2.2). */
const REPEATABLE: ReadonlySet<unknown> = new Set<RequestMethod>(["GET", "PUT", "DELETE"]);
/** A part of a path that identifies nothing. */
const PLAIN_PART = /^(?:[A-Za-z][A-Za-z_-]{0,39}|v\d{1,3})?$/;

export function whoamiCall(options?: CallOptions): CoreCall<Whoami> {
  return readCall<Whoami>("whoami", "/api/core/whoami", { operation: "whoami", options, read: asShown });
}

export function webhooksGetCall(options?: CallOptions): CoreCall<WebhookDefaults> {
  return readCall<WebhookDefaults>("webhooks.get", "/api/core/webhooks", {
    operation: "webhooks.get",
    options,
    read: asShown,
  });
}

export function webhooksUpdateCall(
  checks: Checks,
  kind: WebhookKind,
  change: { readonly update: WebhookUpdate; readonly options: CallOptions | undefined },
): CoreCall<UpdatedWebhookConfig> {
  const { update, options } = change;
  const route = `/api/core/webhooks/${kind}`;
  const body = jsonOf(update);
  // What is sent decides: a getter or a toJSON may write another update than the one that is read here.
  const sent: unknown = body === undefined ? undefined : JSON.parse(body);
  const always = [...kindIssues(kind), ...bodyIssues("update", update, body), ...optionIssues(options, CALL_OPTIONS)];
  const issues = checks.validateRequests && always.length === 0 ? webhookUpdateIssues(sent) : always;
  // A lost answer may have held a generated secret, which the service shows only once (WHK-13).
  const isRepeatable = typeof recordOf(sent).secret === "string";
  return {
    operation: "webhooks.update",
    answers: "webhooks.update",
    method: "PATCH",
    route,
    path: route,
    body,
    idempotencyKey: null,
    isRepeatable,
    options,
    issues,
    read: updatedConfigOf,
  };
}

export function numbersListCall(options?: CallOptions): CoreCall<readonly PhoneNumber[]> {
  return readCall("numbers.list", "/api/core/numbers", { operation: "numbers.list", options, read: numbersOf });
}

export function numbersGetCall(numberId: string, options?: CallOptions): CoreCall<PhoneNumber | null> {
  const call = readCall<PhoneNumber | null>("numbers.list", "/api/core/numbers", {
    operation: "numbers.get",
    options,
    read: (body, facts) => numbersOf(body, facts).find((number) => number?.numberId === numberId) ?? null,
  });
  return { ...call, issues: [...numberIdIssues(numberId), ...call.issues] };
}

export function numbersSearchCall(
  checks: Checks,
  search: NumberSearch | undefined,
  options: CallOptions | undefined,
): CoreCall<NumberSearchResult> {
  const body = jsonOf(search ?? {});
  const always = [...bodyIssues("search", search, body), ...optionIssues(options, CALL_OPTIONS)];
  const issues = checks.validateRequests && always.length === 0 ? searchIssues(search) : always;
  const route = "/api/core/numbers/search";
  return {
    operation: "numbers.search",
    answers: "numbers.search",
    method: "POST",
    route,
    path: route,
    body,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues,
    read: asShown,
  };
}

export function numbersUpdateCall(
  checks: Checks,
  numberId: string,
  change: { readonly update: NumberUpdate; readonly options: CallOptions | undefined },
): CoreCall<PhoneNumber | null> {
  const { update, options } = change;
  const body = jsonOf(update);
  const always = [
    ...numberIdIssues(numberId),
    ...bodyIssues("update", update, body),
    ...optionIssues(options, CALL_OPTIONS),
  ];
  const issues = checks.validateRequests && always.length === 0 ? numberUpdateIssues(update) : always;
  return {
    operation: "numbers.update",
    answers: "numbers.update",
    method: "PATCH",
    route: "/api/core/numbers/{numberId}",
    path: always.length === 0 ? `/api/core/numbers/${encodeURIComponent(numberId)}` : "",
    body,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues,
    read: updatedNumberOf,
  };
}

export function messagesSendCall(
  checks: Checks,
  request: SendRequest,
  options: SendOptions | undefined,
): CoreCall<SendResult> {
  const body = jsonOf(request);
  const wrongOptions = optionIssues(options, SEND_OPTIONS);
  const key: unknown = wrongOptions.length > 0 ? undefined : options?.idempotencyKey;
  const wrongKey = key === undefined ? [] : keyIssues(key);
  const always = [...bodyIssues("request", request, body), ...wrongOptions, ...wrongKey];
  const issues = checks.validateRequests && always.length === 0 ? sendIssues(request) : always;
  // Made once for all attempts, and told with every error, so that the send can be taken up again (SND-17).
  const idempotencyKey = typeof key === "string" ? key : randomUUID();
  const route = "/api/core/messages/send";
  return {
    operation: "messages.send",
    answers: "messages.send",
    method: "POST",
    route,
    path: route,
    body,
    idempotencyKey: wrongKey.length > 0 ? null : idempotencyKey,
    isRepeatable: true,
    options,
    issues,
    read: (answer, facts) => sendResultOf(answer, { ...facts, idempotencyKey }),
  };
}

/** A call that this client has no method for. */
export function requestCall(method: RequestMethod, path: string, options?: RequestOptions): CoreCall<unknown> {
  const issues = [...methodIssues(method), ...pathIssues(path), ...optionIssues(options, REQUEST_OPTIONS)];
  const route = issues.length === 0 ? routeOf(path) : "";
  const value = issues.length === 0 ? options?.body : undefined;
  const key = issues.length === 0 ? options?.idempotencyKey : undefined;
  const body = value === undefined ? undefined : jsonOf(value);
  if (value !== undefined) issues.push(...bodyIssues("options.body", value, body));
  if (value !== undefined && method === "GET") issues.push("options.body: a GET has none");
  if (key !== undefined) issues.push(...keyIssues(key));
  return {
    operation: issues.length === 0 ? `${method} ${route}` : "request",
    answers: null,
    method,
    route,
    path,
    body,
    idempotencyKey: issues.length === 0 ? (key ?? null) : null,
    isRepeatable: REPEATABLE.has(method) || key !== undefined,
    options,
    issues,
    read: ({ json }) => json,
  };
}

/** What logs and metrics may be told of a path: no ids, no query. */
function routeOf(path: string): string {
  const [plain = ""] = path.split("?");
  return plain
    .split("/")
    .map((part) => (PLAIN_PART.test(part) ? part : "{id}"))
    .join("/");
}

/** A call that only reads. Written out, because spreading objects together costs more than all else here. */
function readCall<T>(
  answers: Operation,
  route: string,
  { operation, options, read }: Pick<CoreCall<T>, "operation" | "options" | "read">,
): CoreCall<T> {
  return {
    operation,
    answers,
    method: "GET",
    route,
    path: route,
    body: undefined,
    idempotencyKey: null,
    isRepeatable: true,
    options,
    issues: optionIssues(options, CALL_OPTIONS),
    read,
  };
}

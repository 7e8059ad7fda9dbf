/** The way of an API call from its request to its answer and its line in the log, with the faults that are played on it. */
import { sleep } from "../../../internal/clock.ts";
import type { ApiAction } from "../faults.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import {
  type Contract,
  type EmulatorAnswer,
  type EmulatorRefusal,
  logFailure,
  OWN_FAILURE,
  refuse,
  responseFrom,
  truncated,
  usualCode,
  WRONG_TOKEN_METHOD,
} from "./answers.ts";
import { logRequest } from "./request-log.ts";
import type { ApiPlace, CoreRoute, Found, Route, Router } from "./route.ts";
import { type RequestBody, readBody, schemaRefusal, unknownFields } from "./route.ts";

interface ApiCall {
  readonly now: number;
  /** Null outside of the base path. */
  readonly path: string | null;
  readonly contract: Contract;
  readonly request: Request;
  readonly headers: Headers;
  readonly body: RequestBody;
  readonly found: Found<Route> | undefined;
  warn(text: string): void;
  authenticated(client: Client): void;
}

/** Answers a call of the API. */
export async function handleApi(
  service: Service,
  router: Router<Route>,
  request: Request,
  { path, contract }: ApiPlace,
): Promise<Response> {
  const now = service.time.now();
  const requestId = service.state.nextId("req");
  const warnings: string[] = [];
  let client: Client | null = null;
  const call: ApiCall = {
    now,
    path,
    contract,
    request,
    headers: request.headers,
    body: await readBody(request),
    found: path === null ? undefined : router.match(request.method, path),
    warn: (text) => warnings.push(text),
    authenticated: (caller) => {
      client = caller;
    },
  };
  const { answer, faults } = await answered(service, requestId, call);
  const logged = { request, path: path ?? new URL(request.url).pathname, contract, now, body: call.body };
  logRequest(service, { ...logged, client, answer, warnings, faults });
  const response = responseFrom(answer, contract, requestId);
  return faults.some(({ type }) => type === "truncate") ? truncated(response) : response;
}

/** The answer, with the faults that were played on it. */
async function answered(
  service: Service,
  requestId: string,
  call: ApiCall,
): Promise<{ answer: EmulatorAnswer; faults: readonly ApiAction[] }> {
  const { found, request } = call;
  const faults = found === undefined ? [] : service.faults.forCall(`${found.route.method} ${found.route.path}`);
  const answer = (await standIn(service, faults, request)) ?? (await guarded(service, requestId, call));
  const played = answer.kind === "reply" ? [...faults, ...(answer.play ?? [])] : faults;
  return { answer: await afterwards(service, answer, played), faults: played };
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function guarded(service: Service, requestId: string, call: ApiCall): Promise<EmulatorAnswer> {
  try {
    return await route(service, call);
  } catch (error) {
    logFailure(service.settings, error, { requestId, message: "The emulator failed to answer a call." });
    return refuse("SERVER_ERROR", OWN_FAILURE);
  }
}

function route(service: Service, call: ApiCall): EmulatorAnswer | Promise<EmulatorAnswer> {
  const { found, path, contract } = call;
  if (found?.route.kind === "token") return found.route.handle({ ...call, service });
  if (contract === "token") return WRONG_TOKEN_METHOD;
  if (path === null || !/^\/api\/core(?:\/|$)/.test(path)) return outside(service);
  return handleCore(service, { ...call, found: found as Found<CoreRoute> | undefined });
}

/** No part of the service, so no token is asked for; mostly a client that lost the base path (GEN-13). */
function outside({ settings }: Service): EmulatorAnswer {
  return refuse("NOT_FOUND", `There is no such route: the API is under ${settings.basePath}/api/core.`);
}

// A call under `/api/core`: caller, route, headers, body, handler, in the order in which their errors go before each other (AUT-8).

interface CoreCall {
  readonly now: number;
  readonly headers: Headers;
  readonly body: RequestBody;
  /** Undefined where no route matches (GEN-7). */
  readonly found: Found<CoreRoute> | undefined;
  warn(text: string): void;
  /** Told who calls, for the request log. */
  authenticated(client: Client): void;
}

async function handleCore(service: Service, call: CoreCall): Promise<EmulatorAnswer> {
  const { now, headers, found } = call;
  const client = callerOf(service, headers, now);
  if (client === null) return refuse("UNAUTHORIZED", "A valid bearer token is required.");
  call.authenticated(client);
  if (found === undefined || found.route.exists?.(service.settings.readings) === false) {
    return refuse("NOT_FOUND", "There is no such route.");
  }
  const { route, params } = found;
  if (lacksCapability(service, route, client)) {
    return refuse("FORBIDDEN", `This client lacks the capability ${route.capability}.`);
  }
  const early = route.checkHeaders?.(headers) ?? null;
  if (early !== null) return early;
  if (call.body.bytes === null) return refuse("INVALID_REQUEST", "The body is longer than 1 MiB.");
  const fitted = fitBody(service, route, call);
  if (!fitted.ok) return fitted.refusal;
  return route.handle({
    service,
    now,
    client,
    params,
    headers,
    body: fitted.value,
    json: fitted.json,
    warn: call.warn,
  });
}

function lacksCapability(service: Service, route: CoreRoute, client: Client): boolean {
  if (!service.settings.readings["capabilities.enforce"] || route.capability === undefined) return false;
  return !client.capabilities.includes(route.capability);
}

type Fitted =
  | { readonly ok: true; readonly value: unknown; readonly json: unknown }
  | { readonly ok: false; readonly refusal: EmulatorAnswer };

/** What the route's schema makes of the body. */
function fitBody(service: Service, route: CoreRoute, { body, warn }: CoreCall): Fitted {
  if (route.body === undefined) return { ok: true, value: undefined, json: undefined };
  const parsed = body.json();
  if (!parsed.ok) return parsed;
  const unknown = unknownFields(route.body, parsed.value);
  if (unknown.length > 0 && service.settings.readings.unknownFields === "reject") {
    const refusal = refuse("INVALID_REQUEST", "The body has unknown fields.", { unknownFields: unknown });
    return { ok: false, refusal };
  }
  for (const name of unknown) warn(route.lookalikes?.get(name) ?? `unknown field "${name}" was ignored`);
  const fitted = route.body.safeParse(parsed.value);
  if (!fitted.success) return { ok: false, refusal: schemaRefusal(fitted.error) };
  return { ok: true, value: fitted.data, json: parsed.value };
}

// Who calls, by the bearer token (AUT-1 to AUT-7, AUT-9, AUT-11).

/** The client of the request's bearer token; null without a valid token, or when client or account is inactive. */
function callerOf({ state }: Service, headers: Headers, now: number): Client | null {
  const token = state.tokens.get(bearerOf(headers) ?? "");
  if (token === undefined) return null;
  if (now >= token.expiresAt) {
    state.tokens.remove(token.accessToken);
    return null;
  }
  const client = state.clients.get(token.apiClientId);
  return client !== undefined && isActive({ state }, client) ? client : null;
}

/** Whether a client and its parent account may use the service (TOK-9, TOK-10). */
export function isActive({ state }: Pick<Service, "state">, client: Client): boolean {
  return client.status === "ACTIVE" && state.accounts.get(client.accountId)?.status === "ACTIVE";
}

/** Makes the request's own token unknown; for the fault of that name. */
function revokeBearer({ state }: Service, headers: Headers): void {
  state.tokens.remove(bearerOf(headers) ?? "");
}

/** The scheme is matched whatever its case (AUT-9); one space, one token, nothing after it (AUT-2). */
function bearerOf(headers: Headers): string | undefined {
  return /^bearer ([\w.~+/=-]+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}

// The faults of an API call: what stands in the service's place, and what happens to its answer.

/** What answers in the service's place; null when nothing does. */
async function standIn(
  service: Service,
  faults: readonly ApiAction[],
  request: Request,
): Promise<EmulatorAnswer | null> {
  for (const fault of faults) {
    if (fault.type === "delay" && !(await waited(service, fault.ms))) return { kind: "reset" };
    if (fault.type === "revokeToken") revokeBearer(service, request.headers);
    if (fault.type === "badGateway") return { kind: "badGateway" };
    if (fault.type === "reset" && fault.when === "before") return { kind: "reset" };
    if (fault.type === "status") return refusalOf(fault);
  }
  return null;
}

function refusalOf({ status, code, retryAfterSeconds }: Extract<ApiAction, { type: "status" }>): EmulatorRefusal {
  const refusal = {
    kind: "refusal",
    status,
    code: code ?? usualCode(status),
    message: "A fault rule answered this call.",
    details: status === 502 ? { providerStatus: 503 } : {},
  } as const;
  return retryAfterSeconds === undefined
    ? refusal
    : { ...refusal, headers: { "retry-after": String(retryAfterSeconds) } };
}

/** The faults that come after the service did its work. */
async function afterwards(
  service: Service,
  answer: EmulatorAnswer,
  played: readonly ApiAction[],
): Promise<EmulatorAnswer> {
  const late = answer.kind === "reply" ? (answer.play ?? []) : [];
  for (const fault of late) if (fault.type === "delay") await waited(service, fault.ms);
  return played.some((fault) => fault.type === "reset") ? { kind: "reset" } : answer;
}

/** Real time, whatever the emulator's does; false when it closes, for nobody is there any more to wait for the answer. */
async function waited({ settings, closing }: Service, ms: number): Promise<boolean> {
  await sleep(settings.systemClock, ms, closing);
  return !closing.aborted;
}

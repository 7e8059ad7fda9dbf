/** The way of an API call from its request to its answer and its line in the log, with the faults that are played on it. */
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import { type Answer, refuse, WRONG_TOKEN_METHOD } from "./answers.ts";
import { type Body, readBody } from "./body.ts";
import { handleCore } from "./core.ts";
import { logFailure, OWN_FAILURE } from "./own-failure.ts";
import type { ApiPlace } from "./place.ts";
import { afterwards, standIn } from "./played-faults.ts";
import { logRequest } from "./request-log.ts";
import { type Contract, responseFrom, truncated } from "./responses.ts";
import type { CoreRoute, Found, Route, Router } from "./route.ts";

interface ApiCall {
  readonly now: number;
  /** Null outside of the base path. */
  readonly path: string | null;
  readonly contract: Contract;
  readonly request: Request;
  readonly headers: Headers;
  readonly body: Body;
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
): Promise<{ answer: Answer; faults: readonly ApiAction[] }> {
  const { found, request } = call;
  const faults = found === undefined ? [] : service.faults.forCall(`${found.route.method} ${found.route.path}`);
  const answer = (await standIn(service, faults, request)) ?? (await guarded(service, requestId, call));
  const played = answer.kind === "reply" ? [...faults, ...(answer.play ?? [])] : faults;
  return { answer: await afterwards(service, answer, played), faults: played };
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function guarded(service: Service, requestId: string, call: ApiCall): Promise<Answer> {
  try {
    return await route(service, call);
  } catch (error) {
    logFailure(service.settings, error, { requestId, message: "The emulator failed to answer a call." });
    return refuse("SERVER_ERROR", OWN_FAILURE);
  }
}

function route(service: Service, call: ApiCall): Answer | Promise<Answer> {
  const { found, path, contract } = call;
  if (found?.route.kind === "token") return found.route.handle({ ...call, service });
  if (contract === "token") return WRONG_TOKEN_METHOD;
  if (path === null || !/^\/api\/core(?:\/|$)/.test(path)) return outside(service);
  return handleCore(service, { ...call, found: found as Found<CoreRoute> | undefined });
}

/** No part of the service, so no token is asked for; mostly a client that lost the base path (GEN-13). */
function outside({ settings }: Service): Answer {
  return refuse("NOT_FOUND", `There is no such route: the API is under ${settings.basePath}/api/core.`);
}

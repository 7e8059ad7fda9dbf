/** The way of an API call from its request to its answer and its line in the log, with the faults that are played on it. */
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import { type Answer, type Refusal, refuse } from "./answers.ts";
import { type Body, readBody } from "./body.ts";
import { handleCore } from "./core.ts";
import { afterwards, standIn } from "./played-faults.ts";
import { logRequest } from "./request-log.ts";
import { type Contract, responseFrom, truncated } from "./responses.ts";
import { type CoreRoute, type Found, type Route, type Router, TOKEN_PATH } from "./route.ts";

interface ApiCall {
  readonly now: number;
  /** Null outside of the base path. */
  readonly path: string | null;
  readonly request: Request;
  readonly headers: Headers;
  readonly body: Body;
  readonly found: Found<Route> | undefined;
  warn(text: string): void;
  authenticated(client: Client): void;
}

/** Answers a call of the API. `path` is the request's path behind the base path, null when it lies outside of that. */
export async function handleApi(
  service: Service,
  router: Router<Route>,
  request: Request,
  path: string | null,
): Promise<Response> {
  const now = service.time.now();
  const requestId = service.state.nextId("req");
  const warnings: string[] = [];
  let client: Client | null = null;
  const call: ApiCall = {
    now,
    path,
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
  const contract: Contract = path === TOKEN_PATH ? "token" : "core";
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
  return { answer: await afterwards(service, answer, { played, request }), faults: played };
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function guarded(service: Service, requestId: string, call: ApiCall): Promise<Answer> {
  try {
    return await route(service, call);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    service.settings.logger.error({ requestId, reason }, "The emulator failed to answer a call.");
    return refuse("SERVER_ERROR", "The emulator failed to answer; its log says why.");
  }
}

function route(service: Service, call: ApiCall): Answer | Promise<Answer> {
  const { found, path } = call;
  if (found?.route.kind === "token") return found.route.handle({ ...call, service });
  if (path === TOKEN_PATH) return WRONG_TOKEN_METHOD;
  if (path === null || !/^\/api\/core(?:\/|$)/.test(path)) return outside(service);
  return handleCore(service, { ...call, found: found as Found<CoreRoute> | undefined });
}

/** The one OAuth error that fits; its usual status rather than the 404 of GEN-7, which is about core paths. */
const WRONG_TOKEN_METHOD: Refusal = {
  kind: "refusal",
  status: 400,
  code: "invalid_request",
  message: "The token route takes POST.",
  details: {},
};

/** No part of the service, so no token is asked for; mostly a client that lost the base path (GEN-13). */
function outside({ settings }: Service): Answer {
  return refuse("NOT_FOUND", `There is no such route: the API is under ${settings.basePath}/api/core.`);
}

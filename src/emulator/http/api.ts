/** The way of an API call from its request to its answer and its line in the log, with the faults that are played on it. */
import { sleep } from "../../internal/clock.ts";
import type { ApiAction } from "../faults/rule.ts";
import { revokeBearer } from "../routes/bearer.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import { type Answer, refuse } from "./answers.ts";
import { readBody } from "./body.ts";
import { handleCore } from "./core.ts";
import { logRequest } from "./request-log.ts";
import { responseFrom, truncated } from "./responses.ts";
import type { CoreRoute, Route, Router } from "./route.ts";

/** Answers a call of the API. `path` is the request's path behind the base path, null when it lies outside of that. */
export async function handleApi(
  service: Service,
  router: Router<Route>,
  request: Request,
  path: string | null,
): Promise<Response> {
  const { headers } = request;
  const now = service.time.now();
  const requestId = service.state.nextId("req");
  const rawBody = await readBody(request);
  const found = path === null ? undefined : router.match(request.method, path);
  const warnings: string[] = [];
  let client: Client | null = null;

  const faults = found === undefined ? [] : service.faults.forCall(`${found.route.method} ${found.route.path}`);
  const answer =
    (await standIn(service, faults, headers)) ??
    (await guarded(service, requestId, () => {
      if (found?.route.kind === "token") return found.route.handle({ service, now, headers, rawBody });
      return handleCore(service, {
        now,
        headers,
        rawBody,
        found: found as { route: CoreRoute; params: Readonly<Record<string, string>> } | undefined,
        warn: (text) => warnings.push(text),
        authenticated: (caller) => {
          client = caller;
        },
      });
    }));
  const played = answer.kind === "reply" ? [...faults, ...(answer.play ?? [])] : faults;
  const final = await afterwards(service, answer, played);
  logRequest(service, {
    request,
    path: path ?? new URL(request.url).pathname,
    now,
    rawBody,
    client,
    answer: final,
    warnings,
    faults: played,
  });
  const response = responseFrom(final, found?.route.kind ?? "core", requestId);
  return played.some(({ type }) => type === "truncate") ? truncated(response) : response;
}

/** What answers in the service's place; null when nothing does. */
async function standIn(service: Service, faults: readonly ApiAction[], headers: Headers): Promise<Answer | null> {
  for (const fault of faults) {
    if (fault.type === "delay") await sleep(service.settings.systemClock, fault.ms);
    if (fault.type === "revokeToken") revokeBearer(service, headers);
    if (fault.type === "badGateway") return { kind: "badGateway" };
    if (fault.type === "reset" && fault.when === "before") return { kind: "reset" };
    if (fault.type === "status") return refusalOf(fault);
  }
  return null;
}

function refusalOf({ status, code, retryAfterSeconds }: Extract<ApiAction, { type: "status" }>): Answer {
  const usual = status === 429 ? "RATE_LIMITED" : status === 502 ? "UPSTREAM_ERROR" : "SERVER_ERROR";
  const refusal = {
    kind: "refusal",
    status,
    code: code ?? usual,
    message: "A fault rule answered this call.",
    details: status === 502 ? { providerStatus: 503 } : {},
  } as const;
  return retryAfterSeconds === undefined
    ? refusal
    : { ...refusal, headers: { "retry-after": String(retryAfterSeconds) } };
}

/** The faults that come after the service did its work. */
async function afterwards(service: Service, answer: Answer, played: readonly ApiAction[]): Promise<Answer> {
  const late = answer.kind === "reply" ? (answer.play ?? []) : [];
  for (const fault of late) if (fault.type === "delay") await sleep(service.settings.systemClock, fault.ms);
  return played.some((fault) => fault.type === "reset") ? { kind: "reset" } : answer;
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function guarded(service: Service, requestId: string, handle: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await handle();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    service.settings.logger.error({ requestId, reason }, "The emulator failed to answer a call.");
    return refuse("SERVER_ERROR", "The emulator failed to answer; its log says why.");
  }
}

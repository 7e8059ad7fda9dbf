/** One request and its whole answer, or the reason why none came. */
import type { Clock } from "../internal/clock.ts";
import { textOf } from "./body.ts";
import { safeCause } from "./safe-cause.ts";

export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** An answer of any status, read to its end. */
export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Headers;
  readonly response: Response;
  /** Undefined when the body is not JSON. */
  readonly json: unknown;
  readonly isEmpty: boolean;
}

/** No complete answer: the service may or may not have done what was asked. */
export interface NoAnswer {
  readonly kind: "none";
  readonly reason: "connection" | "timeout" | "aborted" | "too_large";
  /** What `fetch` failed with, without what it may hold of the request; of an abort, the signal's reason. */
  readonly cause: unknown;
}

export interface Wire {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Never shown in a cause. */
  readonly secrets: readonly string[];
}

/** Never rejects. Ends at the time-out or the signal even when `fetch` does not heed its own signal. */
export function exchange(
  wire: Wire,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<Answer | NoAnswer> {
  // A hook may have aborted it just now, and an aborted signal tells nobody any more.
  if (signal?.aborted) return Promise.resolve({ kind: "none", reason: "aborted", cause: signal.reason });
  return new Promise((resolve) => {
    const controller = new AbortController();
    const settle = (outcome: Answer | NoAnswer) => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    const interrupt = (outcome: NoAnswer) => {
      settle(outcome);
      controller.abort();
    };
    const onAbort = () => interrupt({ kind: "none", reason: "aborted", cause: signal?.reason });
    const onTimeout = () => interrupt({ kind: "none", reason: "timeout", cause: undefined });
    const timer = wire.clock.setTimeout(onTimeout, wire.timeoutMs);
    timer.keepAlive();
    signal?.addEventListener("abort", onAbort, { once: true });
    ask(wire.fetch, request, controller.signal).then(settle, (error: unknown) => {
      const secrets = [...wire.secrets, ...bearerOf(request)];
      settle({ kind: "none", reason: "connection", cause: safeCause(error, secrets) });
    });
  });
}

async function ask(fetch: Wire["fetch"], request: HttpRequest, signal: AbortSignal): Promise<Answer | NoAnswer> {
  const { url, method, headers, body } = request;
  // A redirect followed would take the token to another host, or make a GET of a POST.
  const init = { method, headers, redirect: "manual", signal } as const;
  const response = await fetch(url, body === undefined ? init : { ...init, body });
  if (response.type === "error") throw new Error("The connection broke.");
  const text = await textOf(response);
  if (text === null) return { kind: "none", reason: "too_large", cause: undefined };
  const json = parsed(text);
  return { kind: "answer", status: response.status, headers: response.headers, response, json, isEmpty: text === "" };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bearerOf({ headers }: HttpRequest): string[] {
  const [, credentials] = headers.authorization?.split(" ") ?? [];
  return credentials === undefined ? [] : [credentials];
}

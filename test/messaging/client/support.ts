/** What the client's tests stand on: a client in front of an emulator, or of a server that answers as a test says; and what it sent. */
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import type { LogFields, Logger } from "../../../src/internal/logger.ts";
import { type Client, type ClientOptions, createClient } from "../../../src/messaging/client/index.ts";
import type { ApiAction } from "../../../src/messaging/emulator/faults.ts";
import type { Emulator, EmulatorOptions, FaultRule } from "../../../src/messaging/emulator/index.ts";
import { endServer, listenOnLoopback } from "../../support/loopback.ts";
import { start } from "../emulator/support.ts";

export { failureOf } from "../../support/failure-of.ts";

/** A request as it was given to `fetch`. */
interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | undefined;
}

export interface Line {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: LogFields;
  readonly message: string;
}

export interface Started {
  readonly client: Client;
  /** Every request so far, token requests included. */
  readonly requests: Sent[];
  /** What was logged. */
  readonly lines: Line[];
  sentTo(path: string): Sent[];
  tokenRequests(): number;
}

export const TOKEN_PATH = "/api/auth/token";
export const SEND_PATH = "/api/core/messages/send";
export const WHOAMI_PATH = "/api/core/whoami";

/** Only what a test is about; the address and the credentials are the emulator's. */
export type StartOptions = Partial<ClientOptions> & { readonly emulator?: EmulatorOptions };

/** A client whose requests go to an emulator without a socket; with `emulator: { port: 0 }` over HTTP. */
export async function startClient(given: StartOptions = {}): Promise<Started & { readonly emulator: Emulator }> {
  const { emulator: settings = {}, ...options } = given;
  const emulator = await start(settings);
  const { url: baseUrl, clientId, clientSecret } = emulator;
  const direct: typeof fetch = (input, init) => emulator.handle(new Request(input, init));
  const inner = settings.port === 0 ? fetch : direct;
  return { emulator, ...started({ baseUrl, clientId, clientSecret, fetch: inner, ...options }) };
}

/** A call that the emulator breaks; always, or so many times. */
export function fault(route: string, action: ApiAction, times?: number): FaultRule {
  return { match: { route }, action, times };
}

export type Answerer = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A number is a status with the body `{}`. The default status is 200; a body that is a text is sent as it is. */
export type Step = number | Answered | Answerer;

interface Answered {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: OutgoingHttpHeaders;
}

/** One step for all requests, or one for each, of which the last is for all that follow. */
export type Answer = Step | readonly Step[];

/** A client in front of a real server that answers its calls by `answer`, and its token requests by `token`. */
export async function startServer(
  answer: Answer,
  options: Partial<ClientOptions> = {},
  token: Answer = (_, response) => response.end(JSON.stringify(tokenBody(`token-${++tokens}`))),
): Promise<Started> {
  const [calls, issue] = [inTurn(answer), inTurn(token)];
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === TOKEN_PATH) issue(request, response);
    else calls(request, response);
  });
  const baseUrl = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  onTestFinished(() => endServer(server));
  return started({ baseUrl, clientId: "client_main", clientSecret: "a-secret", ...options });
}

/** The same, where only the token route matters: calls are answered with `{}`. */
export function startTokens(token: Answer, options: Partial<ClientOptions> = {}): Promise<Started> {
  return startServer(200, { validateResponses: "off", ...options }, token);
}

let tokens = 0;

export function tokenBody(access_token: string, expires_in: unknown = 3600) {
  return { access_token, token_type: "bearer", expires_in };
}

function inTurn(answer: Answer): Answerer {
  const steps: readonly Step[] = Array.isArray(answer) ? answer : [answer as Step];
  let taken = 0;
  return (request, response) => {
    const step = steps[Math.min(taken++, steps.length - 1)] ?? 500;
    if (typeof step === "function") return step(request, response);
    const answered: Answered = typeof step === "number" ? { status: step } : step;
    const { status = 200, body = {}, headers = {} } = answered;
    return response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** Waits between retries are 0 ms. */
function started(options: ClientOptions): Started {
  const requests: Sent[] = [];
  const inner = options.fetch ?? fetch;
  const recording: typeof fetch = (input, init) => {
    const body = typeof init?.body === "string" ? init.body : undefined;
    const { pathname: path } = new URL(String(input));
    requests.push({ method: init?.method ?? "GET", path, headers: new Headers(init?.headers), body });
    return inner(input, init);
  };
  const { lines, logger } = collected();
  const client = createClient({ backoff: { baseMs: 0 }, logger, ...options, fetch: recording });
  const sentTo = (path: string) => requests.filter((request) => request.path === path);
  return { client, requests, lines, sentTo, tokenRequests: () => sentTo(TOKEN_PATH).length };
}

/** A logger that keeps its lines. */
export function collected(): { lines: Line[]; logger: Logger } {
  const lines: Line[] = [];
  const keep = (level: Line["level"]) => (fields: LogFields, message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, logger: { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") } };
}

/** Resolves when `condition` holds; the test's own limit ends it otherwise. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

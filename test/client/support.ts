/** What the client's tests stand on: a client in front of an emulator, and what it sent; a server that answers as a test says. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { type Client, type ClientOptions, createClient, type SendRequest } from "../../src/client/index.ts";
import type { Emulator, EmulatorOptions } from "../../src/emulator/index.ts";
import type { LogFields, Logger } from "../../src/internal/logger.ts";
import { start } from "../emulator/support.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";

/** A request as it was given to `fetch`. */
export interface Sent {
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

export interface StartedClient {
  readonly emulator: Emulator;
  readonly client: Client;
  /** Every request so far, token requests included. */
  readonly requests: Sent[];
  /** What was logged. */
  readonly lines: Line[];
  /** The requests of one route so far. */
  sentTo(path: string): Sent[];
}

/** Only what a test is about; the address and the credentials are the emulator's. */
export type StartOptions = Partial<ClientOptions> & { readonly emulator?: EmulatorOptions };

export const TOKEN_PATH = "/api/auth/token";
export const SEND_PATH = "/api/core/messages/send";

/** A client whose requests go to an emulator without a socket; with `emulator: { port: 0 }` over HTTP. Waits between retries are 0 ms. */
export async function startClient({ emulator: settings = {}, ...options }: StartOptions = {}): Promise<StartedClient> {
  const emulator = await start(settings);
  const handled: typeof fetch = (input, init) => emulator.handle(new Request(input, init));
  const isOverHttp = settings.port !== undefined && settings.port !== null;
  const inner = options.fetch ?? (isOverHttp ? fetch : handled);
  const { requests, recording } = recorded(inner);
  const { lines, logger } = collected();
  const client = createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    backoff: { baseMs: 0 },
    logger,
    ...options,
    fetch: recording,
  });
  return { emulator, client, requests, lines, sentTo: (path) => requests.filter((request) => request.path === path) };
}

/** A send that the emulator accepts. */
export function sendOf(emulator: Emulator, fields: Partial<SendRequest> = {}): SendRequest {
  const base = { sendFrom: emulator.fixtures.numbers.full, to: ["+14155550123"], text: "hello" };
  return { ...base, messageType: "SMS", externalReference: "order-1", ...fields } as SendRequest;
}

/** A `fetch` that keeps what it was given. */
function recorded(inner: typeof fetch): { requests: Sent[]; recording: typeof fetch } {
  const requests: Sent[] = [];
  const recording: typeof fetch = (input, init) => {
    const body = typeof init?.body === "string" ? init.body : undefined;
    const path = new URL(String(input)).pathname;
    requests.push({ method: init?.method ?? "GET", path, headers: new Headers(init?.headers), body });
    return inner(input, init);
  };
  return { requests, recording };
}

/** A logger that keeps its lines. */
export function collected(): { lines: Line[]; logger: Logger } {
  const lines: Line[] = [];
  const keep = (level: Line["level"]) => (fields: LogFields, message: string) => {
    lines.push({ level, fields, message });
  };
  return { lines, logger: { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") } };
}

export { failureOf } from "../support/failure-of.ts";

export type Answerer = (request: IncomingMessage, response: ServerResponse) => void;

export interface StartedServer {
  readonly client: Client;
  readonly requests: Sent[];
  readonly lines: Line[];
  sentTo(path: string): Sent[];
}

/** A client in front of a real server that issues tokens and answers everything else as `answer` says. */
export function startServer(answer: Answerer, options: Partial<ClientOptions> = {}): Promise<StartedServer> {
  return startPlain((request, response) => {
    if (request.url === TOKEN_PATH) issueToken(response);
    else answer(request, response);
  }, options);
}

/** A client in front of a real server that answers everything as `answer` says, token requests included. */
export async function startPlain(answer: Answerer, options: Partial<ClientOptions> = {}): Promise<StartedServer> {
  const server = createServer((request, response) => {
    request.resume();
    answer(request, response);
  });
  const url = await listening(server);
  const { requests, recording } = recorded(options.fetch ?? fetch);
  const { lines, logger } = collected();
  const client = createClient({
    ...{ baseUrl: url, clientId: "client_main", clientSecret: "a-secret", backoff: { baseMs: 0 }, logger },
    ...options,
    fetch: recording,
  });
  return { client, requests, lines, sentTo: (path) => requests.filter((request) => request.path === path) };
}

/** Listens on a free port of loopback until the test ends; gives the address. */
async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  const port = await listenOnLoopback(server);
  onTestFinished(() => endServer(server));
  return `http://127.0.0.1:${port}`;
}

let tokens = 0;

function issueToken(response: ServerResponse): void {
  answerJson(response, 200, { access_token: `token-${++tokens}`, token_type: "bearer", expires_in: 3600 });
}

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A client in front of a real server whose token route answers as `answer` says, and every other route with `{}`. */
export async function startTokens(
  answer: (response: ServerResponse) => unknown,
  options: Partial<ClientOptions> = {},
): Promise<{ client: Client; requests: Sent[]; tokenRequests(): number }> {
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === TOKEN_PATH) answer(response);
    else answerJson(response, 200, {});
  });
  const baseUrl = await listening(server);
  const { requests, recording } = recorded(fetch);
  const { logger } = collected();
  const client = createClient({
    ...{ baseUrl, clientId: "client_main", clientSecret: "a-secret", backoff: { baseMs: 0 }, logger, fetch: recording },
    ...options,
  });
  return { client, requests, tokenRequests: () => requests.filter(({ path }) => path === TOKEN_PATH).length };
}

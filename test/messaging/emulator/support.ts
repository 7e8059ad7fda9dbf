/** What the emulator's tests stand on: calls through `handle`, and a real server that catches webhooks. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { silentLogger } from "../../../src/internal/logger.ts";
import {
  type Credentials,
  createEmulator,
  type Emulator,
  type EmulatorOptions,
} from "../../../src/messaging/emulator/index.ts";
import { endServer } from "../../support/loopback.ts";

/** An emulator without a socket on a virtual clock, closed with the test. */
export async function start(options: EmulatorOptions = {}): Promise<Emulator> {
  const emulator = await createEmulator({ port: null, logger: silentLogger, ...options });
  onTestFinished(() => emulator.close());
  return emulator;
}

/** Ends an emulator, and starts the next one from its export: as text in between, as a file has it. */
export async function startAgain(first: Emulator, options: EmulatorOptions = {}): Promise<Emulator> {
  await first.close();
  return start({ ...options, import: JSON.parse(JSON.stringify(first.control.exportState())) });
}

export interface Called {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; null for an empty body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers whose shape it is about to check
  readonly body: any;
  readonly text: string;
}

export interface CallOptions {
  readonly token?: string;
  /** Sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A call through `handle`: `call(emulator, "GET", "/api/core/whoami", { token })`. */
export async function call(
  emulator: Emulator,
  method: string,
  path: string,
  { token, body, headers = {} }: CallOptions = {},
): Promise<Called> {
  const raw =
    body === undefined || typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  const response = await emulator.handle(
    new Request(`${emulator.url}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(raw === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: (raw as string | undefined) ?? null,
    }),
  );
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text === "" ? null : JSON.parse(text) };
}

/** A fresh token; of the main client by default. */
export async function tokenOf(
  emulator: Emulator,
  client: Pick<Credentials, "clientId" | "clientSecret"> = emulator,
): Promise<string> {
  const { body } = await call(emulator, "POST", "/api/auth/token", {
    body: { grant_type: "client_credentials", client_id: client.clientId, client_secret: client.clientSecret },
  });
  return body.access_token;
}

/** An emulator as by `start`, with a token of the main client. */
export async function ready(options: EmulatorOptions = {}): Promise<{ emulator: Emulator; token: string }> {
  const emulator = await start(options);
  return { emulator, token: await tokenOf(emulator) };
}

let keys = 0;

/** A send request that the full number accepts, with some fields replaced; `undefined` removes one. */
export async function send(
  emulator: Emulator,
  token: string,
  fields: Record<string, unknown> = {},
  headers: Readonly<Record<string, string>> = { "idempotency-key": `key-${++keys}` },
): Promise<Called> {
  const body = {
    sendFrom: emulator.fixtures.numbers.full,
    to: ["+14155550123"],
    messageType: "SMS",
    text: "hello",
    externalReference: "order-1",
    ...fields,
  };
  return call(emulator, "POST", "/api/core/messages/send", { token, body, headers });
}

export interface Caught {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: Buffer;
  readonly text: string;
  /** Of the two headers; undefined without them. */
  readonly timestamp: string | undefined;
  readonly signature: string | undefined;
  /** Parsed JSON; null when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly event: any;
}

export interface Catcher {
  readonly url: string;
  /** In the order in which they were complete. */
  readonly caught: Caught[];
  /** What to answer from now on: a status, or a function that answers by itself. Default 200. */
  answer: number | ((caught: Caught, response: ServerResponse, request: IncomingMessage) => void);
  /** Ends the server, so that attempts are refused; `open` listens on the same port again. */
  close(): Promise<void>;
  open(): Promise<void>;
}

/** A server on loopback that catches webhooks; closed with the test. */
export async function startCatcher(): Promise<Catcher> {
  const caught: Caught[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const raw = Buffer.concat(chunks);
    const text = raw.toString("utf8");
    const { method = "", url = "", headers } = request;
    const { "x-service-timestamp": timestamp, "x-service-signature": signature } = headers as Record<string, string>;
    const one = { method, path: url, headers, raw, text, timestamp, signature, event: parsed(text) };
    caught.push(one);
    if (typeof catcher.answer === "function") catcher.answer(one, response, request);
    else response.writeHead(catcher.answer).end();
  });
  let port = 0;
  const open = async () => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  };
  const close = async () => {
    if (server.listening) await endServer(server);
  };
  await open();
  const catcher: Catcher = { url: `http://127.0.0.1:${port}/webhooks`, caught, answer: 200, open, close };
  onTestFinished(close);
  return catcher;
}

/** JSON; null when it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A client in front of an emulator without a socket, and what passed between them. */
import { type Client, type ClientOptions, createClient, ServiceError } from "../../src/client/index.ts";
import type { Emulator, EmulatorOptions } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { start } from "../emulator/support.ts";
import { failureOf as failureAs } from "../support/failure-of.ts";

/** The bodies of requests as they were sent. */
export interface SentRequest {
  readonly method: string;
  /** With the base path, percent-encoded. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

export interface Pair {
  readonly emulator: Emulator;
  readonly client: Client;
  /** All requests but those for a token, oldest first. */
  readonly sent: SentRequest[];
}

/** Retries without a wait; an answer that is not as specified is an error. */
const STRICT = {
  backoff: { baseMs: 0, maxMs: 0 },
  validateResponses: "throw",
  logger: silentLogger,
} as const satisfies Partial<ClientOptions>;

export async function startPair(
  emulatorOptions: EmulatorOptions = {},
  clientOptions: Partial<ClientOptions> = {},
): Promise<Pair> {
  const emulator = await start(emulatorOptions);
  return { emulator, ...clientOf(emulator, clientOptions) };
}

/** A client of its own; the main client's credentials unless others are given. */
export function clientOf(emulator: Emulator, options: Partial<ClientOptions> = {}): Omit<Pair, "emulator"> {
  const sent: SentRequest[] = [];
  const { url: baseUrl, clientId, clientSecret } = emulator;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const { method, headers } = request;
    const { pathname } = new URL(request.url);
    const body = await request.clone().text();
    if (!pathname.endsWith("/api/auth/token")) sent.push({ method, path: pathname, headers, body });
    return emulator.handle(request);
  };
  return { client: createClient({ baseUrl, clientId, clientSecret, ...STRICT, fetch, ...options }), sent };
}

/** The error a call ends in; a call that succeeds fails the test. */
export function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  return failureAs(call, ServiceError);
}

export const RECIPIENT = "+14155550123";
export const MEDIUM = { storageKey: "media/1", mimeType: "image/png", byteLength: 1_024 } as const;

/** A send that the full number accepts. */
export function smsOf({ fixtures }: Emulator) {
  return {
    sendFrom: fixtures.numbers.full,
    to: [RECIPIENT] as readonly string[],
    messageType: "SMS",
    text: "hello",
    externalReference: "order-1",
  } as const;
}

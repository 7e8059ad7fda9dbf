/** The bench of both adapter contracts: a receiver or an inspector behind the adapter's server, and raw sockets to it. */
import { connect, type Socket } from "node:net";
import { createReceiver, type Receiver } from "../../src/create.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { signPayload } from "../../src/sources/messaging/sign.ts";
import type { WebhookEvent } from "../../src/sources/messaging/types.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import type { InspectorAnswer, InspectorRequest, Mountable } from "../../src/tools/inspector/http.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/fake-clock.ts";

// A small HTTP/1.1 client over a raw socket, for requests that no HTTP library sends and answers that none shows.

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** One answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  /** Lower-case names; the last value of a repeated one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface WireConnection {
  send(bytes: string | Uint8Array): void;
  /** The next answer, interim ones (1xx) included. Rejects when the connection ends first, or after 10 s. */
  answer(options?: { readonly bodyless?: boolean }): Promise<WireAnswer>;
  /** Resolves once `part` has arrived, for an answer that may never end. Rejects as `answer` does. */
  arrived(part: string | Uint8Array): Promise<void>;
  /** How the other side ended the connection: cleanly (FIN) or by a reset. Rejects after 10 s. */
  ended(): Promise<"end" | "reset">;
  /** Reads nothing from now on. */
  pause(): void;
  /** Sends FIN, and still reads. */
  finish(): void;
  /** Sends RST. */
  abort(): void;
  close(): void;
}

/** Opens a connection, and sends `first` on it. */
type Connect = (first?: Uint8Array) => Promise<WireConnection>;

const PATIENCE_MS = 10_000;
const HEAD_END = "\r\n\r\n";

/** The connections of one case, which are closed together. */
function connectionsTo(port: number): { readonly connect: Connect; close(): void } {
  const open: WireConnection[] = [];
  return {
    async connect(first) {
      const connection = await openSocket(port);
      open.push(connection);
      if (first !== undefined) connection.send(first);
      return connection;
    },
    close() {
      for (const connection of open) connection.close();
    },
  };
}

/** Opens a connection to a server on loopback. */
export async function openSocket(port: number): Promise<WireConnection> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const inbox = collect(socket);
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.setNoDelay(true);
  return {
    send: (bytes) => void socket.write(bytes),
    answer: (options = {}) => inbox.until(() => takeAnswer(inbox, options.bodyless === true), "an answer"),
    arrived: (part) =>
      inbox
        .until(() => (inbox.bytes.includes(Buffer.from(part)) ? true : undefined), "the expected bytes")
        .then(() => {}),
    ended: () => inbox.until(() => inbox.end, "the end of the connection"),
    pause: () => void socket.pause(),
    finish: () => void socket.end(),
    abort: () => void socket.resetAndDestroy(),
    close: () => void socket.destroy(),
  };
}

interface WireRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: HeaderLines;
  readonly body?: Uint8Array;
  /** Sends the body in these chunks. Without them its length is declared. */
  readonly chunks?: readonly Uint8Array[];
}

/** The bytes of one request. */
export function requestBytes(request: WireRequest): Buffer {
  const { method = "POST", path = "/webhooks", headers = [], body, chunks } = request;
  const framing: HeaderLines =
    chunks !== undefined
      ? [["Transfer-Encoding", "chunked"]]
      : body !== undefined
        ? [["Content-Length", `${body.length}`]]
        : [];
  const lines = [["Host", "127.0.0.1"] as const, ...headers, ...framing].map(([name, value]) => `${name}: ${value}`);
  const head = Buffer.from([`${method} ${path} HTTP/1.1`, ...lines].join("\r\n") + HEAD_END, "latin1");
  if (chunks === undefined) return Buffer.concat([head, body ?? new Uint8Array()]);
  const written = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([head, ...written, Buffer.from("0\r\n\r\n")]);
}

interface Inbox {
  bytes: Buffer;
  end: "end" | "reset" | undefined;
  /** Resolves with the first value that `take` returns. */
  until<T>(take: () => T | undefined, what: string): Promise<T>;
}

function collect(socket: Socket): Inbox {
  let look = () => {};
  const inbox: Inbox = {
    bytes: Buffer.alloc(0),
    end: undefined,
    until: (take, what) =>
      new Promise((resolve, reject) => {
        const timer = systemClock.setTimeout(
          () => reject(new Error(`Timed out waiting for ${what} after ${PATIENCE_MS} ms.`)),
          PATIENCE_MS,
        );
        look = () => {
          const taken = take();
          if (taken === undefined && inbox.end === undefined) return;
          timer.cancel();
          look = () => {};
          if (taken === undefined) reject(new Error(`The connection ended (${inbox.end}) before ${what}.`));
          else resolve(taken);
        };
        look();
      }),
  };
  const ends = (how: "end" | "reset") => () => {
    inbox.end ??= how;
    look();
  };
  socket.on("data", (chunk) => {
    inbox.bytes = Buffer.concat([inbox.bytes, chunk]);
    look();
  });
  socket.on("end", ends("end")).on("error", ends("reset")).on("close", ends("end"));
  return inbox;
}

/** Takes one whole answer off the front of what arrived; undefined while it is incomplete. */
function takeAnswer(inbox: Inbox, bodyless: boolean): WireAnswer | undefined {
  const headEnd = inbox.bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = inbox.bytes.toString("latin1", 0, headEnd).split("\r\n");
  const headers = Object.fromEntries(lines.map(splitHeader));
  const status = Number(statusLine.split(" ")[1]);
  const start = headEnd + HEAD_END.length;
  const body = bodyless || status < 200 ? { text: "", end: start } : takeBody(inbox.bytes, start, headers);
  if (body === undefined) return undefined;
  inbox.bytes = inbox.bytes.subarray(body.end);
  return { status, headers, body: body.text };
}

function splitHeader(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function takeBody(
  bytes: Buffer,
  start: number,
  headers: Record<string, string>,
): { text: string; end: number } | undefined {
  if (headers["transfer-encoding"] === "chunked") return takeChunks(bytes, start);
  const end = start + Number(headers["content-length"] ?? 0);
  return bytes.length < end ? undefined : { text: bytes.toString("utf8", start, end), end };
}

function takeChunks(bytes: Buffer, start: number): { text: string; end: number } | undefined {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const next = lineEnd + 2 + length + 2;
    if (bytes.length < next) return undefined;
    if (length === 0) return { text: Buffer.concat(parts).toString("utf8"), end: next };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = next;
  }
}

// The adapter contract: a receiver with a store in memory, behind the adapter's server.

/** What the application does with a request before the adapter sees it. */
export type BodyState =
  /** Nothing: as the documentation says. */
  | "raw"
  /** It reads and parses the body and keeps no bytes: the mistake. */
  | "parsed"
  /** It reads the body and keeps the bytes where the adapter looks for them. */
  | "captured";

export interface AdapterServer {
  /** Where it listens on 127.0.0.1. */
  readonly port: number;
  close(): Promise<void> | void;
}

/**
 * Makes a server with the adapter for all methods of `/webhooks`, and with a sibling `POST /json` that the framework's own
 * JSON parser serves: it answers 200 with the parsed body as JSON, and 400 to a body that is not JSON.
 */
export type MakeAdapterServer = (setup: {
  readonly receiver: Receiver<never>;
  readonly bodyState: BodyState;
}) => Promise<AdapterServer>;

/** The part of an `expect` function that the suite uses. That of Vitest, of Jest and of compatible libraries fits. */
export type AdapterExpect = (
  actual: unknown,
  message?: string,
) => {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
};

/** The options of both adapter suites. */
export interface AdapterSuiteOptions<MakeServer> {
  /** Registers one test: `test` of Vitest, Jest or `node:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  /** The `expect` of Vitest or Jest. */
  readonly expect: AdapterExpect;
  /** Starts a server with the adapter under test, once for each case. */
  readonly makeServer: MakeServer;
  /** What an application can do to a body before this adapter sees it. Cases of other states are skipped. Default: all. */
  readonly bodyStates?: readonly BodyState[];
}

export interface AdapterBench {
  readonly expect: AdapterExpect;
  readonly clock: FakeClock;
  /** The bodies that reached a handler. */
  readonly handled: Buffer[];
  /** Resolves when the receiver asks for a body. */
  readonly readingBegan: Promise<void>;
  readonly connect: Connect;
  /** Sends one signed request on its own connection. */
  deliver(request?: Delivery): Promise<WireAnswer>;
}

/** A signed request. Default body: a small event. */
interface Delivery extends WireRequest {
  /** The bytes to sign instead of the body. */
  readonly signed?: Uint8Array;
  /** Instead of the two headers of the signature. */
  readonly signature?: HeaderLines;
}

export interface AdapterCase {
  readonly name: string;
  /** Default `"raw"`. */
  readonly bodyState?: BodyState;
  /** Default: a `memoryStore`. */
  readonly store?: () => InboxStore<never>;
  run(bench: AdapterBench): Promise<void>;
}

export const CONTRACT_SECRET = "whsec_adapter_contract_0123456789";
export const WEBHOOK_PATH = "/webhooks";

let messages = 0;

/** An event as the service writes it, each of another message. `text` makes it longer. */
export function eventBody(text = ""): Buffer {
  messages += 1;
  const data = {
    messageId: `msg_${messages}`,
    conversationId: "conv_1",
    numberId: "num_1",
    from: "+15550000001",
    to: "+15550000002",
    body: text,
    media: [],
    timestamp: 1_760_000_000_000,
  };
  const facts = { eventType: "message.inbound", direction: "inbound", occurredAt: data.timestamp };
  const event = { ...facts, apiClientId: "client_1", data };
  // Spaces and a line break: a body that is parsed and written again has other bytes.
  return Buffer.from(`${JSON.stringify(event, null, 1)}\n`);
}

/** The two headers for `body`, at the clock's time. */
export function signatureOf(body: Uint8Array, clock: FakeClock): HeaderLines {
  return Object.entries(signPayload({ body, secret: CONTRACT_SECRET, timestamp: clock.now() }));
}

/** The bytes of a signed request. */
export function deliveryBytes(delivery: Delivery, clock: FakeClock): Buffer {
  const { headers = [], signature, signed, chunks, method = "POST", path = WEBHOOK_PATH } = delivery;
  const body = delivery.body ?? (chunks === undefined ? eventBody() : Buffer.concat(chunks));
  const lines = [...headers, ...(signature ?? signatureOf(signed ?? body, clock))];
  return requestBytes({ method, path, headers: lines, body, ...(chunks === undefined ? {} : { chunks }) });
}

/** Runs one case against a server of its own. */
export async function runCase(one: AdapterCase, makeServer: MakeAdapterServer, expect: AdapterExpect): Promise<void> {
  const clock = createFakeClock();
  const handled: Buffer[] = [];
  const receiver = createReceiver({
    secrets: CONTRACT_SECRET,
    store: (one.store ?? (() => memoryStore({ volatile: true })))(),
    clock,
    logger: silentLogger,
  });
  receiver.onAny((_event: WebhookEvent, context) => void handled.push(Buffer.from(context.rawBody)));
  const readingBegan = watchReading(receiver);
  const server = await makeServer({ receiver, bodyState: one.bodyState ?? "raw" });
  const connections = connectionsTo(server.port);
  const { connect } = connections;
  const deliver = async (delivery: Delivery = {}) => {
    const connection = await connect(deliveryBytes(delivery, clock));
    return connection.answer({ bodyless: delivery.method === "HEAD" });
  };
  try {
    await one.run({ expect, clock, handled, readingBegan, connect, deliver });
  } finally {
    connections.close();
    await server.close();
    await receiver.stop();
  }
}

/** Resolves when `receiver` asks for its first body. */
function watchReading(receiver: Receiver<never>): Promise<void> {
  return new Promise((began) => {
    const handle = receiver.handle.bind(receiver);
    receiver.handle = (incoming) =>
      handle({
        ...incoming,
        readBody(reading) {
          const body = incoming.readBody(reading);
          began();
          return body;
        },
      });
  });
}

// The inspector's adapter contract: an inspector whose answers the case makes, behind a server.

/**
 * Makes a server with the adapter for `/inspector` and all below it, and with a sibling `GET /other` that answers 200 with
 * the text `other`.
 */
export type MakeInspectorServer<Native> = (setup: {
  readonly inspector: Mountable<Native>;
  readonly bodyState: BodyState;
}) => Promise<AdapterServer>;

export interface InspectorBench {
  readonly expect: AdapterExpect;
  /** What reached the inspector. */
  readonly seen: InspectorRequest[];
  readonly connect: Connect;
  /** Sends one request on its own connection, by default `GET /inspector/`. */
  ask(request?: WireRequest): Promise<WireAnswer>;
}

export interface InspectorCase {
  readonly name: string;
  /** Default `"raw"`. */
  readonly bodyState?: BodyState;
  /** Makes the case's answers. */
  make?(): (request: InspectorRequest) => Promise<InspectorAnswer> | InspectorAnswer;
  run(bench: InspectorBench): Promise<void>;
}

export const INSPECTOR_PATH = "/inspector";

/** An answer that is sent as a whole. */
export function textAnswer(status: number, text: string): InspectorAnswer {
  const headers = { "content-type": "text/plain; charset=utf-8", "content-length": `${Buffer.byteLength(text)}` };
  return { status, headers, body: text };
}

/** A JSON POST as the page sends it. */
export function jsonPost(text: string | Uint8Array): WireRequest {
  const headers: HeaderLines = [["Content-Type", "application/json"]];
  return { method: "POST", path: `${INSPECTOR_PATH}/api/events`, headers, body: Buffer.from(text) };
}

export function bytesOf({ method = "GET", path = `${INSPECTOR_PATH}/`, ...rest }: WireRequest): Buffer {
  return requestBytes({ method, path, ...rest });
}

/** Runs one case against a server of its own. */
export async function runInspectorCase<Native>(
  { bodyState = "raw", make, run }: InspectorCase,
  makeServer: MakeInspectorServer<Native>,
  expect: AdapterExpect,
): Promise<void> {
  const seen: InspectorRequest[] = [];
  const answerTo = make?.() ?? (() => textAnswer(200, "page"));
  const inspector: Mountable<Native> = {
    path: INSPECTOR_PATH,
    logger: silentLogger,
    async handle(request) {
      seen.push(request);
      return answerTo(request);
    },
  };
  const server = await makeServer({ inspector, bodyState });
  const connections = connectionsTo(server.port);
  const { connect } = connections;
  const ask = async (asked: WireRequest = {}) => {
    const connection = await connect(bytesOf(asked));
    return connection.answer({ bodyless: asked.method === "HEAD" });
  };
  try {
    await run({ expect, seen, connect, ask });
  } finally {
    connections.close();
    await server.close();
  }
}

/** What every case of the adapter contract stands on: a receiver with a store in memory, behind the adapter's server. */
import type { WebhookEvent } from "../events/types.ts";
import type { InboxStore } from "../inbox/store.ts";
import { silentLogger } from "../internal/logger.ts";
import { createReceiver, type Receiver } from "../receiver/receiver.ts";
import { signPayload } from "../signature/sign.ts";
import { memoryStore } from "../stores/memory.ts";
import {
  connectionsTo,
  type HeaderLines,
  requestBytes,
  type WireAnswer,
  type WireConnection,
} from "./adapter-contract-wire.ts";
import { createFakeClock, type FakeClock } from "./fake-clock.ts";

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
 * JSON parser serves: it answers 200 with the parsed body as JSON, and 400 to what is no JSON.
 */
export type MakeAdapterServer = (setup: {
  readonly receiver: Receiver<never>;
  readonly bodyState: BodyState;
}) => Promise<AdapterServer>;

/** The part of an `expect` function that the suite uses; those of Vitest, Jest and Node's compatible libraries fit. */
export type ContractExpect = (
  actual: unknown,
  message?: string,
) => {
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
};

export interface Bench {
  readonly expect: ContractExpect;
  readonly clock: FakeClock;
  /** The bodies that reached a handler. */
  readonly handled: Buffer[];
  /** Resolves when the receiver asks for a body. */
  readonly readingBegan: Promise<void>;
  connect(): Promise<WireConnection>;
  /** Sends one signed request on its own connection. */
  deliver(request?: Delivery): Promise<WireAnswer>;
}

export interface Delivery {
  readonly method?: string;
  readonly path?: string;
  /** Default: a small event. */
  readonly body?: Uint8Array;
  readonly chunks?: readonly Uint8Array[];
  /** The bytes that are signed, if they are not the body's. */
  readonly signed?: Uint8Array;
  /** Beside the two of the signature. */
  readonly headers?: HeaderLines;
  /** In place of the two of the signature. */
  readonly signature?: HeaderLines;
}

export interface ContractCase {
  readonly name: string;
  /** Default `"raw"`. */
  readonly bodyState?: BodyState;
  /** Default: a `memoryStore`. */
  readonly store?: () => InboxStore<never>;
  run(bench: Bench): Promise<void>;
}

export const CONTRACT_SECRET = "whsec_adapter_contract_0123456789";
export const WEBHOOK_PATH = "/webhooks";

let messages = 0;

/** An event as the service writes it, of a message of its own; `text` makes it longer. */
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
  const event = {
    eventType: "message.inbound",
    direction: "inbound",
    occurredAt: data.timestamp,
    apiClientId: "client_1",
    data,
  };
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
export async function runCase(one: ContractCase, makeServer: MakeAdapterServer, expect: ContractExpect): Promise<void> {
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
    const connection = await connect();
    connection.send(deliveryBytes(delivery, clock));
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

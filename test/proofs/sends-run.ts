/** Many sends through the fault proxy, then each failed one again with its key until it succeeds; and what both ends saw of it. */

import { silentLogger } from "../../src/internal/logger.ts";
import { createClient, type SendOptions, type SendRequest, type SendResult } from "../../src/messaging/client/index.ts";
import { createEmulator, type Emulator } from "../../src/messaging/emulator/index.ts";
import { type FaultProxy, type ProxiedCall, seededFaults, startFaultProxy } from "../messaging/client/fault-proxy.ts";

/** Sends once, however many requests that takes. */
export type Sender = (
  request: SendRequest,
  options: SendOptions,
) => Promise<Pick<SendResult, "idempotencyKey" | "results">>;

export interface Target {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Our own client, in a hurry: it gives up an attempt after `timeoutMs`, so that silent ones take little time. */
export function clientSender(timeoutMs: number): (target: Target) => Sender {
  return (target) => {
    const client = createClient({ ...target, timeoutMs, backoff: { baseMs: 1, maxMs: 20 }, logger: silentLogger });
    return (request, options) => client.messages.send(request, options);
  };
}

interface SendsTerms {
  readonly count: number;
  readonly seed: string;
  /** How many sends are under way at once. */
  readonly lanes: number;
  /** Several are made, which share nothing but the target. */
  createSender(target: Target): Sender;
}

/** How a send ended. */
export type Ended =
  | { readonly ok: true; readonly idempotencyKey: string; readonly messageIds: readonly string[] }
  | { readonly ok: false; readonly error: unknown };

export interface Sent {
  readonly request: SendRequest;
  readonly first: Ended;
  /** After it was sent again until it succeeded; the same as `first` when that did. */
  readonly last: Ended;
}

/** The service's messages: their ids, per `placeOf` a recipient. */
export type Ledger = ReadonlyMap<string, readonly string[]>;

export interface Evidence {
  readonly sends: readonly Sent[];
  /** When every send had ended once, and at the end. */
  readonly ledgers: { readonly first: Ledger; readonly last: Ledger };
  /** All requests, as the proxy got them. */
  readonly calls: readonly ProxiedCall[];
}

const CLIENTS = 4;
/** The share of requests that is broken. */
const BROKEN = 0.35;
/** All of a send's requests being broken so often has a chance of less than one in 10^18. */
const MOST_RESENDS = 40;

export async function runSends({ count, seed, lanes, createSender }: SendsTerms): Promise<Evidence> {
  const settings = { lifecycle: "manual", magic: false, keep: 1_000_000, logger: silentLogger } as const;
  await using emulator = await createEmulator({ seed, ...settings });
  const callers = new Map<string, AbortController>();
  const proxy = await startFaultProxy({
    upstream: emulator.url,
    choose: seededFaults(seed, BROKEN),
    revoke: () => void emulator.control.revokeTokens(),
    abort: ({ body }) => callers.get(JSON.parse(body).externalReference)?.abort(),
  });
  try {
    const { clientId, clientSecret, fixtures } = emulator;
    const target = { baseUrl: proxy.url, clientId, clientSecret };
    const senders = Array.from({ length: CLIENTS }, () => createSender(target));
    const requests = Array.from({ length: count }, (_, index) => requestOf(index, fixtures.numbers.full));
    const play = (request: SendRequest, index: number, options: SendOptions = {}) =>
      sendOnce(senders[index % CLIENTS] as Sender, { request, options, callers });
    const firsts = await inLanes(lanes, requests, (request, index) => play(request, index));
    const first = await ledgerOf(emulator, proxy);
    const sends = await inLanes(lanes, requests, async (request, index) => {
      const ended = firsts[index] as Ended;
      const last = await untilSent(ended, (idempotencyKey) => play(request, index, { idempotencyKey }));
      return { request, first: ended, last };
    });
    return { sends, ledgers: { first, last: await ledgerOf(emulator, proxy) }, calls: proxy.calls };
  } finally {
    await proxy.close();
  }
}

/** Where a recipient of a send stands in the ledger. */
export function placeOf(request: Pick<SendRequest, "externalReference">, to: string): string {
  return `${request.externalReference} to ${to}`;
}

/** The key with which a failed send can be made again, or undefined. */
export function keyOf(error: unknown): string | undefined {
  const key = (error as { idempotencyKey?: unknown } | null)?.idempotencyKey;
  return typeof key === "string" && key !== "" ? key : undefined;
}

/** A third of them to two recipients, a fifth as MMS; texts with what JSON and UTF-8 can write in more than one way. */
function requestOf(index: number, sendFrom: string): SendRequest {
  const to = [`+1415555${String(index).padStart(6, "0")}`];
  if (index % 3 === 0) to.push(`+1206555${String(index).padStart(6, "0")}`);
  const common = { sendFrom, to, text: `héllo "${index}" 😀\u2028`, externalReference: `order-${index}` };
  if (index % 5 !== 0) return { ...common, messageType: "SMS" };
  return { ...common, messageType: "MMS", media: [{ storageKey: "a.png", mimeType: "image/png", byteLength: 10 }] };
}

interface Play {
  readonly request: SendRequest;
  readonly options: SendOptions;
  /** By external reference: whom the proxy can make abort. */
  readonly callers: Map<string, AbortController>;
}

async function sendOnce(sender: Sender, { request, options, callers }: Play): Promise<Ended> {
  const caller = new AbortController();
  callers.set(request.externalReference, caller);
  try {
    const { idempotencyKey, results } = await sender(request, { ...options, signal: caller.signal });
    return { ok: true, idempotencyKey, messageIds: results.map(({ messageId }) => messageId) };
  } catch (error) {
    return { ok: false, error };
  }
}

async function untilSent(first: Ended, again: (idempotencyKey: string) => Promise<Ended>): Promise<Ended> {
  let ended = first;
  for (let resend = 0; !ended.ok && resend < MOST_RESENDS; resend++) {
    const key = keyOf(ended.error);
    if (key === undefined) return ended;
    ended = await again(key);
  }
  return ended;
}

/** Works on the items in order, a lane taking the next one when it is done with its last. */
async function inLanes<T, R>(
  lanes: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < items.length; index = next++) done[index] = await work(items[index] as T, index);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return done;
}

/** Not before the last request has reached the service, be its client gone or not. */
async function ledgerOf(emulator: Emulator, proxy: FaultProxy): Promise<Ledger> {
  await proxy.idle();
  const ledger = new Map<string, string[]>();
  for (const message of Object.values(emulator.control.exportState().tables.messages ?? {})) {
    // What an export holds is a record of its table.
    const { messageId, externalReference, to } = message as Record<"messageId" | "externalReference" | "to", string>;
    const place = placeOf({ externalReference }, to);
    ledger.set(place, [...(ledger.get(place) ?? []), messageId]);
  }
  return ledger;
}

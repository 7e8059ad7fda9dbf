/** A small inbox with something of each kind in it, written by the store itself. */
import { hash } from "node:crypto";
import type { NewEvent } from "../../../src/inbox/record.ts";
import { DEFAULT_SEQUENCE_RULES } from "../../../src/inbox/sequence-rules.ts";
import type { InboxStore, Lease, Settle } from "../../../src/inbox/store.ts";
import { SERVICE_SHOWS } from "../../../src/sources/messaging/source.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { inbound, outbound } from "../../receiver/events.ts";
import { contextOf, RULES, turn } from "../../stores/sqlite-turns.ts";

export const NUMBER = "+15550100002";
export const TEXT = "Yes please, ring me";
const FAILURE = { code: "permanent_failure", message: "No order 17", durationMs: 3 };

type Kind = Parameters<typeof outbound>[0];

/** An outbound event that waits for no gap. */
export function outboundEvent(kind: Kind, messageId: string, wish: Partial<NewEvent> = {}): NewEvent {
  const raw = Buffer.from(outbound(kind, { messageId, to: NUMBER }));
  const { eventType, sequence } = JSON.parse(raw.toString()) as { eventType: string; sequence: number };
  return {
    ...{
      lane: { source: "service", tenant: "apc_1", name: messageId, order: "sequence" },
      sequence,
      eventType,
      gapWaitMs: 0,
      trace: null,
    },
    ...{ occurredAt: Date.now(), signedAt: Date.now(), digest: hash("sha256", raw, "buffer"), raw },
    ...{ peer: NUMBER, externalReference: "order-77", ...wish },
  };
}

function inboundEvent(messageId: string): NewEvent {
  const raw = Buffer.from(inbound({ messageId, from: NUMBER, text: TEXT }));
  const event = outboundEvent("queued", messageId, { raw, digest: hash("sha256", raw, "buffer") });
  const lane = { ...event.lane, name: null, order: null };
  return { ...event, lane, ownId: messageId, sequence: 0, eventType: "message.inbound", externalReference: null };
}

/** Accepts events, claims what is due, and ends each as `endOf` says. */
export async function handle(
  store: InboxStore<never>,
  accepts: readonly NewEvent[],
  endOf: (lease: Lease) => Settle<never>,
): Promise<void> {
  const claim = { limit: accepts.length || 1 };
  for (let left = accepts, more = true; more; left = []) {
    const { leases } = await store.step(turn<never>({ accepts: left, claim }));
    await store.step(turn<never>({ settles: leases.map(endOf) }));
    more = leases.length > 0;
  }
}

export const handled = (lease: Lease): Settle<never> => ({ kind: "complete", lease, outcome: "handled", effects: [] });
export const dead = (lease: Lease): Settle<never> => ({ kind: "dead", lease, failure: FAILURE, onDead: "continue" });

/**
 * Events 1 to 8: `msg_1` was queued, its `sent` is dead, and it was delivered; `msg_in` came in; `msg_2` was queued only; the
 * `sent` of `msg_3` waits for a missing `queued`; `msg_4` is blocked behind its dead `queued`; one of `msg_5` is unhandled. And a
 * quarantined body that names the number.
 */
export async function fillInbox(path: string): Promise<void> {
  const store = sqliteStore(path) as InboxStore<never>;
  await store.open(contextOf());
  // As a receiver does at its start.
  await store.admit([{ name: "service", preset: "service", shows: SERVICE_SHOWS, sequence: DEFAULT_SEQUENCE_RULES }]);
  const one = (kind: Kind, id: string, wish?: Partial<NewEvent>) => [outboundEvent(kind, id, wish)];
  await handle(store, one("queued", "msg_1"), handled);
  await handle(store, one("sent", "msg_1"), dead);
  await handle(store, one("delivery", "msg_1"), handled);
  await handle(store, [inboundEvent("msg_in")], handled);
  await handle(store, one("queued", "msg_2"), handled);
  await handle(store, one("sent", "msg_3", { gapWaitMs: 80_000_000 }), handled);
  await handle(store, one("queued", "msg_4"), (lease) => ({ ...dead(lease), onDead: "block" }) as Settle<never>);
  const unhandled = (lease: Lease) => ({ ...handled(lease), outcome: "unhandled" }) as Settle<never>;
  await handle(store, one("queued", "msg_5"), unhandled);
  const raw = Buffer.from(`{"to": "${NUMBER}", "text": "${TEXT}"`);
  const origin = {
    source: "service",
    tenant: null,
    slot: "current",
    signer: "s",
    kinds: [],
    signedAt: Date.now(),
    trace: null,
  };
  const kept = { ...origin, reason: "invalid_json", digest: hash("sha256", raw, "buffer"), raw };
  await store.step(turn<never>({ quarantines: [kept] }));
  await store.close();
}

/** An inbox of the receiver `default`, in which an event waits for its start. */
export async function leavePending(path: string, event: NewEvent): Promise<void> {
  const store = sqliteStore(path) as InboxStore<never>;
  await store.open(contextOf({ rules: { ...RULES, name: "default" } }));
  await store.step(turn<never>({ accepts: [event] }));
  await store.close();
}

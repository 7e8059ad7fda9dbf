/** Stores with a planted fault, which the simulation must find. */

import type { LaneKey, NewEvent } from "../../../src/inbox/record.ts";
import type { Acceptance, Settle } from "../../../src/inbox/store.ts";
import type { InboxStore, Turn, TurnResult } from "../../../src/index.ts";
import { MemoryPlace, type Place } from "./places.ts";

export const FLAWS = [
  "forgets fencing",
  "drops late events",
  "passes events out of order",
  "counts an attempt for a process that lacks the source",
] as const;
export type Flaw = (typeof FLAWS)[number];

/** A place in memory, sound or with a fault. */
export function controlledPlace(flaw: Flaw | null): Place {
  const place = new MemoryPlace({ forgetsFencing: flaw === "forgets fencing" });
  if (flaw === "drops late events") return withStep(place, dropLateEvents);
  if (flaw === "passes events out of order") return withStep(place, handOutAtOnce);
  if (flaw === "counts an attempt for a process that lacks the source") return withStep(place, retryReleased);
  return place;
}

type Step = (store: InboxStore<unknown>, turn: Turn<unknown>) => Promise<TurnResult>;

function withStep(place: MemoryPlace, step: Step): Place {
  return {
    connect: (commitFails) => {
      const connection = place.connect(commitFails);
      return { ...connection, store: { ...connection.store, step: (turn) => step(connection.store, turn) } };
    },
    write: (tx, effect) => place.write(tx, effect),
    effects: () => place.effects(),
    remove: () => place.remove(),
  };
}

/** What is below its lane's cursor is answered as if it had been kept. */
async function dropLateEvents(store: InboxStore<unknown>, turn: Turn<unknown>): Promise<TurnResult> {
  const late = await Promise.all(turn.accepts.map((event) => lateAnswer(store, event)));
  const accepts = turn.accepts.filter((_, index) => late[index] === null);
  const result = await store.step({ ...turn, accepts });
  const kept = [...result.accepted];
  const places = turn.accepts.flatMap((_, index) => (late[index] === null ? [index] : []));
  const leases = result.leases.map((lease) => ({
    ...lease,
    acceptIndex: lease.acceptIndex === null ? null : (places[lease.acceptIndex] ?? null),
  }));
  const failed: Acceptance = { outcome: "failed", error: new Error("It was not answered.") };
  return { ...result, leases, accepted: late.map((answer) => answer ?? kept.shift() ?? failed) };
}

async function lateAnswer(store: InboxStore<unknown>, event: NewEvent): Promise<Acceptance | null> {
  const lane = await store.lane(event.lane satisfies LaneKey);
  if (lane?.cursor == null || event.sequence >= lane.cursor) return null;
  const isKnown = lane.events.some(
    ({ sequence, eventType }) => sequence === event.sequence && eventType === event.eventType,
  );
  return isKnown ? null : { outcome: "late", event: 1_000_000, lane: lane.id };
}

/** Gaps are not waited for, and what comes after its time is handed out as if it had not. */
async function handOutAtOnce(store: InboxStore<unknown>, turn: Turn<unknown>): Promise<TurnResult> {
  const accepts = turn.accepts.map((event) => ({ ...event, gapWaitMs: 0 }));
  const result = await store.step({ ...turn, accepts, claim: { ...turn.claim, takes: () => true } });
  return { ...result, leases: result.leases.map((lease) => ({ ...lease, late: false, outOfOrder: false })) };
}

/** What is released for later has failed. */
function retryReleased(store: InboxStore<unknown>, turn: Turn<unknown>): Promise<TurnResult> {
  const failure = { code: "released", message: "It was released.", durationMs: 0 };
  const settles = turn.settles.map((settle): Settle<unknown> => {
    const isPutOff = settle.kind === "release" && settle.delayMs > 0;
    return isPutOff ? { ...settle, kind: "retry", failure } : settle;
  });
  return store.step({ ...turn, settles });
}

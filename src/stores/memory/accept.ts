/** Takes events and quarantined bodies into the memory store. */
import { StoreError } from "../../errors.ts";
import { sameContent } from "../../events/content.ts";
import type { NewEvent, NewQuarantine } from "../../inbox/record.ts";
import type { Acceptance, QuarantineAnswer, QuarantineQuota, Repeat, Turn } from "../../inbox/store.ts";
import { rearm } from "./lanes.ts";
import {
  addLane,
  finish,
  headOf,
  isOrdered,
  laneByKey,
  type MemoryEvent,
  type MemoryLane,
  type Moment,
  noteSigned,
} from "./state.ts";

type LateEvents = Turn<unknown>["lateEvents"];

/** Stores an event unless its identity is known, and arms its lane. */
export function accept(moment: Moment, incoming: NewEvent, lateEvents: LateEvents): Acceptance {
  const { state } = moment;
  const known = laneByKey(state, incoming.lane);
  const first = known?.events.find((e) => e.sequence === incoming.sequence && e.eventType === incoming.eventType);
  if (first !== undefined) return countDuplicate(moment, first, incoming);
  // Also of a delivery that is refused: pruning goes by the newest timestamp, and must go on to make room.
  noteSigned(state, incoming.signedAt);
  if (state.events.size >= state.maxEvents) return { outcome: "failed", error: storeFull(state.maxEvents) };

  const lane = known ?? addLane(state, incoming);
  const late = isOrdered(lane) && lane.cursor !== null && incoming.sequence < lane.cursor;
  const event = addEvent(moment, lane, incoming, late);
  state.counters.accepted++;
  if (late) noteLate(moment, event);
  if (late && lateEvents === "record") finish(event, "late", moment.now);
  else if (mayRearm(lane, event)) rearm(moment, lane);
  return { outcome: late ? "late" : "accepted", event: event.id, lane: lane.id };
}

/** A lane in backoff goes on early only for an event that comes before the one it waits with. */
function mayRearm(lane: MemoryLane, added: MemoryEvent): boolean {
  if (lane.status === "backoff") return headOf(lane) === added;
  return lane.status !== "leased" && lane.status !== "blocked";
}

function addEvent(moment: Moment, lane: MemoryLane, incoming: NewEvent, late: boolean): MemoryEvent {
  const { sequence, eventType, occurredAt, signedAt, gapWaitMs, digest, trace } = incoming;
  const event: MemoryEvent = {
    id: ++moment.state.lastEventId,
    lane,
    sequence,
    eventType,
    state: "pending",
    outcome: null,
    late,
    forced: false,
    occurredAt,
    signedAt,
    gapWaitMs,
    acceptedAt: moment.now,
    startedAt: null,
    finishedAt: null,
    attempts: 0,
    duplicates: 0,
    conflict: false,
    conflictRaw: null,
    errorCode: null,
    error: null,
    trace,
    digest: new Uint8Array(digest),
    // A copy: a request body is often a view of a buffer that is used again.
    raw: new Uint8Array(incoming.raw),
  };
  lane.events.push(event);
  moment.state.events.set(event.id, event);
  return event;
}

/** A gap that was given up shows which of its events came after all. */
function noteLate(moment: Moment, event: MemoryEvent): void {
  moment.state.counters.late++;
  for (const gap of event.lane.gaps) {
    if (gap.from <= event.sequence && event.sequence <= gap.to) gap.filledAt ??= moment.now;
  }
}

function countDuplicate(moment: Moment, first: MemoryEvent, incoming: NewEvent): Acceptance {
  const { state } = moment;
  // Once the body is pruned or erased there is nothing to compare with.
  const conflict =
    first.raw !== null && !equalBytes(first.digest, incoming.digest) && !sameContent(first.raw, incoming.raw);
  first.duplicates++;
  state.counters.duplicates++;
  noteSigned(state, incoming.signedAt);
  if (incoming.signedAt !== first.signedAt) state.serviceResigns = true;
  if (conflict && !first.conflict) {
    first.conflict = true;
    first.conflictRaw = new Uint8Array(incoming.raw);
  }
  if (conflict) state.counters.conflicts++;
  const { id, digest, signedAt } = first;
  return { outcome: "duplicate", event: id, lane: first.lane.id, state: first.state, digest, signedAt, conflict };
}

/** Counts duplicates that the core answered from its cache. */
export function countRepeat(moment: Moment, repeat: Repeat): void {
  const { state } = moment;
  const event = state.events.get(repeat.event);
  if (event === undefined) return;
  event.duplicates += repeat.count;
  state.counters.duplicates += repeat.count;
  noteSigned(state, repeat.signedAt);
  if (repeat.signedAt !== event.signedAt) state.serviceResigns = true;
}

export function quarantine(moment: Moment, incoming: NewQuarantine, quota: QuarantineQuota): QuarantineAnswer {
  const { state } = moment;
  const { reason, slot, scope, signedAt, trace } = incoming;
  noteSigned(state, signedAt);
  const digestText = hex(incoming.digest);
  if (state.quarantineDigests.has(digestText)) return "duplicate";
  const held = [...state.quarantine.values()].filter((row) => row.state === "held" && row.slot === slot);
  const bytes = held.reduce((sum, row) => sum + (row.raw?.byteLength ?? 0), incoming.raw.byteLength);
  if (held.length >= quota.maxRows || bytes > quota.maxBytes) return "full";
  const id = ++state.lastQuarantineId;
  const [digest, raw] = [new Uint8Array(incoming.digest), new Uint8Array(incoming.raw)];
  state.quarantine.set(id, {
    ...{ id, reason, slot, scope, state: "held", replayedAs: null },
    ...{ signedAt, acceptedAt: moment.now, trace, digest, raw },
  });
  state.quarantineDigests.add(digestText);
  state.counters.quarantined++;
  return "held";
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function storeFull(maxEvents: number): StoreError {
  return new StoreError(
    "store_full",
    `The memory store holds its ${maxEvents} events and forgets none early. Raise maxEvents, or use sqliteStore().`,
    { fields: { maxEvents } },
  );
}

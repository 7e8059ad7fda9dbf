/** Takes an event into its lane, or counts it as a duplicate. */
import type { NewEvent } from "../record.ts";
import type { Acceptance, Turn } from "../store.ts";
import { rearm } from "./claiming.ts";
import { finish, headOf, isOrdered, type LaneEvent, type LaneState, type Moment } from "./state.ts";

export type LateEvents = Turn<unknown>["lateEvents"];

/** The event of a lane with this identity, if it is known. */
export function knownEvent(lane: LaneState | undefined, incoming: NewEvent): LaneEvent | undefined {
  return lane?.events.find((e) => e.sequence === incoming.sequence && e.eventType === incoming.eventType);
}

/** An event that was added to its lane. */
export interface Added {
  readonly event: LaneEvent;
  /** Its lane begins to wait for a missing sequence with it. */
  readonly beginsToWait: boolean;
}

/** Adds an event whose identity is not known, under its new id, and arms its lane. */
export function acceptNew(
  moment: Moment,
  lane: LaneState,
  incoming: NewEvent,
  { id, lateEvents }: { readonly id: number; readonly lateEvents: LateEvents },
): Added {
  moment.tally.signed(incoming.signedAt);
  moment.tally.count("accepted");
  const late = isOrdered(lane) && lane.cursor !== null && incoming.sequence < lane.cursor;
  const event = newEvent(moment, lane, incoming, id, late);
  lane.events.push(event);
  lane.peer ??= incoming.peer;
  lane.externalReference ??= incoming.externalReference;
  if (late) noteLate(moment, event);
  let beginsToWait = false;
  if (late && lateEvents === "record") finish(event, "late", moment.now);
  else if (mayRearm(lane, event)) beginsToWait = rearm(moment, lane);
  return { event, beginsToWait };
}

/** What the core is answered for a new event. */
export function acceptanceOf({ event, beginsToWait }: Added): Extract<Acceptance, { outcome: "accepted" | "late" }> {
  const answer = { outcome: event.late ? "late" : "accepted", event: event.id, lane: event.lane.id } as const;
  return beginsToWait ? { ...answer, gapBegins: true } : answer;
}

/** A known identity again. `conflict`: its content differs from what was accepted. True when it is the first that does. */
export function countDuplicate(moment: Moment, first: LaneEvent, incoming: NewEvent, conflict: boolean): boolean {
  first.duplicates++;
  moment.tally.count("duplicates");
  moment.tally.signed(incoming.signedAt);
  if (incoming.signedAt !== first.signedAt) moment.tally.resigned();
  if (!conflict) return false;
  moment.tally.count("conflicts");
  const isFirst = !first.conflict;
  first.conflict = true;
  return isFirst;
}

export function duplicateOf(first: LaneEvent, conflict: boolean): Extract<Acceptance, { outcome: "duplicate" }> {
  const { id, digest, signedAt, state, lane } = first;
  return { outcome: "duplicate", event: id, lane: lane.id, state, digest, signedAt, conflict };
}

/** A lane in backoff goes on early only for an event that comes before the one it waits with. */
function mayRearm(lane: LaneState, added: LaneEvent): boolean {
  if (lane.status === "backoff") return headOf(lane) === added;
  return lane.status !== "leased" && lane.status !== "blocked";
}

function newEvent(moment: Moment, lane: LaneState, incoming: NewEvent, id: number, late: boolean): LaneEvent {
  const { sequence, eventType, occurredAt, signedAt, gapWaitMs, digest, trace } = incoming;
  return {
    id,
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
    errorCode: null,
    error: null,
    trace,
    digest: new Uint8Array(digest),
    hasBody: true,
  };
}

/** A gap that was given up shows which of its events came after all. */
function noteLate(moment: Moment, event: LaneEvent): void {
  moment.tally.count("late");
  for (const gap of event.lane.gaps) {
    if (gap.from <= event.sequence && event.sequence <= gap.to) gap.filledAt ??= moment.now;
  }
}

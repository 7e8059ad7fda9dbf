/** Gives the Postgres inbox's lanes to another store. */
import { bySequence, type LaneEvent, type LaneState, toEventRecord } from "../../inbox/lanes/state.ts";
import type { AttemptRecord } from "../../inbox/record.ts";
import {
  type ConflictRecord,
  type TransferredEvent,
  type TransferredLane,
  withoutLease,
} from "../../inbox/transfer.ts";
import { readBodies } from "./bodies.ts";
import { type LaneRow, laneColumns, readLanes } from "./lanes.ts";
import type { Names } from "./names.ts";
import type { Session } from "./session.ts";

const LANES = `select ${laneColumns("l")} from {}.lane l where id > $1::bigint order by id limit $2::int`;
const ATTEMPTS = `select e.lane, a.event as "eventId", a.attempt, a.at, a.duration as "durationMs", a.error_code as "errorCode", a.error
  from {}.attempt a join {}.event e on e.id = a.event where a.event = any($1::bigint[]) order by a.id`;
const CONFLICTS = `select event, digest, signed as "signedAt", at, raw from {}.conflict where event = any($1::bigint[])`;

interface Beside {
  readonly bodies: ReadonlyMap<number, Uint8Array>;
  readonly conflicts: ReadonlyMap<number, ConflictRecord>;
}

export async function exportLanes(
  session: Session,
  names: Names,
  page: { readonly after: number; readonly limit: number },
): Promise<TransferredLane[]> {
  const rows = await session.rows<LaneRow>("export_lanes", LANES, [page.after, page.limit]);
  const lanes = await readLanes(session, names, rows);
  const events = lanes.flatMap((lane) => lane.events);
  const beside = { bodies: await readBodies(session, idsOf(events)), conflicts: await readConflicts(session, events) };
  const attempts = await session.rows<AttemptRecord & { readonly lane: number }>("export_attempts", ATTEMPTS, [
    idsOf(events),
  ]);
  const attemptsOf = new Map<number, AttemptRecord[]>(lanes.map(({ id }) => [id, []]));
  for (const { lane, ...attempt } of attempts) attemptsOf.get(lane)?.push(attempt);
  return lanes.map((lane) => ({ ...toTransferred(lane, beside), attempts: attemptsOf.get(lane.id) ?? [] }));
}

async function readConflicts(session: Session, events: readonly LaneEvent[]) {
  const ids = idsOf(events.filter(({ conflict }) => conflict));
  const rows = await session.rows<ConflictRecord & { readonly event: number }>("export_conflicts", CONFLICTS, [ids]);
  return new Map(rows.map(({ event, ...conflict }) => [event, conflict]));
}

function toTransferred(lane: LaneState, beside: Beside): Omit<TransferredLane, "attempts"> {
  const { holder: _holder, leased, events, ...facts } = lane;
  return {
    ...facts,
    ...withoutLease(lane, leased),
    events: events.toSorted(bySequence).map((event) => toEvent(event, beside)),
  };
}

function toEvent(event: LaneEvent, { bodies, conflicts }: Beside): TransferredEvent {
  const { laneId: _laneId, lane: _lane, ...facts } = toEventRecord(event, bodies.get(event.id) ?? null);
  return { ...facts, gapWaitMs: event.gapWaitMs, conflicting: conflicts.get(event.id) ?? null };
}

function idsOf(events: readonly LaneEvent[]): number[] {
  return events.map(({ id }) => id);
}

/** Turns rows into the records that operators see. */
import { bySequence, newLane, toEventRecord } from "../../inbox/lanes/state.ts";
import type { AttemptRecord, EventRecord, LaneKey, LaneRecord, QuarantineRecord } from "../../inbox/record.ts";
import { heldWord, TAG, tagWord } from "../codes.ts";
import { readBodies } from "./bodies.ts";
import {
  type EventRow,
  eventColumns,
  type LaneRow,
  type LeaseRow,
  laneColumns,
  readLanes,
  takeLease,
  toEvent,
} from "./lanes.ts";
import type { Names } from "./names.ts";
import type { Session } from "./session.ts";
import { bytesText, textBytes } from "./text.ts";

/** Columns and joined tables of an event as `recordOf` reads it. */
export const EVENT = `select ${eventColumns("e")}, l.tag, l.message, l.epoch, l.leased, l.leased_epoch, l.leased_attempts, l.leased_started,
  b.raw, k.name as kind_name, c.name as client_name
  from {}.event e join {}.lane l on l.id = e.lane join {}.kind k on k.id = e.kind join {}.client c on c.id = l.client
  left join {}.body b on b.event = e.id`;

export interface FullEventRow extends EventRow, LeaseRow {
  readonly tag: number;
  readonly message: Buffer;
  readonly raw: Buffer | null;
  readonly kind_name: Buffer;
  readonly client_name: Buffer;
}

export function recordOf(row: FullEventRow): EventRecord {
  const key = { apiClientId: bytesText(row.client_name), tag: tagWord(row.tag), messageId: bytesText(row.message) };
  const lane = newLane(row.lane, key);
  const event = toEvent(lane, row, bytesText(row.kind_name));
  takeLease(event, row);
  return toEventRecord(event, row.raw);
}

const BY_ID = `select ${laneColumns("l")} from {}.lane l where id = $1::bigint`;
const BY_KEY = `select ${laneColumns("l")} from {}.lane l join {}.client c on c.id = l.client
  where c.name = $1::bytea and l.tag = $2::smallint and l.message = $3::bytea`;
const ATTEMPTS = `select a.event as "eventId", a.attempt, a.at, a.duration as "durationMs", a.error_code as "errorCode", a.error
  from {}.attempt a join {}.event e on e.id = a.event where e.lane = $1::bigint order by a.id`;

/** A lane with all it holds; null when there is none. */
export async function readLane(session: Session, names: Names, ref: LaneKey | number): Promise<LaneRecord | null> {
  const [row] =
    typeof ref === "number"
      ? await session.rows<LaneRow>("lane_by_id", BY_ID, [ref])
      : await session.rows<LaneRow>("lane_by_key", BY_KEY, [
          textBytes(ref.apiClientId),
          TAG[ref.tag],
          textBytes(ref.messageId),
        ]);
  if (row === undefined) return null;
  const [lane] = await readLanes(session, names, [row]);
  if (lane === undefined) return null;
  const { holder: _holder, leased: _leased, ...facts } = lane;
  const ids = lane.events.map(({ id }) => id);
  const bodies = await readBodies(session, ids);
  const events = lane.events.toSorted(bySequence).map((event) => toEventRecord(event, bodies.get(event.id) ?? null));
  return { ...facts, events, attempts: await session.rows<AttemptRecord>("attempts", ATTEMPTS, [row.id]) };
}

export interface QuarantineRow extends Omit<QuarantineRecord, "state"> {
  readonly state: number;
}

export const QUARANTINE = `select id, reason, slot, signer, scope, state, replayed_as as "replayedAs", signed as "signedAt",
  accepted as "acceptedAt", trace, digest, raw from {}.quarantine`;

export function toQuarantineRecord(row: QuarantineRow): QuarantineRecord {
  return { ...row, state: heldWord(row.state) };
}

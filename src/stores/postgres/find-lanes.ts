/** Finds lanes by filter. */
import { pageOf } from "../../inbox/page.ts";
import type { LaneSummary } from "../../inbox/record.ts";
import type { LaneQuery, Page } from "../../inbox/store.ts";
import { STATUS, stateWord, TAG } from "../codes.ts";
import { Conditions } from "./conditions.ts";
import { type LaneRow, laneColumns, laneFacts } from "./lanes.ts";
import { idsOf } from "./names.ts";
import type { Session } from "./session.ts";
import { bytesText, textBytes } from "./text.ts";

const SUMMARY = `select ${laneColumns("l")}, c.name as client_name, n.id as newest_id, k.name as newest_kind, n.seq as newest_seq,
  n.accepted as newest_accepted, n.state as newest_state
  from {}.lane l join {}.client c on c.id = l.client
  cross join lateral (select id, kind, seq, accepted, state from {}.event where lane = l.id order by id desc limit 1) n
  join {}.kind k on k.id = n.kind`;

interface SummaryRow extends LaneRow {
  readonly client_name: Buffer;
  readonly newest_id: number;
  readonly newest_kind: Buffer;
  readonly newest_seq: number;
  readonly newest_accepted: number;
  readonly newest_state: number;
}

/** Lanes in one statement, where their events are looked into: over all of a large inbox it would not be answered in time. */
const SLICE = 100_000;
const ENDS = "select coalesce(min(id), 0) as lowest, coalesce(max(id), -1) as highest from {}.lane";

export async function findLanes(session: Session, query: LaneQuery): Promise<Page<LaneSummary>> {
  const { after = Number.MAX_SAFE_INTEGER, limit } = query;
  const filters = await filtersOf(session, query);
  const [ends] = await session.rows<{ lowest: number; highest: number }>("lane_ends", ENDS);
  const { lowest, highest } = ends ?? { lowest: 0, highest: -1 };
  const looksIntoEvents = query.without !== undefined || query.quietSince !== undefined;
  const size = looksIntoEvents ? SLICE : Number.MAX_SAFE_INTEGER;
  const rows: SummaryRow[] = [];
  for (let to = Math.min(highest, after - 1); to >= lowest && rows.length <= limit; to -= size) {
    const { where, values } = conditionsOf([...filters, [to - size, "l.id > ?::bigint"], [to, "l.id <= ?::bigint"]]);
    const text = `${SUMMARY} ${where} order by l.id desc limit ${limit + 1 - rows.length}`;
    rows.push(...(await session.rows<SummaryRow>(null, text, values)));
  }
  return pageOf(rows, limit, toSummary);
}

type Filter = readonly [value: unknown, sql: string];

function conditionsOf(filters: readonly Filter[]): Conditions {
  const all = new Conditions();
  for (const [value, sql] of filters) all.add(value, sql);
  return all;
}

async function filtersOf(session: Session, query: LaneQuery): Promise<readonly Filter[]> {
  const { statuses, tag, apiClientId, peer, without, quietSince } = query;
  const clients = apiClientId === undefined ? undefined : await idsOf(session, "client", [apiClientId]);
  const kinds = without === undefined ? undefined : await idsOf(session, "kind", without);
  return [
    [statuses?.map((status) => STATUS[status]), "l.status = any(?::smallint[])"],
    [tag === undefined ? undefined : TAG[tag], "l.tag = ?::smallint"],
    [clients, "l.client = any(?::int[])"],
    [typeof peer === "string" ? textBytes(peer) : undefined, "l.peer = ?::bytea"],
    [peer === null ? true : undefined, "(l.peer is null) = ?::boolean"],
    [kinds, `not ${HAS("e.kind = any(?::int[])")}`],
    // What was pruned may have been of any type.
    [without?.length ? true : undefined, `(l.cursor is null or ${HAS("e.seq = l.cursor")}) = ?::boolean`],
    [quietSince, `not ${HAS("e.accepted > ?::bigint")}`],
  ];
}

const HAS = (what: string): string => `exists (select 1 from {}.event e where e.lane = l.id and ${what})`;

function toSummary(row: SummaryRow): LaneSummary {
  return {
    ...laneFacts(row, bytesText(row.client_name)),
    newest: {
      id: row.newest_id,
      eventType: bytesText(row.newest_kind),
      sequence: row.newest_seq,
      acceptedAt: row.newest_accepted,
      state: stateWord(row.newest_state),
    },
  };
}

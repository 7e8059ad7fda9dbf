/** Finds lanes by filter. */
import type { LaneSummary } from "../../inbox/record.ts";
import type { LaneQuery, Page } from "../../inbox/store.ts";
import { STATUS, stateWord, TAG } from "../codes.ts";
import { Conditions } from "./conditions.ts";
import { type LaneRow, laneFacts } from "./lanes.ts";
import type { Session } from "./session.ts";
import { bytesText, textBytes } from "./text.ts";

const SUMMARY = `select l.*, c.name as client_name, n.id as newest_id, k.name as newest_kind, n.seq as newest_seq,
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

export async function findLanes(session: Session, query: LaneQuery): Promise<Page<LaneSummary>> {
  const { where, values } = conditionsOf(query);
  const text = `${SUMMARY} ${where} order by l.id desc limit ${query.limit + 1}`;
  const rows = await session.rows<SummaryRow>(null, text, values);
  const items = rows.slice(0, query.limit).map(toSummary);
  return { items, next: rows.length > items.length ? (items.at(-1)?.id ?? null) : null };
}

function conditionsOf(query: LaneQuery): Conditions {
  const all = new Conditions();
  all.add(
    query.statuses?.map((status) => STATUS[status]),
    "l.status = any(?::smallint[])",
  );
  all.add(query.tag === undefined ? undefined : TAG[query.tag], "l.tag = ?::smallint");
  all.add(query.apiClientId === undefined ? undefined : textBytes(query.apiClientId), "c.name = ?::bytea");
  all.add(
    query.without?.map(textBytes),
    `not exists (select 1 from {}.event e where e.lane = l.id
       and e.kind = any(array(select id from {}.kind where name = any(?::bytea[]))))`,
  );
  all.add(query.quietSince, "not exists (select 1 from {}.event e where e.lane = l.id and e.accepted > ?::bigint)");
  all.add(query.after, "l.id < ?::bigint");
  return all;
}

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

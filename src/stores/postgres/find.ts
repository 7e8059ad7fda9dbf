/** Finds events and quarantined bodies by filter. */
import { pageOf } from "../../inbox/page.ts";
import { plainText } from "../../inbox/plain-text.ts";
import type { EventRecord, QuarantineRecord } from "../../inbox/record.ts";
import type { EventQuery, Page, QuarantineQuery } from "../../inbox/store.ts";
import { HELD, OUTCOME, STATE } from "../codes.ts";
import { Conditions } from "./conditions.ts";
import { LANES_OF_MESSAGE } from "./lanes.ts";
import { idsOf } from "./names.ts";
import { EVENT, type FullEventRow, QUARANTINE, type QuarantineRow, recordOf, toQuarantineRecord } from "./records.ts";
import type { Session } from "./session.ts";
import { textBytes } from "./text.ts";

export async function find(session: Session, query: EventQuery): Promise<Page<EventRecord>> {
  const conditions = conditionsOf(query);
  const { eventType, apiClientId } = query;
  if (eventType !== undefined) conditions.add(await idsOf(session, "kind", [eventType]), "e.kind = any(?::int[])");
  if (apiClientId !== undefined)
    conditions.add(await idsOf(session, "client", [apiClientId]), "l.client = any(?::int[])");
  const direction = query.order === "oldest" ? "asc" : "desc";
  conditions.add(query.after, direction === "asc" ? "e.id > ?::bigint" : "e.id < ?::bigint");
  const text = `${EVENT} ${conditions.where} order by e.id ${direction} limit ${query.limit + 1}`;
  const rows = await session.rows<FullEventRow>(null, text, conditions.values);
  return pageOf(rows, query.limit, recordOf);
}

function conditionsOf(query: EventQuery): Conditions {
  const all = new Conditions();
  const bytes = (text: string | undefined) => (text === undefined ? undefined : textBytes(text));
  all.add(
    query.states?.map((state) => STATE[state]),
    "e.state = any(?::smallint[])",
  );
  all.add(query.outcome === undefined ? undefined : OUTCOME[query.outcome], "e.outcome = ?::smallint");
  all.add(query.late, "e.late = ?::boolean");
  all.add(query.conflict, "e.conflict = ?::boolean");
  all.add(query.errorCode === undefined ? undefined : plainText(query.errorCode), "e.error_code = ?::text");
  all.add(bytes(query.messageId), `e.lane = any(array(${LANES_OF_MESSAGE("?")}))`);
  all.add(bytes(query.externalReference), "l.reference = ?::bytea");
  all.add(bytes(query.peer), "l.peer = ?::bytea");
  all.add(query.acceptedFrom, "e.accepted >= ?::bigint");
  all.add(query.acceptedTo, "e.accepted <= ?::bigint");
  return all;
}

export async function findQuarantined(session: Session, query: QuarantineQuery): Promise<Page<QuarantineRecord>> {
  const states = (query.states ?? ["held", "replayed", "discarded"]).map((state) => HELD[state]);
  const text = `${QUARANTINE} where state = any($1::smallint[]) and id < $2::bigint order by id desc limit $3::int`;
  const values = [states, query.after ?? Number.MAX_SAFE_INTEGER, query.limit + 1];
  const rows = await session.rows<QuarantineRow>("find_quarantined", text, values);
  return pageOf(rows, query.limit, toQuarantineRecord);
}

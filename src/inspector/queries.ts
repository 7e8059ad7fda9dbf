/** The filters that lists, downloads and bulk acts take, and what each may hold. */

import type { EventState } from "../inbox/record.ts";
import type { EventQuery, LaneQuery } from "../inbox/store.ts";
import type { BulkQuery } from "../receiver/bulk.ts";
import { EVENT_STATES, LANE_STATUSES, LANE_TAGS } from "../receiver/queries.ts";
import { type Fields, flag, listOf, oneOf, orNull, rowId, rows, text, time } from "./input.ts";

export const DEFAULT_PAGE = 50;
export const LONGEST_PAGE = 200;

/** Which events; `states` are those that are meant for the work. */
export function eventFilter(states: readonly EventState[] = EVENT_STATES): Fields<BulkQuery> {
  return {
    states: listOf(oneOf(...states)),
    outcome: oneOf("handled", "unhandled"),
    late: flag,
    conflict: flag,
    eventType: text,
    apiClientId: text,
    messageId: text,
    externalReference: text,
    peer: text,
    errorCode: text,
    acceptedFrom: time,
    acceptedTo: time,
  };
}

export const EVENT_QUERY: Fields<EventQuery> = {
  ...eventFilter(),
  order: oneOf("newest", "oldest"),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

export const LANE_QUERY: Fields<LaneQuery> = {
  statuses: listOf(oneOf(...LANE_STATUSES)),
  tag: oneOf(...LANE_TAGS),
  without: listOf(text),
  quietSince: time,
  apiClientId: text,
  peer: orNull(text),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

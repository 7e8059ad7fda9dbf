/** Checks what an operator asks for before a store sees it: a misspelt filter would find everything, an empty subject erase it. */
import type { EventQuery, LaneQuery, QuarantineQuery } from "../inbox/operations.ts";
import type { Subject } from "../inbox/subject.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";

const DEFAULT_LIMIT = 100;
const SHORTEST_SUBJECT = 3;

/** Typed, so that none is forgotten. */
const EVENT_FILTERS: Readonly<Record<keyof EventQuery, true>> = {
  states: true,
  outcome: true,
  late: true,
  conflict: true,
  eventType: true,
  apiClientId: true,
  messageId: true,
  externalReference: true,
  peer: true,
  errorCode: true,
  acceptedFrom: true,
  acceptedTo: true,
  order: true,
  after: true,
  limit: true,
};
const LANE_FILTERS: Readonly<Record<keyof LaneQuery, true>> = {
  statuses: true,
  tag: true,
  without: true,
  quietSince: true,
  apiClientId: true,
  peer: true,
  after: true,
  limit: true,
};
const QUARANTINE_FILTERS: Readonly<Record<keyof QuarantineQuery, true>> = { states: true, after: true, limit: true };

/** @throws SetupError for an unknown filter or a limit out of bounds */
export function eventQuery(query: Partial<EventQuery>): EventQuery {
  refuseUnknownOptions("inbox.find()", query, Object.keys(EVENT_FILTERS));
  return { ...query, limit: limitOption(query.limit) };
}

/** Which of many events: no page of them, and in no order of the caller's. */
export type EventFilter = Omit<Partial<EventQuery>, "order" | "after" | "limit">;

/** @throws SetupError for an unknown filter */
export function checkEventFilter(filter: EventFilter): void {
  const { order: _order, after: _after, limit: _limit, ...known } = EVENT_FILTERS;
  refuseUnknownOptions("The query", filter, Object.keys(known));
}

/** @throws SetupError for an unknown filter or a limit out of bounds */
export function laneQuery(query: Partial<LaneQuery>): LaneQuery {
  refuseUnknownOptions("inbox.findLanes()", query, Object.keys(LANE_FILTERS));
  return { ...query, limit: limitOption(query.limit) };
}

/** @throws SetupError for an unknown filter or a limit out of bounds */
export function quarantineQuery(query: Partial<QuarantineQuery>): QuarantineQuery {
  refuseUnknownOptions("inbox.findQuarantined()", query, Object.keys(QUARANTINE_FILTERS));
  return { ...query, limit: limitOption(query.limit) };
}

/** @throws SetupError for a limit out of bounds */
export function auditLimit(limit: unknown): number {
  return limitOption(limit);
}

/** @throws SetupError unless it is one number or one message id, of at least 3 characters */
export function checkSubject(asked: string, subject: unknown): asserts subject is Subject {
  refuseUnknownOptions(asked, subject, ["peer", "messageId"]);
  const [given, other] = Object.entries(subject as Readonly<Record<string, unknown>>);
  if (given === undefined || other !== undefined) throw invalidOption("subject", "must have a peer or a messageId");
  const [name, value] = given;
  if (typeof value === "string" && value.trim().length >= SHORTEST_SUBJECT) return;
  throw invalidOption(name, `must be a text of at least ${SHORTEST_SUBJECT} characters`, typeof value);
}

function limitOption(limit: unknown): number {
  return numberOption("limit", limit, DEFAULT_LIMIT, { min: 1, max: 1_000, unit: "rows" });
}

/** Checks an operator's queries and acts before a store sees them: a misspelt filter would find everything, an empty subject erase it. */

import { LANE_ORDERS } from "../inbox/lane-key.ts";
import type { EventState, LaneStatus, Outcome, QuarantineRecord } from "../inbox/record.ts";
import type { Act, EventQuery, LaneQuery, LaneRef, QuarantineQuery } from "../inbox/store.ts";
import type { Subject } from "../inbox/subject.ts";
import { booleanOption, choiceOption, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";

const DEFAULT_LIMIT = 100;
const SHORTEST_SUBJECT = 3;

/** Returns the value for the store, or throws a `SetupError` that says what the filter takes. */
type Check = (name: string, value: unknown) => unknown;

export const EVENT_STATES = ["pending", "done", "dead", "late", "discarded"] as const satisfies readonly EventState[];
export const OUTCOMES = ["handled", "unhandled", "filtered"] as const satisfies readonly Outcome[];
export const LANE_STATUSES = [
  "idle",
  "ready",
  "gap",
  "leased",
  "backoff",
  "blocked",
] as const satisfies readonly LaneStatus[];
const HELD_STATES = ["held", "replayed", "discarded"] as const satisfies readonly QuarantineRecord["state"][];

/** Typed, so that the compiler reports a missing filter. */
const EVENT_FILTERS: Readonly<Record<keyof EventQuery, Check>> = {
  states: listOf(oneOf(EVENT_STATES)),
  outcome: oneOf(OUTCOMES),
  late: flag,
  conflict: flag,
  eventType: text,
  source: text,
  tenant: textOrNull,
  lane: text,
  id: text,
  externalReference: text,
  peer: text,
  errorCode: text,
  acceptedFrom: time,
  acceptedTo: time,
  order: oneOf(["newest", "oldest"]),
  after: place,
  limit: limitOption,
};
const LANE_FILTERS: Readonly<Record<keyof LaneQuery, Check>> = {
  statuses: listOf(oneOf(LANE_STATUSES)),
  order: (name, value) => (value === null ? value : oneOf(LANE_ORDERS)(name, value)),
  without: listOf(text),
  quietSince: time,
  source: text,
  tenant: textOrNull,
  peer: textOrNull,
  after: place,
  limit: limitOption,
};
const QUARANTINE_FILTERS: Readonly<Record<keyof QuarantineQuery, Check>> = {
  states: listOf(oneOf(HELD_STATES)),
  after: place,
  limit: limitOption,
};

/** @throws SetupError for an unknown filter, or a wrong value */
export function eventQuery(query: Partial<EventQuery>): EventQuery {
  return checked("inbox.find()", query, EVENT_FILTERS);
}

/** Filters for work on many events, without page and order. */
export type EventFilter = Omit<Partial<EventQuery>, "order" | "after" | "limit">;

/** @throws SetupError for an unknown filter */
export function checkEventFilter(filter: EventFilter): void {
  const { order: _order, after: _after, limit: _limit, ...known } = EVENT_FILTERS;
  refuseUnknownOptions("The query", filter, Object.keys(known));
}

/** @throws SetupError for an unknown filter, or a wrong value */
export function laneQuery(query: Partial<LaneQuery>): LaneQuery {
  return checked("inbox.findLanes()", query, LANE_FILTERS);
}

/** @throws SetupError for an unknown filter, or a wrong value */
export function quarantineQuery(query: Partial<QuarantineQuery>): QuarantineQuery {
  return checked("inbox.findQuarantined()", query, QUARANTINE_FILTERS);
}

/** @throws SetupError for a limit out of bounds */
export function auditLimit(limit: unknown): number {
  return limitOption("limit", limit);
}

/** @throws SetupError unless it is one number or one id, of at least 3 characters */
export function checkSubject(asked: string, subject: unknown): asserts subject is Subject {
  refuseUnknownOptions(asked, subject, ["peer", "id"]);
  const [given, other] = Object.entries(subject as Readonly<Record<string, unknown>>);
  if (given === undefined || other !== undefined) throw invalidOption("subject", "must have a peer or an id");
  const [name, value] = given;
  if (typeof value === "string" && value.trim().length >= SHORTEST_SUBJECT) return;
  throw invalidOption(name, `must be a string of at least ${SHORTEST_SUBJECT} characters`, typeof value);
}

/** @throws SetupError for an invalid id in `act`: a store could find a row by a value that only looks like an id, or fail on it */
export function checkAct(act: Act): void {
  if (act.kind === "replay" || act.kind === "discard") checkId("event", act.event);
  if ("lane" in act) checkId("lane", act.lane);
  if ("quarantine" in act) checkId("quarantine", act.quarantine);
}

/** @throws SetupError unless it is a name. It may come from outside, so code that shows it must escape it */
export function checkActor(by: unknown): void {
  if (typeof by === "string" && by !== "") return;
  throw invalidOption("by", "must be a string that is not empty", by);
}

/** @throws SetupError unless it is a lane's number or key, or an event's id with its source and tenant */
export function checkLane(ref: LaneRef): void {
  if (typeof ref !== "object" || ref === null) return checkId("lane", ref);
  text("source", ref.source);
  textOrNull("tenant", ref.tenant);
  if ("id" in ref) return void text("id", ref.id);
  text("name", ref.name);
  oneOf(LANE_ORDERS)("order", ref.order);
}

/** @throws SetupError unless it is an id */
export function checkId(name: string, id: unknown): void {
  if (Number.isSafeInteger(id) && (id as number) > 0) return;
  throw invalidOption(name, `must be an id, a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`, id);
}

/** Checks each filter by its own rule. Filters that are undefined do not apply. */
function checked<Query extends { readonly limit: number }>(
  asked: string,
  query: Partial<Query>,
  filters: Readonly<Record<keyof Query, Check>>,
): Query {
  refuseUnknownOptions(asked, query, Object.keys(filters));
  const all: Record<string, unknown> = { ...query, limit: query.limit };
  for (const [name, value] of Object.entries(all))
    if (value !== undefined || name === "limit") all[name] = filters[name as keyof Query](name, value);
  // Checked above.
  return all as unknown as Query;
}

function limitOption(name: string, limit: unknown): number {
  return numberOption(name, limit, DEFAULT_LIMIT, { min: 1, max: 1_000, unit: "rows" });
}

function text(name: string, value: unknown): unknown {
  if (typeof value === "string") return value;
  throw invalidOption(name, "must be a string", value);
}

function textOrNull(name: string, value: unknown): unknown {
  return value === null ? value : text(name, value);
}

function flag(name: string, value: unknown): boolean {
  return booleanOption(name, value, false);
}

/** Epoch milliseconds, rounded: a computed difference may have a fraction, which no stored time has. */
function time(name: string, value: unknown): number {
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number;
  return Math.round(numberOption(name, value, 0, { min, max, unit: "epoch milliseconds", integer: false }));
}

/** Where the page before ended, or 0 for the first page. */
function place(name: string, value: unknown): number {
  return numberOption(name, value, 0, { min: 0, max: Number.MAX_SAFE_INTEGER, unit: "(an id)" });
}

function oneOf<T extends string>(choices: readonly [T, ...T[]]): Check {
  return (name, value) => choiceOption(name, value, choices[0], choices);
}

function listOf(check: Check): Check {
  return (name, value) => {
    if (!Array.isArray(value)) throw invalidOption(name, "must be a list", value);
    return value.map((one) => check(name, one ?? null));
  };
}

/** Checks the fields of a request before the inbox gets them. A refusal names the field, never its value. */
import { LANE_ORDERS } from "../../inbox/lane-key.ts";
import type { EventState } from "../../inbox/record.ts";
import type { EventQuery, LaneQuery } from "../../inbox/store.ts";
import { isRecord, suggestion } from "../../internal/options.ts";
import type { BulkQuery } from "../../receiver/bulk.ts";
import { EVENT_STATES, LANE_STATUSES, OUTCOMES } from "../../receiver/queries.ts";
import { type InspectorAnswer, refused, unreadableBody } from "./http.ts";
import type { ApiCall } from "./route.ts";

/** What one field may hold. */
export interface Field<T> {
  /** Follows the field's name in a message: `must be true or false`. */
  readonly rule: string;
  holds(value: unknown): value is T;
}

/** A check for each field. */
export type Fields<T> = { readonly [Name in keyof T]-?: Field<NonNullable<T[Name]> | Extract<T[Name], null>> };

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  /** A sentence for the answer. */
  | { readonly ok: false; readonly message: string };

/** Phone numbers, references and ids are never longer; the inbox refuses longer ids too. */
const LONGEST_TEXT = 512;
const LONGEST_LIST = 50;
/** A longer name gets no suggestion. */
const LONGEST_NAME = 40;
/** Ids and times are far below. */
const HIGHEST = Number.MAX_SAFE_INTEGER;

export const textField: Field<string> = {
  rule: `must be a text of 1 to ${LONGEST_TEXT} characters`,
  holds: (value): value is string =>
    typeof value === "string" && value !== "" && value.length <= LONGEST_TEXT && value.isWellFormed(),
};

export const flag: Field<boolean> = {
  rule: "must be true or false",
  holds: (value) => typeof value === "boolean",
};

/** Epoch milliseconds. */
const time: Field<number> = wholeNumber(0, HIGHEST, "must be a time in epoch milliseconds");

export const rowId: Field<number> = wholeNumber(1, HIGHEST, "must be the id of a row");

/** Rows of a page. */
export function rows(most: number): Field<number> {
  return wholeNumber(1, most, `must be a whole number from 1 to ${most}`);
}

function wholeNumber(least: number, most: number, rule: string): Field<number> {
  const holds = (value: unknown): value is number =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
  return { rule, holds };
}

export function numberBetween(least: number, most: number): Field<number> {
  const holds = (value: unknown): value is number => typeof value === "number" && value >= least && value <= most;
  return { rule: `must be a number from ${least} to ${most}`, holds };
}

export function oneOf<const T extends string>(...words: readonly T[]): Field<T> {
  const holds = (value: unknown): value is T => (words as readonly unknown[]).includes(value);
  return { rule: `must be one of ${words.map((word) => `"${word}"`).join(", ")}`, holds };
}

export function listOf<T>(field: Field<T>): Field<readonly T[]> {
  const holds = (value: unknown): value is readonly T[] =>
    Array.isArray(value) && value.length <= LONGEST_LIST && value.every((item) => field.holds(item));
  return { rule: `must be a list of at most ${LONGEST_LIST}, each of which ${field.rule}`, holds };
}

function orNull<T>(field: Field<T>): Field<T | null> {
  const holds = (value: unknown): value is T | null => value === null || field.holds(value);
  return { rule: `${field.rule}, or null`, holds };
}

/** An object with some of the fields, and no others. */
export function checked<T>(value: unknown, fields: Fields<T>): Checked<Partial<T>> {
  if (!isRecord(value)) return { ok: false, message: "The body must be a JSON object." };
  const known = Object.keys(fields);
  for (const [name, said] of Object.entries(value)) {
    if (!known.includes(name)) return { ok: false, message: `A field is not known. ${likely(name, known)}` };
    const field = fields[name as keyof T];
    if (!field.holds(said)) return { ok: false, message: `"${name}" ${field.rule}.` };
  }
  // Every field was checked.
  return { ok: true, value: value as Partial<T> };
}

/** The body of a call, or the answer that refuses it. */
export async function readFields<T>(
  call: Pick<ApiCall, "readJson">,
  fields: Fields<T>,
): Promise<
  { readonly ok: true; readonly value: Partial<T> } | { readonly ok: false; readonly answer: InspectorAnswer }
> {
  const reading = await call.readJson();
  if (!reading.ok) return { ok: false, answer: unreadableBody(reading) };
  const body = checked(reading.value, fields);
  return body.ok ? body : { ok: false, answer: refused("invalid_request", body.message) };
}

/** Refuses a body with fields where a route takes none: otherwise `dryRun` would be ignored, and the act done. */
export async function refusedBody({ readJson }: Pick<ApiCall, "readJson">): Promise<InspectorAnswer | null> {
  const reading = await readJson();
  if (!reading.ok) return reading.reason === "empty" ? null : unreadableBody(reading);
  if (isRecord(reading.value) && Object.keys(reading.value).length === 0) return null;
  return refused("invalid_request", "This route takes no fields: the body must be {} or empty.");
}

/** Refuses a query where a route takes none. */
export function refusedQuery({ query }: Pick<ApiCall, "query">): InspectorAnswer | null {
  return query.size === 0 ? null : refused("invalid_request", "This route takes no query.");
}

/** Checks the query of a URL. Whole numbers become numbers; the fields in `lists` may be repeated and become lists. */
export function checkedQuery<T>(
  query: URLSearchParams,
  fields: Fields<T>,
  lists: readonly string[] = [],
): Checked<Partial<T>> {
  const said: Record<string, unknown> = Object.create(null);
  for (const name of query.keys()) {
    const values = query.getAll(name);
    if (lists.includes(name)) said[name] = values;
    else if (values.length > 1) return { ok: false, message: "Each field of the query may appear only once." };
    else said[name] = /^\d{1,16}$/.test(values[0] ?? "") ? Number(values[0]) : values[0];
  }
  return checked({ ...said }, fields);
}

function likely(name: string, known: readonly string[]): string {
  return name.length > LONGEST_NAME ? `Known: ${known.join(", ")}.` : suggestion(name, known);
}

export const DEFAULT_PAGE = 50;
export const LONGEST_PAGE = 200;

/** The filters of events. `states` are the states that the work allows. */
export function eventFilter(states: readonly EventState[] = EVENT_STATES): Fields<BulkQuery> {
  return {
    states: listOf(oneOf(...states)),
    outcome: oneOf(...OUTCOMES),
    late: flag,
    conflict: flag,
    eventType: textField,
    source: textField,
    tenant: orNull(textField),
    lane: textField,
    id: textField,
    externalReference: textField,
    peer: textField,
    errorCode: textField,
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
  order: orNull(oneOf(...LANE_ORDERS)),
  without: listOf(textField),
  quietSince: time,
  source: textField,
  tenant: orNull(textField),
  peer: orNull(textField),
  after: rowId,
  limit: rows(LONGEST_PAGE),
};

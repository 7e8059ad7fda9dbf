/** Identifies a lane, and an event. */
import { hash } from "node:crypto";

/**
 * - `sequence`: ascending and without gaps; missing sequences are waited for.
 * - `position`: ascending, by a number that the source reads from the event. Nothing is missing between two.
 * - `arrival`: as they were accepted.
 */
export type LaneOrder = "sequence" | "position" | "arrival";

export const LANE_ORDERS = ["sequence", "position", "arrival"] as const satisfies readonly LaneOrder[];

/** Whose events a lane has, and which of them. */
export interface LaneKey {
  /** The name of the entry that they came through. */
  readonly source: string;
  /** Whose they are, where one source has the events of several. */
  readonly tenant: string | null;
  /** Null: it has one event. */
  readonly name: string | null;
  /** The order of its events. Null exactly where it has one. */
  readonly order: LaneOrder | null;
}

/** The key of a lane that has several events. */
export interface NamedLaneKey extends LaneKey {
  readonly name: string;
  readonly order: LaneOrder;
}

export function isNamed(key: LaneKey): key is NamedLaneKey {
  return key.name !== null;
}

/** Whether a lane has several events without a sequence, which may be about different people. */
export function isShared({ order }: Pick<LaneKey, "order">): boolean {
  return order === "position" || order === "arrival";
}

/** An event by the id that its source gives it. */
export interface EventRef extends Pick<LaneKey, "source" | "tenant"> {
  readonly id: string;
}

/** The same for two keys of one lane alone. */
export function laneKeyText({ source, tenant, name, order }: NamedLaneKey): string {
  return JSON.stringify([order, source, tenant, name]);
}

export function eventRefText({ source, tenant, id }: EventRef): string {
  return JSON.stringify([source, tenant, id]);
}

/** What identifies an event. */
export interface Identified {
  readonly lane: LaneKey;
  /** The id that its source gives it. By sequence it has none: its lane, sequence and type identify it. */
  readonly ownId?: string | null | undefined;
  readonly sequence: number;
  readonly eventType: string;
}

/** Hex SHA-256 of the identity's JSON array: users see it as `ctx.identity` and can use it as an idempotency key. */
export function identityOf(event: Identified): string {
  return hash("sha256", identityText(event));
}

/** The same for deliveries of one event alone. */
export function identityText({ lane, ownId, sequence, eventType }: Identified): string {
  const { source, tenant, name } = lane;
  return JSON.stringify([source, tenant, ...(ownId == null ? [name, sequence, eventType] : [ownId])]);
}

/** The digest of a body, and what a source may have added to it. */
const OF_BODY = /^[0-9a-f]{64}(?::|$)/;

/**
 * An id or the name of a lane, if it may be shown. Null for the digest of a body: someone who knows all of a body except eight digits of a
 * phone number could find these digits with it.
 */
export function publicId(text: string | null): string | null {
  return text === null || OF_BODY.test(text) ? null : text;
}

const LONGEST_TEXT = 512;
/** Two of them fit an index of Postgres. */
const MOST_BYTES = 1_300;

/**
 * Whether a value can be an id, a type, a tenant, or the name of a lane: 1 to 512 characters of well-formed Unicode, and at most 1,300 bytes.
 * A lone surrogate would be stored as U+FFFD, so two ids could become one.
 */
export function isIdText(value: unknown): value is string {
  if (typeof value !== "string" || value === "" || value.length > LONGEST_TEXT || !value.isWellFormed()) return false;
  return value.length * 3 <= MOST_BYTES || Buffer.byteLength(value) <= MOST_BYTES;
}

export const ID_TEXT_RULE = `expected 1 to ${LONGEST_TEXT} characters of well-formed Unicode, at most ${MOST_BYTES} bytes`;

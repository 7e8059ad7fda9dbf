/** Identifies a lane, and an event in it. */
import { hash } from "node:crypto";

/**
 * `outbound`, `inbound` and `unlaned` are lanes of the messaging service; all others are of other sources. `inbound`, `unlaned` and
 * `single`: a lane contains one event. The others contain several, in the order that `ORDERS` names.
 */
export type LaneTag = "outbound" | "inbound" | "unlaned" | "single" | "position" | "arrival";

/**
 * - `sequence`: ascending and without gaps; missing sequences are waited for.
 * - `position`: ascending, by a number that the source reads from the event. Nothing is missing between two.
 * - `arrival`: as they were accepted.
 */
export type LaneOrder = "sequence" | "position" | "arrival";

/** The order of a lane's events. Null where a lane contains one event. */
export const ORDERS = {
  outbound: "sequence",
  inbound: null,
  unlaned: null,
  single: null,
  position: "position",
  arrival: "arrival",
} as const satisfies Record<LaneTag, LaneOrder | null>;

export const LANE_TAGS = Object.keys(ORDERS) as [LaneTag, ...LaneTag[]];

/** Whether lanes with this tag are of a source besides the messaging service. */
export function isOfSource(tag: LaneTag): boolean {
  return tag === "single" || isSharedLane(tag);
}

/** Whether a lane with this tag has several events of another source, which may be about different people. */
export function isSharedLane(tag: LaneTag): boolean {
  return tag === "position" || tag === "arrival";
}

/**
 * Identifies a lane. `messageId` is the hex SHA-256 of the body for `unlaned`, the identity of the event for `single`, and what the source
 * names as the lane for `position` and `arrival`.
 */
export interface LaneKey {
  /** Empty when the body has none (`unlaned` only). Of another source: the name of the entry, and after a colon the tenant whose secret signed. */
  readonly apiClientId: string;
  readonly tag: LaneTag;
  readonly messageId: string;
}

/** The same for two keys of one lane alone. */
export function laneKeyText({ apiClientId, tag, messageId }: LaneKey): string {
  return `${tag} ${apiClientId.length} ${apiClientId}${messageId}`;
}

/** The digest of a body, and what a source may have added to it. */
const OF_BODY = /^[0-9a-f]{64}(?::|$)/;

/**
 * The message's id, or the identity of another source's event, if it may be shown. Null if it is the digest of a body: someone who knows all
 * of a body except eight digits of a phone number could find these digits with it.
 */
export function publicId({ tag, messageId }: LaneKey): string | null {
  if (isOfSource(tag)) return OF_BODY.test(messageId) ? null : messageId;
  return tag === "unlaned" ? null : messageId;
}

/**
 * Hex SHA-256 of the identity's JSON array: users see it as `ctx.identity` and can use it as an idempotency key.
 *
 * @param own - the identity of an event in a `position` or `arrival` lane; null in all others
 */
export function identityOf(lane: LaneKey, sequence: number, eventType: string, own: string | null): string {
  return hash("sha256", JSON.stringify(identityParts(lane, sequence, eventType, own)));
}

function identityParts(
  lane: LaneKey,
  sequence: number,
  eventType: string,
  own: string | null,
): readonly (string | number)[] {
  switch (lane.tag) {
    case "outbound":
      return ["o", lane.apiClientId, lane.messageId, sequence, eventType];
    case "inbound":
      return ["i", lane.apiClientId, lane.messageId];
    case "unlaned":
      return ["u", lane.apiClientId, lane.messageId];
    case "single":
      return ["s", lane.apiClientId, lane.messageId];
    case "position":
    case "arrival":
      return ["s", lane.apiClientId, own ?? ""];
    default:
      return lane.tag satisfies never;
  }
}

/** The name of the entry that a lane's events belong to. Null for the messaging service, whose lanes name no entry. */
export function entryNameOf({ tag, apiClientId }: LaneKey): string | null {
  if (!isOfSource(tag)) return null;
  const colon = apiClientId.indexOf(":");
  return colon < 0 ? apiClientId : apiClientId.slice(0, colon);
}

const SCOPE = "source:";

/**
 * The scope of the secrets of an entry, as its quarantined bodies record it. The service's own scopes are `any`, `inbound` and the like.
 *
 * @param client - the entry's name, with a colon and the tenant if there is one
 */
export function scopeOfEntry(client: string): string {
  return `${SCOPE}${client}`;
}

export function entryNameOfScope(scope: string): string | null {
  return scope.startsWith(SCOPE) ? (scope.slice(SCOPE.length).split(":", 1)[0] ?? null) : null;
}

export function tenantOfScope(scope: string): string | undefined {
  const colon = scope.indexOf(":", SCOPE.length);
  return colon < 0 ? undefined : scope.slice(colon + 1);
}

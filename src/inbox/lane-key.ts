/** Identifies a lane, and an event in it. */
import { hash } from "node:crypto";

/**
 * `outbound`, `inbound` and `unlaned` are lanes of the messaging service. `outbound`: one lane per outbound message, in ascending sequence.
 * Lanes with another tag contain one unordered event each. `single` is the tag of every other source.
 */
export type LaneTag = "outbound" | "inbound" | "unlaned" | "single";

/** Identifies a lane. For `unlaned`, `messageId` is the hex SHA-256 of the body; for `single`, the identity that its source gave the event. */
export interface LaneKey {
  /** Empty when the body has none (`unlaned` only). For `single`: the name of the entry, and after a colon the tenant whose secret signed. */
  readonly apiClientId: string;
  readonly tag: LaneTag;
  readonly messageId: string;
}

/** The digest of a body, and what a source may have added to it. */
const OF_BODY = /^[0-9a-f]{64}(?::|$)/;

/**
 * The message's id, or the identity of another source's event, if it may be shown. Null if it is the digest of a body: someone who knows all
 * of a body except eight digits of a phone number could find these digits with it.
 */
export function publicId({ tag, messageId }: LaneKey): string | null {
  if (tag === "single") return OF_BODY.test(messageId) ? null : messageId;
  return tag === "unlaned" ? null : messageId;
}

/** Hex SHA-256 of the identity's JSON array: users see it as `ctx.identity` and can use it as an idempotency key. */
export function identityOf(lane: LaneKey, sequence: number, eventType: string): string {
  return hash("sha256", JSON.stringify(identityParts(lane, sequence, eventType)));
}

function identityParts(lane: LaneKey, sequence: number, eventType: string): readonly (string | number)[] {
  switch (lane.tag) {
    case "outbound":
      return ["o", lane.apiClientId, lane.messageId, sequence, eventType];
    case "inbound":
      return ["i", lane.apiClientId, lane.messageId];
    case "unlaned":
      return ["u", lane.apiClientId, lane.messageId];
    case "single":
      return ["s", lane.apiClientId, lane.messageId];
    default:
      return lane.tag satisfies never;
  }
}

/** The name of the entry that a lane's events belong to. Null for the messaging service, whose lanes name no entry. */
export function entryNameOf({ tag, apiClientId }: LaneKey): string | null {
  if (tag !== "single") return null;
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

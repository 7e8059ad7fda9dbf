/** The facts an inbox keeps, in the words of docs/architecture.md. Every store speaks in these types. */

import type { LaneKey } from "../events/identity.ts";

export type { LaneKey, LaneTag } from "../events/identity.ts";

/** A store's number for an event. Ids grow in the order of acceptance. */
export type EventId = number;
/** A store's number for a lane. */
export type LaneId = number;

/**
 * - `idle`: no pending event.
 * - `ready`: its head can be claimed.
 * - `gap`: its head waits for a missing sequence, until `readyAt`.
 * - `leased`: a worker holds its head, until `readyAt`.
 * - `backoff`: its head failed and is retried at `readyAt`.
 * - `blocked`: parked behind a dead letter until an operator acts.
 */
export type LaneStatus = "idle" | "ready" | "gap" | "leased" | "backoff" | "blocked";

/**
 * - `pending`: accepted, not settled.
 * - `done`: completed; `outcome` says how.
 * - `dead`: failed on its last attempt, or could not be mended by a retry.
 * - `late`: arrived below the cursor and was recorded without a handler.
 * - `discarded`: set aside by an operator, or erased before it was handled.
 */
export type EventState = "pending" | "done" | "dead" | "late" | "discarded";

/** How a `done` event ended: `unhandled` means that no handler was registered for its type. */
export type Outcome = "handled" | "unhandled";

/** What happens to a lane whose event became a dead letter: it goes on, or is parked until an operator acts. */
export type OnDead = "continue" | "block";

/** An event about to be accepted: parsed, verified, and with everything computed that a store needs to place it. */
export interface NewEvent {
  readonly lane: LaneKey;
  /** 0 for events that have no place in a sequence. */
  readonly sequence: number;
  readonly eventType: string;
  /** Epoch milliseconds, from the event. */
  readonly occurredAt: number;
  /** Epoch milliseconds: the verified timestamp of the delivery. */
  readonly signedAt: number;
  /** How long a gap before this event is waited for, in milliseconds. */
  readonly gapWaitMs: number;
  /** SHA-256 of `raw`. */
  readonly digest: Uint8Array;
  /** The exact bytes of the delivery's body. */
  readonly raw: Uint8Array;
  /** The delivery's `traceparent`, when it had a strictly valid one. */
  readonly trace: string | null;
  /** The other party's number, for search and erasure. */
  readonly peer: string | null;
  readonly externalReference: string | null;
}

/** A correctly signed body that is no event. */
export interface NewQuarantine {
  /** The parser's code, such as `invalid_json`. */
  readonly reason: string;
  /** The place of the secret that vouched for it: `current`, `previous`, `next`, or `unsigned`. */
  readonly slot: string;
  /** Names that secret itself, in 64 characters at most. The quota counts per signer. */
  readonly signer: string;
  /** What that secret may vouch for, such as `any` or `inbound`; an API client is named by a digest. Kept as it is given. */
  readonly scope: string;
  /** Epoch milliseconds: the verified timestamp of the delivery. */
  readonly signedAt: number;
  readonly digest: Uint8Array;
  readonly raw: Uint8Array;
  readonly trace: string | null;
}

/** A stored event, as an operator sees it. */
export interface EventRecord {
  readonly id: EventId;
  readonly laneId: LaneId;
  readonly lane: LaneKey;
  readonly sequence: number;
  readonly eventType: string;
  readonly state: EventState;
  /** Null unless `state` is `done`. */
  readonly outcome: Outcome | null;
  /** It was below the cursor when it arrived. */
  readonly late: boolean;
  /** An operator replayed it: handed out whatever its sequence. */
  readonly forced: boolean;
  readonly occurredAt: number;
  readonly signedAt: number;
  readonly acceptedAt: number;
  /** First hand-out to a handler. */
  readonly startedAt: number | null;
  /** When it reached a state other than `pending`. */
  readonly finishedAt: number | null;
  readonly attempts: number;
  readonly duplicates: number;
  /** A delivery with this identity carried other content. */
  readonly conflict: boolean;
  readonly errorCode: string | null;
  /** At most 500 characters, masked. */
  readonly error: string | null;
  readonly trace: string | null;
  readonly digest: Uint8Array;
  /** The exact body; null once pruned or erased. */
  readonly raw: Uint8Array | null;
}

/** A stored body that is no event. */
export interface QuarantineRecord {
  readonly id: number;
  readonly reason: string;
  readonly slot: string;
  /** Null when an older version stored it: it counts against the quota of every signer with its slot and scope. */
  readonly signer: string | null;
  readonly scope: string;
  readonly state: "held" | "replayed" | "discarded";
  /** The event its replay became. */
  readonly replayedAs: EventId | null;
  readonly signedAt: number;
  readonly acceptedAt: number;
  readonly trace: string | null;
  readonly digest: Uint8Array;
  /** Null once erased. */
  readonly raw: Uint8Array | null;
}

/** A stretch of sequences that was waited for in vain. */
export interface GapRecord {
  readonly from: number;
  readonly to: number;
  readonly skippedAt: number;
  /** When a missing event of it arrived after all. */
  readonly filledAt: number | null;
}

/** A failed attempt. */
export interface AttemptRecord {
  readonly eventId: EventId;
  readonly attempt: number;
  readonly at: number;
  readonly durationMs: number;
  readonly errorCode: string;
  readonly error: string;
}

/** A lane with all it holds: the story of one message. */
export interface LaneRecord {
  readonly id: LaneId;
  readonly key: LaneKey;
  /** Null until an event of it was handed out. */
  readonly cursor: number | null;
  readonly status: LaneStatus;
  readonly readyAt: number | null;
  readonly gapSince: number | null;
  readonly epoch: number;
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** In ascending (sequence, id). */
  readonly events: readonly EventRecord[];
  readonly gaps: readonly GapRecord[];
  readonly attempts: readonly AttemptRecord[];
}

/** What a lane is, without all it holds: a row of a list. */
export interface LaneSummary extends Omit<LaneRecord, "events" | "gaps" | "attempts"> {
  /** The one that was accepted last. */
  readonly newest: Pick<EventRecord, "id" | "eventType" | "sequence" | "acceptedAt" | "state">;
}

/** What an operator did. */
export interface AuditRecord {
  readonly id: number;
  readonly at: number;
  /** Who, as the caller named them. */
  readonly by: string;
  readonly act: string;
  /** Ids and counts; never a number or a text. */
  readonly detail: string;
}

/** Names an event to a hook: ids and types only. */
export interface EventNotice {
  readonly eventId: EventId;
  readonly lane: LaneKey;
  readonly sequence: number;
  readonly eventType: string;
}

/** Gauges are of now; the others have counted since the inbox was made. */
export interface InboxStats {
  readonly gauges: {
    readonly pending: number;
    readonly dead: number;
    readonly quarantined: number;
    readonly quarantinedBytes: number;
    readonly blockedLanes: number;
  };
  readonly counters: {
    readonly accepted: number;
    readonly duplicates: number;
    readonly conflicts: number;
    readonly late: number;
    readonly handled: number;
    readonly unhandled: number;
    readonly retried: number;
    readonly deadLettered: number;
    readonly discarded: number;
    readonly gapsSkipped: number;
    readonly quarantined: number;
  };
  /** When the oldest pending event was accepted, epoch milliseconds; null when nothing is pending. */
  readonly oldestPendingAt: number | null;
  /** Epoch milliseconds; null before the first delivery. */
  readonly newestSignedAt: number | null;
  /** A duplicate came with another timestamp, so the service signs each attempt anew. */
  readonly serviceResigns: boolean;
  readonly instances: readonly InstanceRecord[];
}

export interface Heartbeat {
  /** Names the secrets in use without telling them; changes with each rotation. */
  readonly keyringVersion: string;
  /** Cumulative for this process: deliveries by secret slot and by refusal reason. */
  readonly counters: Readonly<Record<string, number>>;
}

export interface InstanceRecord extends Heartbeat {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly seenAt: number;
}

/** The first body of an event's identity that said something else. */
export interface ConflictRecord {
  readonly digest: Uint8Array;
  readonly signedAt: number;
  /** When it arrived. */
  readonly at: number;
  readonly raw: Uint8Array;
}

/** An event with what operators do not see of it. */
export interface TransferredEvent extends Omit<EventRecord, "laneId" | "lane"> {
  /** How long a gap before it is waited for, in milliseconds. */
  readonly gapWaitMs: number;
  readonly conflicting: ConflictRecord | null;
}

/** A lane without a lease: whoever held one has stopped. Its event is ready, and keeps the attempts it was claimed for. */
export interface TransferredLane extends Omit<LaneRecord, "status" | "events"> {
  readonly status: Exclude<LaneStatus, "leased">;
  /** In ascending (sequence, id). */
  readonly events: readonly TransferredEvent[];
}

/** What an inbox has counted, as far as it does not follow from its rows. */
export type TransferredTotals = Pick<InboxStats, "counters" | "newestSignedAt" | "serviceResigns">;

/** A part of another inbox. */
export interface ImportPage {
  /** The location of the store it comes from. */
  readonly source: string;
  readonly lanes: readonly TransferredLane[];
  readonly quarantined: readonly QuarantineRecord[];
  readonly audit: readonly AuditRecord[];
  /** Given when all the rest is there: it ends the import, and the inbox can be worked on. */
  readonly totals: TransferredTotals | null;
}

export type ImportAnswer =
  /** `lastLane`: the highest that was taken so far, 0 for none. `finished`: the totals were taken, now or earlier. */
  | { readonly ok: true; readonly lastLane: LaneId; readonly finished: boolean }
  /** Nothing was taken: the inbox holds something that does not come from this source. */
  | { readonly ok: false };

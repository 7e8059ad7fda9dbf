/** The records of an inbox, in the words of docs/architecture.md. Every store uses these types. */

import type { LaneKey } from "./lane-key.ts";

export type { EventRef, LaneKey, LaneOrder } from "./lane-key.ts";

/** A store's number for an event. Ids grow in the order of acceptance. */
export type EventId = number;
/** A store's number for a lane. */
export type LaneId = number;

/**
 * - `idle`: no pending event.
 * - `ready`: its head can be claimed.
 * - `gap`: its head waits for a missing sequence, until `readyAt`.
 * - `leased`: a worker holds its head, until `readyAt`.
 * - `backoff`: its head failed and is retried at `readyAt`, or a limit of handlers puts it off until then.
 * - `blocked`: waits behind a dead letter until an operator acts.
 */
export type LaneStatus = "idle" | "ready" | "gap" | "leased" | "backoff" | "blocked";

/**
 * - `pending`: accepted, and has not ended.
 * - `done`: completed; `outcome` says how.
 * - `dead`: failed on its last attempt, or with a permanent error.
 * - `late`: arrived below the cursor, and was recorded without a handler.
 * - `discarded`: set aside by an operator, or erased before it was handled.
 */
export type EventState = "pending" | "done" | "dead" | "late" | "discarded";

/** How a `done` event ended. `unhandled`: no handler was registered for its type. `filtered`: its source's filter refused it. */
export type Outcome = "handled" | "unhandled" | "filtered";

/** A lane whose event became a dead letter continues, or is blocked until an operator acts. */
export type OnDead = "continue" | "block";

/** An event to be accepted: verified, parsed, and with everything that a store needs to put it into its lane. */
export interface NewEvent {
  readonly lane: LaneKey;
  /**
   * The id that its source gives it: with source and tenant it makes two deliveries the same event, whatever their lane. Absent by sequence
   * alone, where lane, sequence and type do.
   */
  readonly ownId?: string | undefined;
  /**
   * 0 for an event that is alone in its lane. By position: the position, 0 to 9 × 10¹²; the store gives the event a sequence of its own
   * (`arrivalOf` in `src/inbox/lane.ts`), and by arrival too.
   */
  readonly sequence: number;
  readonly eventType: string;
  /** Epoch milliseconds, from the event. */
  readonly occurredAt: number;
  /** Epoch milliseconds: the verified timestamp of the delivery. */
  readonly signedAt: number;
  /** How long this event waits for a missing sequence before it, or is held back for one of a lower position, in milliseconds. */
  readonly gapWaitMs: number;
  /** SHA-256 of `raw`. */
  readonly digest: Uint8Array;
  /** The exact bytes of the delivery's body. */
  readonly raw: Uint8Array;
  /** The delivery's `traceparent`, if it was strictly valid. */
  readonly trace: string | null;
  /** The other party's number, for search and erasure. */
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** The headers to keep next to the body, as JSON. Default: none. */
  readonly head?: string | undefined;
  /** `signedAt` is not signed, but the time of acceptance. It says nothing about the clock. Default: it is signed. */
  readonly untimed?: true | undefined;
  /**
   * Whether the stored body of this event, with other bytes, is the same event: its source compares what it reads from both. `head` as above;
   * null without any. Default: bodies with equal JSON values are.
   */
  readonly isSame?: ((raw: Uint8Array, head: string | null) => boolean) | undefined;
  /** Its source's filter refused it: its lane keeps it as done, without its body. Default: it is handled. */
  readonly filtered?: true | undefined;
  /** Identical deliveries that waited for the same batch: the store counts them as duplicates of this one. Default: none. */
  readonly repeats?: Repeats | undefined;
}

/** Further deliveries of an event, counted together. */
export interface Repeats {
  readonly count: number;
  /** The newest verified timestamp among them, epoch milliseconds. Null if their source signs none. */
  readonly signedAt: number | null;
}

/** A correctly signed body that is not a valid event. */
export interface NewQuarantine {
  /** The parser's code, such as `invalid_json`. */
  readonly reason: string;
  /** The slot of the secret that signed it: `current`, `previous`, `next`, or `unsigned`. */
  readonly slot: string;
  /** Identifies that secret, in at most 64 characters. The quota counts per signer. */
  readonly signer: string;
  /** The entry that it came through, and whose secret signed it, as `LaneKey`. */
  readonly source: string;
  readonly tenant: string | null;
  /** The kinds of events that the secret covers which signed it. Empty: all. */
  readonly kinds: readonly string[];
  /** Epoch milliseconds: the verified timestamp of the delivery. */
  readonly signedAt: number;
  /** SHA-256 of `raw` and of what says whose it is. A body with a known digest is a duplicate. */
  readonly digest: Uint8Array;
  readonly raw: Uint8Array;
  readonly trace: string | null;
  /** As `NewEvent`. */
  readonly head?: string | undefined;
  readonly untimed?: true | undefined;
}

/** A stored event, as an operator sees it. */
export interface EventRecord {
  readonly id: EventId;
  readonly laneId: LaneId;
  readonly lane: LaneKey;
  /** The id that its source gives it. Null where its place in the lane identifies it. */
  readonly ownId: string | null;
  readonly sequence: number;
  readonly eventType: string;
  readonly state: EventState;
  /** Null unless `state` is `done`. */
  readonly outcome: Outcome | null;
  /** It was below the cursor when it arrived. */
  readonly late: boolean;
  /** An operator replayed it: it is handled whatever its sequence. */
  readonly forced: boolean;
  readonly occurredAt: number;
  readonly signedAt: number;
  /** Its source signed no time: `signedAt` is when it was accepted. */
  readonly untimed: boolean;
  readonly acceptedAt: number;
  /** When its first attempt began. */
  readonly startedAt: number | null;
  /** When it reached a state other than `pending`. */
  readonly finishedAt: number | null;
  readonly attempts: number;
  readonly duplicates: number;
  /** A delivery of it had different content. */
  readonly conflict: boolean;
  readonly errorCode: string | null;
  /** At most 500 characters, masked. */
  readonly error: string | null;
  readonly trace: string | null;
  readonly digest: Uint8Array;
  /** The exact body. Null once pruned or erased. */
  readonly raw: Uint8Array | null;
  /** The headers that its source keeps next to the body, as JSON. Null without any, and once the body is pruned or erased. */
  readonly head: string | null;
}

/** An event without its body, which may be large: what lists and lanes hold. */
export interface EventSummary extends Omit<EventRecord, "raw" | "head"> {
  /** False once the body is pruned or erased. */
  readonly hasBody: boolean;
}

/** An event's body, as `EventRecord` has it. */
export interface EventBody {
  readonly raw: Uint8Array;
  readonly head: string | null;
}

/** A stored body that is not a valid event. */
export interface QuarantineRecord {
  readonly id: number;
  readonly reason: string;
  readonly slot: string;
  readonly signer: string;
  readonly source: string;
  readonly tenant: string | null;
  /** The kinds of events that the secret covers which signed it. Empty: all. */
  readonly kinds: readonly string[];
  /** `discarded`: by an operator, by an erasure, or because it gave way to newer ones. The last two have no body. */
  readonly state: "held" | "replayed" | "discarded";
  /** The event its replay became. */
  readonly replayedAs: EventId | null;
  readonly signedAt: number;
  /** As `EventRecord`. */
  readonly untimed: boolean;
  readonly acceptedAt: number;
  readonly trace: string | null;
  readonly digest: Uint8Array;
  /** Null once erased. */
  readonly raw: Uint8Array | null;
  /** The headers that its source keeps next to the body, as JSON. Null without any, and once the body is pruned or erased. */
  readonly head: string | null;
}

/** A row of the quarantine without its body: what lists hold. */
export interface QuarantineSummary extends Omit<QuarantineRecord, "raw" | "head"> {
  /** The size of the body. Null once erased. */
  readonly bytes: number | null;
}

/** A range of sequences that did not arrive in time. */
export interface GapRecord {
  readonly from: number;
  readonly to: number;
  readonly skippedAt: number;
  /** When a missing event of it arrived late. */
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

/** A lane with what is in it: the history of one message. */
export interface LaneRecord {
  readonly id: LaneId;
  readonly key: LaneKey;
  /** Null until one of its events was handled. */
  readonly cursor: number | null;
  readonly status: LaneStatus;
  readonly readyAt: number | null;
  readonly gapSince: number | null;
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** In ascending (sequence, id), without their bodies. Of a lane with more than 1,000, those next to its cursor: see `more`. */
  readonly events: readonly EventSummary[];
  /** It has more events: of those from its cursor on, and of those before it, `events` has at most 500 each, the nearest. */
  readonly more: boolean;
  readonly gaps: readonly GapRecord[];
  /** Of `events`. */
  readonly attempts: readonly AttemptRecord[];
}

/** A lane without its events: a row of a list. */
export interface LaneSummary extends Omit<LaneRecord, "events" | "more" | "gaps" | "attempts"> {
  /** The event that was accepted last. */
  readonly newest: Pick<EventRecord, "id" | "ownId" | "eventType" | "sequence" | "acceptedAt" | "state">;
}

/** An operator's act. */
export interface AuditRecord {
  readonly id: number;
  readonly at: number;
  /** Who acted, as the caller named them. */
  readonly by: string;
  readonly act: string;
  /** Ids and counts. Never a phone number or a text. */
  readonly detail: string;
}

/** An event, for hooks and logs: ids and types only. */
export interface EventNotice {
  readonly eventId: EventId;
  readonly lane: LaneKey;
  /** The id that its source gives it. Null where its place in the lane identifies it. */
  readonly id: string | null;
  readonly sequence: number;
  readonly eventType: string;
}

/** Gauges show the present. Counters count since the inbox was made. */
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
    readonly filtered: number;
    readonly retried: number;
    readonly deadLettered: number;
    readonly discarded: number;
    readonly gapsSkipped: number;
    readonly quarantined: number;
  };
  /** When the oldest pending event was accepted, epoch milliseconds. Null if none is pending. */
  readonly oldestPendingAt: number | null;
  /** Epoch milliseconds. Null before the first delivery. */
  readonly newestSignedAt: number | null;
  /** A duplicate by sequence had another timestamp, so the messaging service signs each attempt anew. */
  readonly serviceResigns: boolean;
  readonly instances: readonly InstanceRecord[];
}

/** What a process reports of itself every few seconds. */
export interface Heartbeat {
  /** Identifies the secrets in use without revealing them. Changes with each rotation. */
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

/** The first delivery of an event with different content. */
export interface ConflictRecord {
  readonly digest: Uint8Array;
  readonly signedAt: number;
  /** When it arrived. */
  readonly at: number;
  readonly raw: Uint8Array;
}

/** An event with the facts that operators do not see. */
export interface TransferredEvent extends Omit<EventRecord, "laneId" | "lane"> {
  /** How long a gap before it is waited for, in milliseconds. */
  readonly gapWaitMs: number;
  readonly conflicting: ConflictRecord | null;
}

/** A lane without a lease, because its process has stopped. Its event is ready, and keeps its attempts. */
export interface TransferredLane extends Omit<LaneRecord, "status" | "events" | "more"> {
  readonly status: Exclude<LaneStatus, "leased">;
  /** In ascending (sequence, id). */
  readonly events: readonly TransferredEvent[];
}

/** The counts of an inbox that do not follow from its rows. */
export type TransferredTotals = Pick<InboxStats, "counters" | "newestSignedAt" | "serviceResigns">;

/** A part of another inbox. */
export interface ImportPage {
  /** The location of the store it comes from. */
  readonly source: string;
  readonly lanes: readonly TransferredLane[];
  readonly quarantined: readonly QuarantineRecord[];
  readonly audit: readonly AuditRecord[];
  /** Set on the last page: it ends the import, and receivers can use the inbox. */
  readonly totals: TransferredTotals | null;
}

/** Whether a page was imported, and where to go on. */
export type ImportAnswer =
  /** `lastLane`: the highest that was imported so far, 0 for none. `finished`: the totals were imported, now or earlier. */
  | { readonly ok: true; readonly lastLane: LaneId; readonly finished: boolean }
  /** Nothing was imported: the inbox holds something that does not come from this source. */
  | { readonly ok: false };

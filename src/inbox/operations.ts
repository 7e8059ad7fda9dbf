/** What an operator sees of an inbox and can ask of it: queries, acts, statistics, pruning. */
import type {
  EventId,
  EventState,
  LaneId,
  LaneStatus,
  LaneTag,
  NewEvent,
  Outcome,
  QuarantineRecord,
} from "./record.ts";

/** All filters must match. */
export interface EventQuery {
  readonly states?: readonly EventState[];
  readonly outcome?: Outcome;
  readonly late?: boolean;
  readonly conflict?: boolean;
  readonly eventType?: string;
  readonly apiClientId?: string;
  readonly messageId?: string;
  readonly externalReference?: string;
  /** The other party's number, in full. */
  readonly peer?: string;
  readonly errorCode?: string;
  /** Epoch milliseconds, both included. */
  readonly acceptedFrom?: number;
  readonly acceptedTo?: number;
  /** Default `"newest"`. */
  readonly order?: "newest" | "oldest";
  /** Where the page before ended. */
  readonly after?: EventId;
  /** 1 to 1,000. */
  readonly limit: number;
}

/** All filters must match. */
export interface LaneQuery {
  readonly statuses?: readonly LaneStatus[];
  readonly tag?: LaneTag;
  /** No event of any of these types was accepted. Left out is a lane that cannot tell: the event at its cursor was pruned. */
  readonly without?: readonly string[];
  /** Epoch milliseconds: no event was accepted after it. */
  readonly quietSince?: number;
  readonly apiClientId?: string;
  /** The other party's number, in full; null for lanes that tell none. */
  readonly peer?: string | null;
  /** Where the page before ended. */
  readonly after?: LaneId;
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface QuarantineQuery {
  readonly states?: readonly QuarantineRecord["state"][];
  readonly after?: number;
  /** 1 to 1,000. */
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it as `after` for the next page; null on the last one. */
  readonly next: number | null;
}

/** How an event was when somebody decided to act on it: unless what is said still holds, the answer is `wrong_state`. */
export interface AsFound {
  readonly from?: EventState;
  /** Null while it was pending. Another time means that it was handed out since. */
  readonly finishedAt?: number | null;
}

/** What an operator can ask for. */
export type Act =
  /** Pending again, handed to the ordinary handlers whatever its sequence; attempts start anew, the cursor stays. */
  | ({ readonly kind: "replay"; readonly event: EventId } & AsFound)
  /** Set aside. The cursor moves on if its sequence was the expected one. */
  | ({ readonly kind: "discard"; readonly event: EventId } & AsFound)
  /** A blocked lane goes on. */
  | { readonly kind: "unblock"; readonly lane: LaneId }
  /** The gap before the lane's head is given up now. */
  | { readonly kind: "release_gap"; readonly lane: LaneId }
  /**
   * Removes bodies, numbers, references and error texts; what identifies an event stays. Of events whose lane does not tell
   * the number or the message, and of the quarantine, it takes the bodies that name it: as one of their strings if they are
   * JSON, else as text between characters that belong to no word (`createMentionTest` in src/inbox/mention.ts). The text has
   * three characters or more. With `in_progress` nothing was erased, unless a store that erases in several transactions met
   * the lease only later: then its audit row tells how much was, and the act is repeated for the rest.
   */
  | { readonly kind: "erase"; readonly subject: { readonly peer: string } | { readonly messageId: string } }
  /** Accepts a quarantined body as `event`, and marks the row with it. */
  | {
      readonly kind: "replay_quarantined";
      readonly quarantine: number;
      readonly event: NewEvent;
      readonly lateEvents: "hand_out" | "record";
    }
  | { readonly kind: "discard_quarantined"; readonly quarantine: number }
  /** Somebody is shown the numbers and texts of a message, or of a quarantined body: only the audit row is written. */
  | { readonly kind: "reveal"; readonly lane: LaneId }
  | { readonly kind: "reveal_quarantined"; readonly quarantine: number };

export type ActResult =
  | { readonly ok: true; readonly event?: EventId /** Rows touched. */; readonly count: number }
  | {
      readonly ok: false;
      /** `in_progress`: a worker holds it, by a lease that has not expired. `wrong_state`: the act does not apply to the state it is in. */
      readonly reason: "not_found" | "in_progress" | "body_pruned" | "wrong_state";
    };

/** Ages in milliseconds. The cut-off is `min(now, newest verified timestamp) - age`: a clock that jumps ahead deletes nothing. */
export interface PrunePolicy {
  /** Bodies of events that were handled. */
  readonly handledBodiesMs: number;
  /** Bodies of late and unhandled events. */
  readonly otherBodiesMs: number;
  /** Identities of done, late and discarded events; with them go empty lanes and their gaps. */
  readonly identitiesMs: number;
  /** Dead letters and quarantined bodies nobody acted on. */
  readonly deadMs: number;
  /** Rows of a kind at most. */
  readonly batch: number;
}

export interface PruneResult {
  readonly bodies: number;
  readonly events: number;
  readonly lanes: number;
  readonly quarantined: number;
  /** There was more than one batch to do. */
  readonly more: boolean;
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

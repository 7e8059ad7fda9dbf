/** The contract between the core and a place that keeps the inbox: few methods, all batched, and no decisions of their own. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type {
  AuditRecord,
  EventId,
  EventRecord,
  EventState,
  Heartbeat,
  ImportAnswer,
  ImportPage,
  InboxStats,
  LaneId,
  LaneKey,
  LaneRecord,
  LaneStatus,
  LaneSummary,
  LaneTag,
  NewEvent,
  NewQuarantine,
  OnDead,
  Outcome,
  QuarantineRecord,
  TransferredLane,
} from "./record.ts";

/**
 * Keeps events and lanes. Invariants I1 to I10 of docs/inbox.md hold after every call, whatever fails in between;
 * `storeContract` of `oncehook/testing/contracts` proves them. A store decides nothing: waits, limits and policies are arguments.
 * Every method may be called while another is under way.
 *
 * @typeParam Tx - what an effect registered with `ctx.commit` gets to write with.
 */
export interface InboxStore<Tx = unknown> {
  readonly capabilities: StoreCapabilities;
  /** Names the place, for messages and for telling two stores apart: `sqlite:/data/inbox.db`. Never a password. */
  readonly location: string;

  /**
   * Opens and migrates; resolves with the rules that apply. Leases of processes of this host that no longer run expire at once. One
   * that rejects has let go of what it took: no `close` follows it.
   */
  open(context: OpenContext): Promise<InboxRules>;

  /**
   * One write transaction: settles and counts repeats, claims what is due into the free slots, then accepts (leasing at
   * once what is due, while slots are free) and quarantines; with `claim.lane` it claims last. Everything in it is durable
   * when the promise resolves. After a rejection nothing of it has happened, or, where an answer can be lost, all of it: the core asks
   * again for what must be known.
   */
  step(turn: Turn<Tx>): Promise<TurnResult>;

  /**
   * Whether a turn that accepts such events and does nothing else costs little more than to write them, so that one of 32 need not wait
   * for more. Asked of stores with `parallelTurns`, of each delivery. Default: of no event.
   */
  acceptsQuickly?(event: NewEvent): boolean;

  /**
   * Throws for a function that this store cannot use as an effect, as far as that is seen before it runs. Called by `ctx.commit`, so that
   * the error leads to the line that called it. Default: takes any.
   */
  checkEffect?(effect: Effect<never>): void;

  /** Renews leases for `leaseMs` from now. Answers per lease whether it is still held. */
  extend(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]>;

  /** Milliseconds until a lane is due: 0 for now, null for none waiting. Blocked lanes are never due. */
  nextDue(): Promise<number | null>;

  /** Calls `listener` when another process may have made a lane due. Returns a function that stops it. */
  onWake?(listener: () => void): () => void;

  /** Events by filter, newest first unless asked otherwise; never more than `limit`. */
  find(query: EventQuery): Promise<Page<EventRecord>>;
  /** Lanes by filter, those made last first; never more than `limit`. Each is as it was at one moment, a page need not be. */
  findLanes(query: LaneQuery): Promise<Page<LaneSummary>>;
  findQuarantined(query: QuarantineQuery): Promise<Page<QuarantineRecord>>;
  /** One lane with everything in it; null when there is none. */
  lane(ref: LaneKey | LaneId): Promise<LaneRecord | null>;
  /** Does what an operator asks, and writes an audit row in the same transaction; in the last one if erasing takes several. */
  act(act: Act, by: string): Promise<ActResult>;
  /** The newest `limit` audit rows, newest first. */
  audit(limit: number): Promise<readonly AuditRecord[]>;
  /** From small indexes and kept counters; never a count over all rows. */
  stats(): Promise<InboxStats>;
  /** Removes what is past its retention, at most `policy.batch` rows of a kind. */
  prune(policy: PrunePolicy): Promise<PruneResult>;
  /**
   * Lanes with ids above `after`, at most `limit`, in ascending order of their ids, with all that is kept of them; `after` 0
   * begins. Nothing changes. A copy reads it while nobody works on the inbox, and a page need not belong to another; what is held
   * on a person is read from it at any time.
   */
  export(after: LaneId, limit: number): Promise<readonly TransferredLane[]>;
  /**
   * Takes lanes, quarantined bodies and audit rows into an inbox that holds nothing else, in one transaction, with the ids they
   * had; new ids lie above them. What is there already is left as it is. The source is recorded by the first call, the end by the
   * one with totals; from then on nothing is taken. Until then `open` refuses whoever does not say `copying` (`copy_unfinished`).
   */
  import(page: ImportPage): Promise<ImportAnswer>;
  /** Says that this process lives, with its counters. */
  heartbeat(beat: Heartbeat): Promise<void>;
  /** Waits for the work under way, then lets go. Closing twice is harmless. */
  close(): Promise<void>;
}

export interface StoreCapabilities {
  /** What `step` acknowledged survives a power cut. */
  readonly durable: boolean;
  /** Several processes can work on it at once. */
  readonly shared: boolean;
  /** Effects commit in the transaction of their event's completion. */
  readonly transactional: boolean;
  /**
   * Turns that run at once are quicker than one after the other, as where a server is waited for. Then a turn of accepts alone may
   * come while another is under way. Default false.
   */
  readonly parallelTurns?: boolean;
}

export interface OpenContext {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Those of the receiver, or `"recorded"`: then an inbox that is not there is not made (`no_inbox`), and nothing is recorded. */
  readonly rules: AskedRules;
  /** `"check"` refuses an inbox that needs a migration instead of migrating it. */
  readonly migrate: "auto" | "check";
  /** Opened by a copy, which may be one that goes on: any other open of an inbox whose import has not ended is refused. */
  readonly copying?: boolean;
  readonly instance: InstanceIdentity;
}

/** A process that works on the inbox. */
export interface InstanceIdentity {
  /** Unique per open. */
  readonly id: string;
  /** Machine, boot and process namespace: only there does `pid` mean anything. */
  readonly host: string;
  readonly pid: number;
  /** Tells a process from a later one with the same pid. */
  readonly pidStartedAt: string;
}

/** What the core asks for in one write transaction. */
export interface Turn<Tx> {
  readonly settles: readonly Settle<Tx>[];
  readonly accepts: readonly NewEvent[];
  readonly quarantines: readonly NewQuarantine[];
  /** Duplicates that the core answered from its cache, to be counted. */
  readonly repeats: readonly Repeat[];
  /** What happens to an event below its lane's cursor: pending for `onLate`, or only recorded. */
  readonly lateEvents: "hand_out" | "record";
  readonly quarantineQuota: QuarantineQuota;
  readonly claim: ClaimRequest;
}

/** Limits for the held bodies of each signer; beyond them a quarantine is refused. */
export interface QuarantineQuota {
  readonly maxRows: number;
  readonly maxBytes: number;
}

export interface Repeat {
  readonly event: EventId;
  readonly count: number;
  /** The newest verified timestamp among them, epoch milliseconds. */
  readonly signedAt: number;
}

/** Which lanes to claim. Due lanes take the slots oldest first; an accepted event is leased at once if its lane is due. */
export interface ClaimRequest {
  /** Free slots. 0 claims nothing. */
  readonly limit: number;
  readonly leaseMs: number;
  /** A claim beyond this number of attempts retires the event as a dead letter instead (`attempts_exhausted`). */
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  /**
   * `ordinary` skips expired leases and reports them as `recoveryDue`. `recover` claims one expired lease and nothing
   * else, so that an event that kills its process takes no neighbours with it.
   */
  readonly mode: "ordinary" | "recover";
  /** Claim only this lane. Accepted events are then not leased. */
  readonly lane?: LaneId;
}

/** Names a lease; the epoch is the fencing token. */
export interface LeaseRef {
  readonly lane: LaneId;
  readonly epoch: number;
  readonly event: EventId;
}

/** A worker's time-limited right to a lane's head. */
export interface Lease extends LeaseRef {
  readonly key: LaneKey;
  readonly sequence: number;
  readonly eventType: string;
  /** Counting this one: 1 on the first hand-out. */
  readonly attempt: number;
  readonly acceptedAt: number;
  readonly signedAt: number;
  readonly late: boolean;
  /** An operator's replay. */
  readonly forced: boolean;
  /** Its sequence lies below the lane's cursor. */
  readonly outOfOrder: boolean;
  /** The sequences before it that were given up, both included. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  readonly trace: string | null;
  readonly raw: Uint8Array;
  /** The place in `turn.accepts` it was leased from, so that the core need not parse it again; null otherwise. */
  readonly acceptIndex: number | null;
}

/** A write of the handler's, run in the transaction of its event's completion. May return a promise where the store allows it. */
export type Effect<Tx> = (tx: Tx) => unknown;

/** Why an attempt failed. */
export interface Failure {
  readonly code: string;
  /** At most 500 characters, masked. */
  readonly message: string;
  readonly durationMs: number;
}

/** How a claim ends. Each is done only while epoch, holder, event and state still match. */
export type Settle<Tx> =
  | {
      readonly kind: "complete";
      readonly lease: LeaseRef;
      readonly outcome: Outcome;
      readonly effects: readonly Effect<Tx>[];
    }
  | { readonly kind: "retry"; readonly lease: LeaseRef; readonly delayMs: number; readonly failure: Failure }
  | { readonly kind: "dead"; readonly lease: LeaseRef; readonly failure: Failure; readonly onDead: OnDead }
  /** Not started, or a failed probe: it goes back with its attempt, ready after `delayMs`. */
  | { readonly kind: "release"; readonly lease: LeaseRef; readonly delayMs: number };

export type SettleResult =
  /** `gapBegins`: the lane waits for a missing sequence from now on. Said once for each gap, for the log. */
  | { readonly status: "settled"; readonly gapBegins?: true }
  /** The lease had passed to another worker, or an operator had acted: the effects did not happen. */
  | { readonly status: "lost" }
  /** An effect threw: nothing of this settle happened and the lease is still held. */
  | { readonly status: "effect_failed"; readonly error: unknown }
  /** Its effects still run, cannot begin yet, or met an outage: the core asks again with the same settle. Only with effects. */
  | { readonly status: "unfinished" };

export type Acceptance =
  | {
      readonly outcome: "accepted" | "late";
      readonly event: EventId;
      readonly lane: LaneId;
      /** As of a settle: the event waits for a missing sequence, and none before it in its lane waited for the same gap. */
      readonly gapBegins?: true;
    }
  | {
      readonly outcome: "duplicate";
      readonly event: EventId;
      readonly lane: LaneId;
      readonly state: EventState;
      /** SHA-256 of the body that was accepted first. */
      readonly digest: Uint8Array;
      /** The verified timestamp of the delivery that was accepted first. */
      readonly signedAt: number;
      /** This delivery's parsed content differs from what was accepted: it was not handled. */
      readonly conflict: boolean;
    }
  /** This row alone could not be stored; its neighbours were. */
  | { readonly outcome: "failed"; readonly error: unknown };

/** `full`: the quota of its signer is used up. */
export type QuarantineAnswer =
  | "held"
  | "duplicate"
  | "full"
  /** The store could not take it now, as when the disk is full; the quarantine itself may have room. */
  | { readonly outcome: "failed"; readonly error: unknown };

export interface TurnResult {
  /** As `turn.settles`. */
  readonly settled: readonly SettleResult[];
  /** As `turn.accepts`. */
  readonly accepted: readonly Acceptance[];
  /** As `turn.quarantines`. */
  readonly quarantined: readonly QuarantineAnswer[];
  readonly leases: readonly Lease[];
  /** Events that had used up their attempts without being settled, now dead letters; 256 at most. When some come, the core asks again. */
  readonly retired: readonly EventRecord[];
  /**
   * An expired lease is due: claim it alone, with `mode: "recover"`, before anything new. A turn that claims nothing (`limit` 0) need
   * not look.
   */
  readonly recoveryDue: boolean;
}

/** What a receiver says of its inbox, recorded at each of its opens. */
export interface InboxRules {
  /** The receiver this inbox belongs to; recorded at the first open, and another name is refused (`wrong_receiver_name`). */
  readonly name: string;
  /** The sequence a message begins with; with `"any"` the first arrival is taken for the first. */
  readonly firstSequence: number | "any";
  /**
   * Past and future tolerance of timestamps together, in milliseconds: how long a delivery can be replayed. Pruning follows it
   * wherever it is done: no identity goes before this and a day.
   */
  readonly toleranceMs: number;
}

/** Opened by somebody who is no receiver: an operator, a page, a copy. */
export type AskedRules = InboxRules | "recorded";

// What an operator sees of an inbox and can ask of it: queries, acts, statistics, pruning.

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
   * JSON, else as text between characters that belong to no word (`createMentionTest` in src/inbox/subject.ts). The text has
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

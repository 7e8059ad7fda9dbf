/** The contract between the core and a store: few methods, all batched. A store makes no decisions of its own. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type {
  AuditRecord,
  EventBody,
  EventId,
  EventRecord,
  EventRef,
  EventState,
  EventSummary,
  Heartbeat,
  ImportAnswer,
  ImportPage,
  InboxStats,
  LaneId,
  LaneKey,
  LaneOrder,
  LaneRecord,
  LaneStatus,
  LaneSummary,
  NewEvent,
  NewQuarantine,
  OnDead,
  Outcome,
  QuarantineRecord,
  QuarantineSummary,
  TransferredLane,
} from "./record.ts";

/**
 * Keeps events and lanes. Invariants I1 to I10 of docs/inbox.md hold after every call, even if it fails; `storeContract` of
 * `oncehook/testing/contracts` tests them. Waits, limits and policies are arguments. Every method may be called while another runs.
 *
 * @typeParam Tx - the connection that an effect of `ctx.commit` writes with
 */
export interface InboxStore<Tx = unknown> {
  readonly capabilities: StoreCapabilities;
  /** Names the store in messages, and tells two stores apart: `sqlite:/data/inbox.db`. Never a password. */
  readonly location: string;

  /**
   * Opens and migrates, and resolves with the rules that apply. Leases of processes that no longer run on this host expire at once. If it
   * rejects, it has released its resources: no `close` follows.
   */
  open(context: OpenContext): Promise<InboxRules>;

  /**
   * One write transaction for a batch. It ends leases, claims due lanes into the free slots, then accepts (and leases
   * due events at once while slots are free) and quarantines. With `claim.lane` it claims last. Everything is durable when the promise
   * resolves. After a rejection nothing has happened, or everything if an answer can be lost: the core then asks again about settles.
   */
  step(turn: Turn<Tx>): Promise<TurnResult>;

  /**
   * Throws for an effect that this store cannot run, as far as that is visible before it runs. Called by `ctx.commit`, so that the error's
   * stack shows the caller. Default: accepts any.
   */
  checkEffect?(effect: Effect<never>): void;

  /**
   * Records the entries of this process, and returns all that were ever recorded, by name, each as it was
   * recorded last. Lanes by sequence follow the rules of their entry (`SequenceRules`) as the store read them last: in this call, or when it
   * met the first lane of an entry that it did not know.
   *
   * @throws SetupError `wrong_source` if an entry was recorded with another preset
   */
  admit(entries: readonly EntryPreset[]): Promise<readonly EntryPreset[]>;

  /**
   * Reads and changes notes in one transaction: small values that all processes of the inbox share, such as how much of a rate is used. They
   * are no data of events: an export and a copy leave them out.
   *
   * @param names - of the notes, each at most 100 characters
   * @param change - gets those that exist, by name, and the store's time; returns those to write. Called more than once if the transaction
   *   is repeated
   */
  changeNotes(names: readonly string[], change: ChangeNotes): Promise<void>;

  /** Renews leases for `leaseMs` from now. Resolves with true for each lease that is still held. */
  extend(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]>;

  /** Milliseconds until a lane is due: 0 for now, null if none waits. Blocked lanes are never due. */
  nextDue(): Promise<number | null>;

  /** Calls `listener` when another process may have made a lane due. Returns a function that stops it. */
  onWake?(listener: () => void): () => void;

  /** Events by filter, newest first by default. At most `limit`. */
  find(query: EventQuery): Promise<Page<EventSummary>>;
  /** Lanes by filter, newest first. At most `limit`. Each lane is read at one moment, but a page need not be. */
  findLanes(query: LaneQuery): Promise<Page<LaneSummary>>;
  findQuarantined(query: QuarantineQuery): Promise<Page<QuarantineSummary>>;
  /** The lane with this name or number, or that of one of its events; with its events. Null if there is none. */
  lane(ref: LaneRef): Promise<LaneRecord | null>;
  /** The bodies of events, in the order of `events`, and none after the one that reaches `maxBytes`. Leaves out those that are pruned or erased. */
  bodies(events: readonly EventId[], maxBytes: number): Promise<ReadonlyMap<EventId, EventBody>>;
  /** One row of the quarantine with its body, or null. */
  quarantined(id: number): Promise<QuarantineRecord | null>;
  /** Does an operator's act, and writes an audit row in the same transaction, or in the last one if erasing takes several. */
  act(act: Act, by: string): Promise<ActResult>;
  /** The newest `limit` audit rows, newest first. */
  audit(limit: number): Promise<readonly AuditRecord[]>;
  /** Reads small indexes and counters. Never counts over all rows. */
  stats(): Promise<InboxStats>;
  /** Removes rows past their retention, at most `policy.batch` of each kind. */
  prune(policy: PrunePolicy): Promise<PruneResult>;
  /**
   * Up to `limit` lanes with ids above `after` (0 for the first page), in ascending order of ids, with everything kept about them. None
   * after the one whose bodies reach `MOST_BYTES`, so there may be more although there are fewer than `limit`. Changes nothing. A copy calls it while no receiver works on the inbox; an export of a person's data at any time. Pages need not be consistent
   * with each other.
   */
  export(after: LaneId, limit: number): Promise<readonly TransferredLane[]>;
  /**
   * Imports lanes, quarantined bodies and audit rows into an inbox that holds nothing else, in one transaction. They keep their ids; new
   * ids are higher. Existing rows stay as they are. The first call records the source, and the call with totals records the end. After that
   * nothing is imported. Before it, `open` without `copying` is refused (`copy_unfinished`).
   */
  import(page: ImportPage): Promise<ImportAnswer>;
  /**
   * Marks this inbox as moved to the location `to`: from then on it opens only with `movedTo`, and otherwise is refused (`inbox_moved`). Null
   * removes the mark. Resolves with the ids of other processes that have it open: if there are any, it is not marked. One that opens
   * meanwhile is either among them or refused.
   */
  markMoved(to: string | null): Promise<readonly number[]>;
  /** Records that this process is alive, with its counters. */
  heartbeat(beat: Heartbeat): Promise<void>;
  /** Waits for work in progress, then releases its resources. Closing twice is harmless. */
  close(): Promise<void>;
}

/**
 * Returns the notes to write. Must be quick, and change nothing else.
 *
 * @param notes - those that exist, by name
 * @param now - epoch milliseconds, by the clock that all processes of the inbox share
 */
export type ChangeNotes = (notes: ReadonlyMap<string, string>, now: number) => ReadonlyMap<string, Note>;

/** What names a lane: its number, its key if it has a name, or one of its events. */
export type LaneRef = LaneId | LaneKey | EventRef;

/** A small value that all processes of an inbox share: see `InboxStore.changeNotes`. */
export interface Note {
  /** Not empty. */
  readonly value: string;
  /** Pruning removes it so long after it was written, milliseconds. */
  readonly keepMs: number;
}

/** An entry of a receiver, and the kind of source behind it. */
export interface EntryPreset {
  /** `[a-z][a-z0-9-]{0,31}` */
  readonly name: string;
  readonly preset: string;
  /** Paths of the fields of its events that viewers may see, which may be in a process without the source. */
  readonly shows: readonly string[];
  /** Null: its lanes are not by sequence. */
  readonly sequence: SequenceRules | null;
}

/** How lanes by sequence of an entry treat missing numbers. Those of an entry that nobody has recorded begin with 1, and wait for 85 minutes. */
export interface SequenceRules {
  /** That of a lane's first event. With `"any"` the first to arrive counts as the first. */
  readonly firstSequence: number | "any";
  /** A missing event does not come any more so long after the event that waits for it occurred, milliseconds: its provider has given up. */
  readonly lastRetryMs: number;
}

/** What a store promises. The contract suite tests it accordingly. */
export interface StoreCapabilities {
  /** Whatever `step` resolved for survives a power cut. */
  readonly durable: boolean;
  /** Several processes can work on it at once. */
  readonly shared: boolean;
  /** Effects commit in the transaction that completes their event. */
  readonly transactional: boolean;
  /**
   * `step` may be called with accepts alone while a call with effects is pending, and resolves without waiting for it. Default false:
   * deliveries then wait for the effects.
   */
  readonly parallelTurns?: boolean;
}

export interface OpenContext {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The receiver's rules, or `"recorded"`: then a missing inbox is not made (`no_inbox`), and nothing is recorded. */
  readonly rules: AskedRules;
  /** `"check"` refuses an inbox that needs a migration instead of migrating it. */
  readonly migrate: "auto" | "check";
  /** Opened by a copy, new or continued. Any other open of an inbox with an unfinished import is refused. */
  readonly copying?: boolean;
  /** Opens an inbox that was moved to this location too, as its source, so that the copy can continue. True: wherever it was moved to. */
  readonly movedTo?: string | true;
  readonly instance: InstanceIdentity;
}

/** A process that works on the inbox. */
export interface InstanceIdentity {
  /** Unique per open. */
  readonly id: string;
  /** Machine, boot and process namespace, in which `pid` is valid. */
  readonly host: string;
  readonly pid: number;
  /** Distinguishes a process from a later one with the same pid. */
  readonly pidStartedAt: string;
}

/** A batch: what the core asks for in one write transaction. */
export interface Turn<Tx> {
  readonly settles: readonly Settle<Tx>[];
  readonly accepts: readonly NewEvent[];
  readonly quarantines: readonly NewQuarantine[];
  readonly quarantineQuota: QuarantineQuota;
  readonly claim: ClaimRequest;
}

/** Limits for the held bodies of each signer. Beyond them, older ones give way, or a quarantine is refused: see `givingWay`. */
export interface QuarantineQuota {
  readonly maxRows: number;
  readonly maxBytes: number;
  /** Reasons of the bodies that may give way. Default: none. */
  readonly givingWay?: readonly string[];
}

/** Which lanes to claim. Due lanes take the slots oldest first. An accepted event is leased at once if its lane is due. */
export interface ClaimRequest {
  /** Free slots. 0 claims nothing. */
  readonly limit: number;
  readonly leaseMs: number;
  /** A claim beyond this number of attempts retires the event as a dead letter instead (`attempts_exhausted`). */
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  /**
   * `ordinary` skips expired leases and reports them as `recoveryDue`. `recover` claims one expired lease and nothing else, so that an
   * event that kills its process takes no others with it.
   */
  readonly mode: "ordinary" | "recover";
  /**
   * Up to so many of the lanes are fresh ones, if there are any: their heads were accepted in the last minute, or waited for a missing event
   * until then, and neither failed nor are replays. The others are due lanes, oldest first. Default 0.
   */
  readonly fresh?: number;
  /** Nothing more is claimed once the claimed bodies have so many bytes. The one that reaches it is the last, so that one of any size is claimed. Default: no bound. */
  readonly maxBytes?: number;
  /** Claim only this lane. Accepted events are then not leased. */
  readonly lane?: LaneId;
  /** Whether this process takes an event. One that it does not take ends in the claim, without a lease. */
  readonly takes: Takes;
}

/**
 * Whether a handler of this process gets the event, or the process lacks its entry, so that another one must decide.
 *
 * @param late - its place is below the cursor of its lane
 */
export type Takes = (lane: LaneKey, eventType: string, late: boolean) => boolean;

/** Identifies a lease. */
export interface LeaseRef {
  readonly lane: LaneId;
  /** Random, and new with each lease: a number that grows would come again after a restore or a failover of the inbox. */
  readonly token: number;
  readonly event: EventId;
}

/** A worker's time-limited right to a lane's head. */
export interface Lease extends LeaseRef {
  readonly key: LaneKey;
  /** As `EventRecord`. */
  readonly ownId: string | null;
  readonly sequence: number;
  readonly eventType: string;
  /** This attempt included: 1 on the first. */
  readonly attempt: number;
  readonly acceptedAt: number;
  readonly signedAt: number;
  /** Its sequence lies below the lane's cursor: an event with a higher one was leased before. */
  readonly late: boolean;
  /** An operator's replay. */
  readonly forced: boolean;
  /** Late, or a replay whose sequence lies below the lane's cursor. */
  readonly outOfOrder: boolean;
  /** The lane's cursor before this lease. Null if it had none. */
  readonly cursorBefore: number | null;
  /** The sequences before it whose wait ended, both included. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  readonly trace: string | null;
  readonly raw: Uint8Array;
  /** The headers that its source keeps next to the body, as JSON. Null without any. */
  readonly head: string | null;
  /** Its index in `turn.accepts` if it was leased when it was accepted, so that the core need not parse it again. Null otherwise. */
  readonly acceptIndex: number | null;
}

/** A handler's write as a function, run in the transaction that completes its event. It may return a promise if the store allows it. */
export type EffectFunction<Tx> = (tx: Tx) => unknown;

/** A handler's write as one SQL statement, in the placeholders of the database: `$1` on Postgres, `?` on SQLite. */
export interface EffectStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** An effect as a store gets it. */
export type Effect<Tx> = EffectFunction<Tx> | EffectStatement;

/**
 * One SQL statement for `ctx.commit`: `{ text, values }`, or what a query builder makes of a query. Drizzle's `toSQL()`, Kysely's
 * `compile()` and Knex's `toSQL().toNative()` have these forms. Default: no values.
 */
export type DeclaredEffect =
  | { readonly text: string; readonly values?: readonly unknown[] }
  | { readonly sql: string; readonly params: readonly unknown[] }
  | { readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly sql: string; readonly bindings: readonly unknown[] };

/** Why an attempt failed. */
export interface Failure {
  readonly code: string;
  /** At most 500 characters, masked. */
  readonly message: string;
  readonly durationMs: number;
}

/** How a claim ends. The store does it only if token, holder, event and state still match. */
export type Settle<Tx> =
  | {
      readonly kind: "complete";
      readonly lease: LeaseRef & Pick<Lease, "key">;
      readonly outcome: Outcome;
      readonly effects: readonly Effect<Tx>[];
    }
  | { readonly kind: "retry"; readonly lease: LeaseRef; readonly delayMs: number; readonly failure: Failure }
  | { readonly kind: "dead"; readonly lease: LeaseRef; readonly failure: Failure; readonly onDead: OnDead }
  /**
   * The event returns to the queue with its attempt, ready after `delayMs`. `ran`: a handler ran, as in a failed probe. If none ever did, by
   * position the cursor goes back too: what did not begin makes no other event late.
   */
  | {
      readonly kind: "release";
      readonly lease: LeaseRef & Pick<Lease, "cursorBefore">;
      readonly delayMs: number;
      readonly ran: boolean;
    };

/** What became of a completion. */
export type SettleResult =
  /** `gapBegins`: the lane waits for a missing sequence from now on. Reported once for each gap, for the log. */
  | { readonly status: "settled"; readonly gapBegins?: true }
  /** The lease had passed to another worker, or an operator had acted: the effects did not happen. */
  | { readonly status: "lost" }
  /** An effect threw: nothing of this settle happened, and the lease is still held. */
  | { readonly status: "effect_failed"; readonly error: unknown }
  /** Only with effects. They still run, cannot begin yet, or met an outage: the core calls again with the same settle. */
  | { readonly status: "unfinished" };

/** What became of one accepted event. Every case names the stored event. */
export type Acceptance =
  | {
      /** `filtered`: it is done already, without a body, and is never passed to a handler. */
      readonly outcome: "accepted" | "late" | "filtered";
      readonly event: EventId;
      readonly lane: LaneId;
      /** An event of the lane waits for a missing sequence, and is the first of its lane to wait for this gap. */
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
      /** This delivery's parsed content differs from the accepted event: it was not handled. */
      readonly conflict: boolean;
      /** The reference of the delivery that was accepted first, if it is alone in its lane. */
      readonly reference: string | null;
    }
  /** Only this row could not be stored; the others were. */
  | { readonly outcome: "failed"; readonly error: unknown };

/** What became of a quarantined body. */
export type QuarantineAnswer =
  /** It is stored. */
  | "held"
  /** It was there already. */
  | "duplicate"
  /** It is stored, and so many older ones gave way: they are `discarded`, without their bodies. */
  | { readonly outcome: "made_room"; readonly dropped: number }
  /** The quota of its signer is used up. */
  | "full"
  /** The store could not write it now, as with a full disk. The quota may have room. */
  | { readonly outcome: "failed"; readonly error: unknown };

export interface TurnResult {
  /** In the order of `turn.settles`. */
  readonly settled: readonly SettleResult[];
  /** In the order of `turn.accepts`. */
  readonly accepted: readonly Acceptance[];
  /** In the order of `turn.quarantines`. */
  readonly quarantined: readonly QuarantineAnswer[];
  readonly leases: readonly Lease[];
  /** Events that had used up their attempts without an end, and are dead letters now. After some the core asks again. */
  readonly retired: readonly EventRecord[];
  /** Events that ended because `claim.takes` refused them. With those that retired 256 at most; after some the core asks again. */
  readonly untaken: readonly Untaken[];
  /**
   * An expired lease is due: claim it alone, with `mode: "recover"`, before anything new. A batch that claims nothing (`limit` 0) need
   * not check.
   */
  readonly recoveryDue: boolean;
}

/** An event that ended in a claim, because no handler takes it. */
export interface Untaken
  extends Pick<Lease, "event" | "lane" | "key" | "ownId" | "sequence" | "eventType" | "late" | "forced"> {
  /** `late`: it came late by sequence, and is only recorded. Otherwise it is `done`, as `unhandled`. */
  readonly state: Extract<EventState, "done" | "late">;
  readonly acceptedAt: number;
  /** As `SettleResult`. */
  readonly gapBegins: boolean;
}

/** A receiver's rules for its inbox, recorded at each of its opens. */
export interface InboxRules {
  /** The receiver that this inbox belongs to, recorded at the first open. Another name is refused (`wrong_receiver_name`). */
  readonly name: string;
  /**
   * Past and future tolerance of timestamps together, in milliseconds: how long a delivery can be replayed. Every pruning respects it: no
   * identity is removed before this plus a day.
   */
  readonly toleranceMs: number;
}

/** `"recorded"`: opened without a receiver, as by an operator, a page or a copy. */
export type AskedRules = InboxRules | "recorded";

/** All filters must match. */
export interface EventQuery {
  readonly states?: readonly EventState[];
  readonly outcome?: Outcome;
  readonly late?: boolean;
  readonly conflict?: boolean;
  readonly eventType?: string;
  /** The name of an entry. */
  readonly source?: string;
  /** Null: events without one. */
  readonly tenant?: string | null;
  /** The name of a lane, such as `sub_1`, or the id of an outbound message. */
  readonly lane?: string;
  /** The id that a source gives the event, such as `evt_1`, or the id of an inbound message. */
  readonly id?: string;
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
  /** Null: lanes of one event. */
  readonly order?: LaneOrder | null;
  /** No event of these types was accepted. Lanes whose event at the cursor was pruned are left out: they cannot be decided. */
  readonly without?: readonly string[];
  /** Epoch milliseconds: no event was accepted after it. */
  readonly quietSince?: number;
  /** The name of an entry. */
  readonly source?: string;
  /** Null: lanes without one. */
  readonly tenant?: string | null;
  /** The other party's number, in full. Null for lanes without one. */
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

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it as `after` for the next page. Null on the last page. */
  readonly next: number | null;
}

/** A precondition of an act: if the event has changed since it was looked at, the result is `wrong_state`. */
export interface AsFound {
  readonly from?: EventState;
  /** Null while it was pending. Another time means that it was handled since. */
  readonly finishedAt?: number | null;
}

/** What an operator can ask for. */
export type Act =
  /** Makes it pending again, for the ordinary handlers, whatever its sequence. Attempts start anew; the cursor stays. */
  | ({ readonly kind: "replay"; readonly event: EventId } & AsFound)
  /** Sets it aside. The cursor advances if its sequence was the expected one. */
  | ({ readonly kind: "discard"; readonly event: EventId } & AsFound)
  /** A blocked lane continues. */
  | { readonly kind: "unblock"; readonly lane: LaneId }
  /** The lane's head stops waiting for the missing sequences. */
  | { readonly kind: "release_gap"; readonly lane: LaneId }
  /**
   * Removes bodies, numbers, references and error texts. Identities stay. `id` is that of a message, or of any object. In events whose lane
   * does not show the number or the id, and in the quarantine, it removes the bodies that contain it. In JSON it must be one whole string, elsewhere a word by itself
   * (`createMentionTest` in src/inbox/subject.ts). The text has three characters or more. With `in_progress`
   * nothing was erased, unless a store that erases in several transactions met the lease only later. Then its audit row says how much was
   * erased, and the act has to be repeated for the rest.
   */
  | { readonly kind: "erase"; readonly subject: { readonly peer: string } | { readonly id: string } }
  /** Accepts a quarantined body as `event`, and records the event in its row. */
  | { readonly kind: "replay_quarantined"; readonly quarantine: number; readonly event: NewEvent }
  | { readonly kind: "discard_quarantined"; readonly quarantine: number }
  /** The numbers and texts of a message, or of a quarantined body, are shown to a person. Only writes the audit row. */
  | { readonly kind: "reveal"; readonly lane: LaneId }
  | { readonly kind: "reveal_quarantined"; readonly quarantine: number };

/** What became of an act: how many rows it changed, or why it was refused. */
export type ActResult =
  | { readonly ok: true; readonly event?: EventId /** Rows touched. */; readonly count: number }
  | {
      readonly ok: false;
      /** `in_progress`: a worker holds it with a lease that has not expired. `wrong_state`: the act does not apply to its state. */
      readonly reason: "not_found" | "in_progress" | "body_pruned" | "wrong_state";
    };

/** Ages in milliseconds. The cut-off is `min(now, newest verified timestamp) - age`, so a clock that jumps ahead removes nothing. */
export interface PrunePolicy {
  /** Bodies of events that were handled. */
  readonly handledBodiesMs: number;
  /** Bodies of late and unhandled events. */
  readonly otherBodiesMs: number;
  /** Identities of done, late and discarded events, with empty lanes and their gaps. */
  readonly identitiesMs: number;
  /** Dead letters and quarantined bodies without an operator's act. */
  readonly deadMs: number;
  /** At most this many rows of each kind. */
  readonly batch: number;
}

export interface PruneResult {
  readonly bodies: number;
  readonly events: number;
  readonly lanes: number;
  readonly quarantined: number;
  /** More rows are left. */
  readonly more: boolean;
}

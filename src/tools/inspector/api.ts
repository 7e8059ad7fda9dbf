/**
 * The inspector's JSON, for its page and for other programs. docs/inspector.md documents each route. Times are epoch milliseconds.
 * Numbers and texts are masked, except in the answers to `…/reveal`.
 */
import type {
  AuditRecord,
  EventState,
  InboxStats,
  InstanceRecord,
  LaneOrder,
  LaneStatus,
  Outcome,
} from "../../inbox/record.ts";
import type { ErrorGroup } from "../../receiver/bulk.ts";
import type { EventShape, ShownQuarantine as KeptShape, ShownBody, SummaryShape } from "../../receiver/shown.ts";

export type { AuditRecord, ErrorGroup, EventShape, ShownBody, SummaryShape };

/** What a viewer may do; each right includes the ones before it. `reveal` allows to see numbers and texts. */
export type Access = "read" | "act" | "reveal";

/** `GET api/overview`, which an open page asks for every 2 s. */
export interface Overview {
  /**
   * Another number when a gauge, a counter or an act changed the inbox, in any process: load what is on the screen again. It does not
   * notice the start of an attempt, nor the pruning of events that are neither dead nor quarantined.
   */
  readonly changed: number;
  readonly sample: Sample;
  readonly now: number;
  /** Names the store: `sqlite:/data/inbox.db`. Null if the store does not report it. */
  readonly location: string | null;
  readonly access: Access;
  readonly by: string;
  readonly gauges: InboxStats["gauges"];
  /** Since the inbox was made. */
  readonly counters: InboxStats["counters"];
  readonly oldestPendingAt: number | null;
  readonly newestSignedAt: number | null;
  readonly serviceResigns: boolean;
  readonly instances: readonly InstanceRecord[];
  /** Sums over the known instances, each since its start: deliveries by secret slot (`current`), and refused deliveries by reason. */
  readonly slots: Readonly<Record<string, number>>;
  readonly rejections: Readonly<Record<string, number>>;
}

/** One look at the inbox, for the charts. Gauges are of that moment; counters are cumulative. */
export interface Sample {
  readonly at: number;
  readonly pending: number;
  /** Milliseconds; 0 when nothing waits. */
  readonly oldestWaitingMs: number;
  readonly dead: number;
  readonly quarantined: number;
  readonly accepted: number;
  readonly handled: number;
  readonly late: number;
  readonly gapsSkipped: number;
  readonly rejected: number;
}

/** `GET api/history`: what this process answered to `GET api/overview` in the last 15 minutes, at most once a second; the oldest first. */
export interface History {
  readonly samples: readonly Sample[];
}

/** A page of a list. Pass `next` as `after` to get the following page; it is null on the last page. */
export interface ListPage<T> {
  readonly items: readonly T[];
  readonly next: number | null;
}

/** `POST api/events`: the body is an `EventQuery`, all fields optional. With `format: "csv"`, the answer is a text/csv of up to 10,000 events. */
export type EventPage = ListPage<EventShape>;
/** `POST api/lanes`: the body is a `LaneQuery`, all fields optional. */
export type LanePage = ListPage<SummaryShape>;
/** `GET api/quarantine?state=held&after=…&limit=…`. */
export type QuarantinePage = ListPage<QuarantineShape>;

/** `POST api/lookup` with `{ text }`: the lanes with this name, or with events of this id, external reference or whole phone number. */
export interface Lookup {
  readonly matches: readonly LookupMatch[];
  /** More lanes match than are listed. */
  readonly more: boolean;
}

/** A lane that a search found. */
export interface LookupMatch extends Pick<EventShape, "laneId" | "source" | "tenant" | "lane"> {
  readonly found: "lane" | "id" | "reference" | "number";
  readonly newest: Pick<EventShape, "id" | "ownId" | "eventType" | "sequence" | "acceptedAt" | "state">;
}

/** `GET api/lanes/7`. `POST api/lanes/7/reveal` answers the same with numbers and texts, and writes an audit row. */
export interface LaneDetail extends Pick<EventShape, "laneId" | "source" | "tenant" | "lane" | "order"> {
  readonly status: LaneStatus;
  readonly cursor: number | null;
  readonly readyAt: number | null;
  readonly peer: string | null;
  readonly externalReference: string | null;
  readonly events: readonly LaneEvent[];
  /** It has more events: `events` are those next to its cursor. */
  readonly more: boolean;
  readonly drawing: Drawing;
  readonly revealed: boolean;
}

/** An event of a lane, with its body. */
export interface LaneEvent extends EventShape {
  /** The delivery's `traceparent`. */
  readonly trace: string | null;
  /** SHA-256 of the exact body, hexadecimal. Null unless revealed: a reader who knows the rest of the body could guess a number with it. */
  readonly digest: string | null;
  /** Length of the body in bytes; 0 without one. */
  readonly bytes: number;
  /** Null after it was pruned, and if it was left out because the bodies of newer events have 16 MiB. */
  readonly body: ShownBody | null;
}

/** The story of a lane, for a timeline: what arrived when, and what was passed to a handler when. */
export interface Drawing {
  /** The first and the last moment in it. If something is still in progress, the last moment is `now`. */
  readonly from: number;
  readonly to: number;
  readonly now: number;
  /** How events of its lane are ordered. Null for an event by itself. */
  readonly order: LaneOrder | null;
  /** In the order of their arrival. */
  readonly events: readonly DrawnEvent[];
  /** Ascending. */
  readonly gaps: readonly DrawnGap[];
  /** The current state: the end that was handled, or what the lane waits for. */
  readonly end: DrawnEnd;
}

/** An event in the drawing. */
export interface DrawnEvent {
  readonly id: number;
  /** In a lane by position or by arrival: its place among the lane's events, from 1. 0 for an event by itself. */
  readonly sequence: number;
  readonly eventType: string;
  readonly state: EventState;
  readonly outcome: Outcome | null;
  readonly late: boolean;
  readonly replayed: boolean;
  readonly conflict: boolean;
  readonly duplicates: number;
  readonly acceptedAt: number;
  /** 1 for the first event to arrive. */
  readonly arrival: number;
  /** 1 for the first event that was passed to a handler; null for an event that never was. */
  readonly handling: number | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Why it was not passed to a handler at once; null if nothing was in its way. */
  readonly held: DrawnHold | null;
  /** The failed attempts, ascending. */
  readonly attempts: readonly DrawnAttempt[];
  /** All attempts, with the successful one. */
  readonly attemptCount: number;
}

/** Why an event waited, and how long. */
export interface DrawnHold {
  /**
   * - `gap`: the sequences `from` to `to` before it were missing.
   * - `held_back`: its source keeps it back, so that an earlier event can come first.
   * - `turn`: an earlier event was still being handled or retried.
   * - `blocked`: it waits behind a dead letter.
   */
  readonly reason: "gap" | "held_back" | "turn" | "blocked";
  readonly from: number | null;
  readonly to: number | null;
  readonly since: number;
  /** Null while it waits. */
  readonly until: number | null;
}

/** A failed attempt in the drawing. */
export interface DrawnAttempt {
  readonly attempt: number;
  /** When it ended. */
  readonly at: number;
  readonly durationMs: number;
  readonly errorCode: string;
  readonly error: string;
}

/** Missing sequences in the drawing. */
export interface DrawnGap {
  readonly from: number;
  readonly to: number;
  /** When the event after the gap had arrived. */
  readonly since: number;
  /** Null while the lane waits for it. */
  readonly until: number | null;
  /** The wait ended without the missing events. */
  readonly skipped: boolean;
  /** When a missing event arrived after the gap was skipped. */
  readonly filledAt: number | null;
}

/** Where the lane stands, at the right of the drawing. */
export interface DrawnEnd {
  /**
   * - `ended`: an event that ends a message was handled; `eventType` says which.
   * - `open`: all events are finished, and none of them ends the message.
   * - `waiting`: an event waits to be handled, or for a missing event.
   * - `blocked`: it waits behind a dead letter, until somebody acts.
   * - `failed`: the last event is a dead letter.
   */
  readonly state: "ended" | "open" | "waiting" | "blocked" | "failed";
  readonly eventType: string | null;
}

/** A row of the list. */
export interface QuarantineShape extends Omit<KeptShape, "digest"> {
  /** See `LaneEvent`. */
  readonly digest: string | null;
}

/** `GET api/quarantine/7`. `POST api/quarantine/7/reveal` answers the same with the exact body. */
export interface QuarantineDetail extends QuarantineShape {
  readonly trace: string | null;
  readonly body: ShownBody | null;
  readonly revealed: boolean;
}

/** `GET api/groups`: dead letters grouped by error, the largest group first; 100 groups at most. */
export type ErrorGroups = readonly ErrorGroup[];
/** `GET api/audit?limit=…`: the acts, the newest first. Default 100, at most 1,000. */
export type AuditList = readonly AuditRecord[];

/**
 * The answer to an act: `POST api/events/7/replay`, `…/discard`, `api/lanes/7/unblock`, `…/release`, `api/quarantine/7/replay`,
 * `…/discard`. A refused act has status 409 (404 for `not_found`).
 */
export type ActAnswer =
  | { readonly ok: true; readonly event: number | null }
  | { readonly ok: false; readonly reason: ActRefusal };

/** Why an act was refused. */
export type ActRefusal =
  | "not_found"
  | "in_progress"
  | "body_pruned"
  | "wrong_state"
  | "invalid_event"
  | "source_needed";

/**
 * `POST api/bulk`. The work stops when the client disconnects. The same request then does the rest; but a replay of `done` or `late`
 * events starts from the beginning.
 */
export type BulkRequest = BulkWork & {
  /** Counts what would be done, and changes nothing. */
  readonly dryRun: boolean;
  /** The most acts per second. */
  readonly ratePerSecond?: number;
};

/** An act on many rows. */
export type BulkWork =
  /**
   * `query` is an `EventQuery` without order, page and limit; dead letters unless it has `states`. Events with an id above `upTo` are left
   * out: they arrived after the dry run that reported it. An older event that became a dead letter after it is not left out.
   */
  | { readonly act: "replay"; readonly query: object; readonly upTo?: number; readonly skipSuperseded?: boolean }
  | { readonly act: "discard"; readonly query: object; readonly upTo?: number }
  /** All blocked lanes. */
  | { readonly act: "unblock" }
  /** All held quarantined bodies, or those with one `reason`. `upTo` as with events. */
  | { readonly act: "replay_quarantined" | "discard_quarantined"; readonly reason?: string; readonly upTo?: number };

/** The lines of the answer (`application/x-ndjson`): progress from time to time, then one end. After 15 s without a line comes an empty one. */
export type BulkLine =
  | { readonly kind: "progress"; readonly done: number; readonly total: number }
  | {
      readonly kind: "done";
      readonly counts: Readonly<Record<string, number>>;
      readonly dryRun: boolean;
      /** For a dry run: the id of the newest event, or of the newest quarantined body, when it began. */
      readonly upTo?: number;
    }
  | { readonly kind: "failed"; readonly code: string };

/** The body of every other answer with a status from 400 on. */
export interface ApiError {
  readonly error: ApiErrorCode;
  /** What happened or what to do, in a sentence. */
  readonly message: string;
}

/** The codes of a refused request. */
export type ApiErrorCode =
  | "host_not_allowed"
  | "origin_not_allowed"
  | "csrf_header_missing"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "method_not_allowed"
  | "invalid_request"
  | "too_large"
  | "busy"
  | "unavailable"
  | "internal_error";

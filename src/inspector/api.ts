/**
 * The inspector's JSON, as its page and other programs get it: docs/inspector.md documents each route. Times are epoch
 * milliseconds. Numbers and texts are masked, but in the answers to `…/reveal`.
 */
import type { AuditRecord, EventState, InboxStats, InstanceRecord, LaneStatus, Outcome } from "../inbox/record.ts";
import type { ErrorGroup } from "../receiver/bulk.ts";
import type { EventShape, QuarantineShape as KeptShape, ShownBody, SummaryShape } from "../receiver/shown.ts";

export type { AuditRecord, ErrorGroup, EventShape, ShownBody, SummaryShape };

/** What somebody may do: each includes the ones before it. `reveal` is to see numbers and texts. */
export type Access = "read" | "act" | "reveal";

/** `GET api/overview`, and each `overview` of the live stream. */
export interface Overview {
  readonly now: number;
  /** Names the place: `sqlite:/data/inbox.db`. Null where it is not told. */
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
  /** Sums over the instances that are known, each since its start: deliveries by secret slot (`current`), and refused ones by reason. */
  readonly slots: Readonly<Record<string, number>>;
  readonly rejections: Readonly<Record<string, number>>;
}

/** What the charts are made of: one look at the inbox. Gauges are of that moment, the others cumulative. */
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

/** `GET api/history`: the oldest first, since somebody began to look; at most 15 minutes. */
export interface History {
  readonly everyMs: number;
  readonly samples: readonly Sample[];
}

/** One event of `GET api/stream` (`text/event-stream`), about once a second. */
export type StreamEvent =
  /**
   * `changed` is another when a gauge, a counter or this inspector's own act changed the inbox: time to ask again for what is on the
   * screen. It begins anew with the process, and takes no notice of an attempt that begins, nor of what moves no counter elsewhere.
   */
  | { readonly kind: "overview"; readonly changed: number; readonly overview: Overview; readonly sample: Sample }
  /** The last one: the right to look has ended, or the application is closing. */
  | { readonly kind: "end"; readonly reason: "unauthorized" | "closing" };

/** A page of a list; pass `next` as `after` for the following one. Null on the last. */
export interface ListPage<T> {
  readonly items: readonly T[];
  readonly next: number | null;
}

/** `POST api/events`: the body is an `EventQuery` (all optional); the page. Also with `format: "csv"`: a text/csv of up to 10,000. */
export type EventPage = ListPage<EventShape>;
/** `POST api/messages`: the body is a `LaneQuery` (all optional). */
export type MessagePage = ListPage<SummaryShape>;
/** `GET api/quarantine?state=held&after=…&limit=…`. */
export type QuarantinePage = ListPage<QuarantineShape>;

/** `POST api/lookup` with `{ text }`: the messages that a message id, an external reference or a whole number leads to. */
export interface Lookup {
  readonly matches: readonly LookupMatch[];
  /** There were more than are listed. */
  readonly more: boolean;
}

export interface LookupMatch {
  readonly lane: number;
  /** As that of a `Message`. */
  readonly messageId: string;
  readonly apiClientId: string;
  readonly found: "message" | "reference" | "number";
  readonly newest: Pick<EventShape, "id" | "eventType" | "sequence" | "acceptedAt" | "state">;
}

/** `GET api/messages/7`; with numbers and texts (and an audit row) from `POST api/messages/7/reveal`. */
export interface Message {
  readonly lane: number;
  readonly tag: string;
  readonly apiClientId: string;
  /** Of an `unlaned` event it is the digest of the body: empty, and `identity` null, unless that is revealed. */
  readonly messageId: string;
  readonly status: LaneStatus;
  readonly cursor: number | null;
  readonly readyAt: number | null;
  readonly peer: string | null;
  readonly externalReference: string | null;
  readonly events: readonly MessageEvent[];
  readonly drawing: Drawing;
  readonly revealed: boolean;
}

export interface MessageEvent extends EventShape {
  /** The delivery's `traceparent`. */
  readonly trace: string | null;
  /** SHA-256 of the exact body, hexadecimal; null unless that is revealed: it would betray a number to whoever knows the rest. */
  readonly digest: string | null;
  /** Its length in bytes; 0 once it is gone. */
  readonly bytes: number;
  readonly body: ShownBody | null;
}

/** The story of a message, for a timeline: what arrived when, and what was handed out when. */
export interface Drawing {
  /** The first moment in it, and the last; what is still going on reaches to `now`. */
  readonly from: number;
  readonly to: number;
  readonly now: number;
  /** In the order of their arrival. */
  readonly events: readonly DrawnEvent[];
  /** Ascending. */
  readonly gaps: readonly DrawnGap[];
  /** How the story stands: the end that was handled, or what it waits for. */
  readonly end: DrawnEnd;
}

export interface DrawnEvent {
  readonly id: number;
  readonly sequence: number;
  readonly eventType: string;
  readonly state: EventState;
  readonly outcome: Outcome | null;
  readonly late: boolean;
  readonly replayed: boolean;
  readonly conflict: boolean;
  readonly duplicates: number;
  readonly acceptedAt: number;
  /** 1 for the one that arrived first. */
  readonly arrival: number;
  /** 1 for the one that was handed out first; null when it never was. */
  readonly handling: number | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Why it was not handed out as it came; null when nothing was in its way. */
  readonly held: DrawnHold | null;
  /** Failed ones, ascending. */
  readonly attempts: readonly DrawnAttempt[];
  /** All that were made, the successful one too. */
  readonly attemptCount: number;
}

export interface DrawnHold {
  /**
   * - `gap`: sequences before it were missing, `from` to `to`.
   * - `turn`: the event before it was still being handled or retried.
   * - `blocked`: behind a dead letter.
   */
  readonly reason: "gap" | "turn" | "blocked";
  readonly from: number | null;
  readonly to: number | null;
  readonly since: number;
  /** Null while it is held. */
  readonly until: number | null;
}

export interface DrawnAttempt {
  readonly attempt: number;
  /** When it ended. */
  readonly at: number;
  readonly durationMs: number;
  readonly errorCode: string;
  readonly error: string;
}

export interface DrawnGap {
  readonly from: number;
  readonly to: number;
  /** When the event behind it had arrived. */
  readonly since: number;
  /** Null while it is waited for. */
  readonly until: number | null;
  /** Given up: what waited went on without. */
  readonly skipped: boolean;
  /** When a missing event came after it had been given up. */
  readonly filledAt: number | null;
}

export interface DrawnEnd {
  /**
   * - `ended`: an event that ends a message was handled; `eventType` says which.
   * - `open`: all that came is settled, and none of it ends the message.
   * - `waiting`: something is to be handled, or waited for.
   * - `blocked`: behind a dead letter, until somebody acts.
   * - `failed`: the last of it is a dead letter.
   */
  readonly state: "ended" | "open" | "waiting" | "blocked" | "failed";
  readonly eventType: string | null;
}

/** A row of the list. */
export interface QuarantineShape extends Omit<KeptShape, "digest"> {
  /** As that of an event. */
  readonly digest: string | null;
}

/** `GET api/quarantine/7`; with the body from `POST api/quarantine/7/reveal`. */
export interface QuarantineDetail extends QuarantineShape {
  readonly trace: string | null;
  readonly body: ShownBody | null;
  readonly revealed: boolean;
}

/** `GET api/groups`: dead letters that failed alike, the largest group first; 100 at most. */
export type ErrorGroups = readonly ErrorGroup[];
/** `GET api/audit?limit=…`: what was done, the newest first; 100 unless asked for others, 1,000 at most. */
export type AuditList = readonly AuditRecord[];

/**
 * What an act answers: `POST api/events/7/replay`, `…/discard`, `api/messages/7/unblock`, `…/release`,
 * `api/quarantine/7/replay`, `…/discard`. A refused one has status 409 (404 for `not_found`).
 */
export type ActAnswer =
  | { readonly ok: true; readonly event: number | null }
  | { readonly ok: false; readonly reason: ActRefusal };

export type ActRefusal = "not_found" | "in_progress" | "body_pruned" | "wrong_state" | "invalid_event";

/** `POST api/bulk`. The work ends when whoever asked goes away; asked again, it does the rest, but a replay of `done` or `late` events begins anew. */
export type BulkRequest = BulkWork & {
  /** Changes nothing, and counts what would be done. */
  readonly dryRun: boolean;
  /** Acts a second at most. */
  readonly ratePerSecond?: number;
};

export type BulkWork =
  /**
   * `query` is an `EventQuery` without order, page and limit; dead letters unless it has `states`. Events with an id above `upTo`,
   * which a dry run tells, are left out: they came since. An older one that became a dead letter since is taken.
   */
  | { readonly act: "replay"; readonly query: object; readonly upTo?: number; readonly skipSuperseded?: boolean }
  | { readonly act: "discard"; readonly query: object; readonly upTo?: number }
  /** All messages that are blocked. */
  | { readonly act: "unblock" }
  /** All quarantined bodies that are held, `reason` names those of one reason; `upTo` as with events. */
  | { readonly act: "replay_quarantined" | "discard_quarantined"; readonly reason?: string; readonly upTo?: number };

/** Lines of the answer (`application/x-ndjson`): progress from time to time, then one end. An empty one where nothing was told for 15 s. */
export type BulkLine =
  | { readonly kind: "progress"; readonly done: number; readonly total: number }
  | {
      readonly kind: "done";
      readonly counts: Readonly<Record<string, number>>;
      readonly dryRun: boolean;
      /** The newest event when a dry run of events began, or the newest quarantined body. */
      readonly upTo?: number;
    }
  | { readonly kind: "failed"; readonly code: string };

/** Any other answer, with a status from 400 on. */
export interface ApiError {
  readonly error: ApiErrorCode;
  /** What to do about it, in a sentence. */
  readonly message: string;
}

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

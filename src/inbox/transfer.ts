/** What one store gives and another takes when an inbox moves: lanes with all that is kept of them. */
import { SetupError } from "../errors.ts";
import type { InboxStats } from "./operations.ts";
import type {
  AuditRecord,
  EventRecord,
  EventState,
  LaneId,
  LaneRecord,
  LaneStatus,
  QuarantineRecord,
} from "./record.ts";

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

/** An inbox that holds a part of another one would take repeats of what is missing for new events. */
export function copyUnfinished(location: string): SetupError {
  const message = `A copy into the inbox ${location} has not come to its end: run copyInbox() again, before a receiver uses it.`;
  return new SetupError("copy_unfinished", message);
}

/** What a leased lane does next in its new place: it is ready, and its turn comes by when its event was first handed out. */
export function withoutLease<T extends Pick<LaneRecord, "status" | "readyAt">>(
  lane: T,
  leased: Pick<EventRecord, "startedAt" | "acceptedAt"> | null | undefined,
): Pick<TransferredLane, "status" | "readyAt"> {
  const { status, readyAt } = lane;
  if (status !== "leased") return { status, readyAt };
  return { status: "ready", readyAt: leased?.startedAt ?? leased?.acceptedAt ?? readyAt };
}

/** How many of `events` are in `state`. */
export function countIn(events: readonly Pick<EventRecord, "state">[], state: EventState): number {
  return events.filter((event) => event.state === state).length;
}

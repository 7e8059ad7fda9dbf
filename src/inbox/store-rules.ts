/** Small rules that every store applies the same way: who may open an inbox, how far a claim goes, what an audit row says. */
import { SetupError } from "../errors.ts";
import type { EventRecord, EventState, LaneRecord, TransferredLane } from "./record.ts";
import type { Act, AsFound, AskedRules, InboxRules, Page } from "./store.ts";

// By whose rules an inbox is kept: its receiver says them at each open, everybody else takes them as they were recorded.

/**
 * The rules that apply from now on.
 *
 * @param recorded - null when no receiver has opened the inbox yet
 * @throws SetupError `wrong_receiver_name`, `no_inbox`
 */
export function rulesFor(asked: AskedRules, recorded: InboxRules | null, location: string): InboxRules {
  if (asked === "recorded") {
    if (recorded === null) throw noInbox(location);
    return recorded;
  }
  if (recorded === null || recorded.name === asked.name) return asked;
  throw new SetupError(
    "wrong_receiver_name",
    `${location} belongs to a receiver of another name: give each receiver an inbox of its own, or keep the name.`,
  );
}

/** Only a receiver makes an inbox: to anybody else, one that is not there is a wrong path. */
export function noInbox(location: string): SetupError {
  const message = `There is no inbox at ${location}: check the path or the address. A receiver makes one when it is started.`;
  return new SetupError("no_inbox", message);
}

// How far a claim goes within one turn.

/**
 * Events that a turn retires at most: while it does, nothing else is written, and an embedded store holds up the event loop.
 * Lowering the number of attempts can leave any number of them due at once. The core asks again.
 */
export const RETIRED_PER_TURN = 256;

interface Found {
  readonly leased: readonly unknown[];
  readonly retired: readonly unknown[];
}

/** How many more lanes a claim of up to `limit` may look at, after what it found; none left is 0 or less. */
export function roomLeft({ leased, retired }: Found, limit: number): number {
  return Math.min(limit - leased.length, RETIRED_PER_TURN - retired.length);
}

// A page of what a query found; that there is more shows in a row more than it holds.

/** @param rows - as many as the page holds and, if there are more, at least another one */
export function pageOf<Row, Item extends { readonly id: number }>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const items = rows.slice(0, limit).map(toItem);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last?.id ?? null };
}

// Tells whether an event is still as it was when somebody decided to act on it.

/** What is not said may be anything. */
export function isAsFound(event: Pick<EventRecord, "state" | "finishedAt">, { from, finishedAt }: AsFound): boolean {
  if (from !== undefined && event.state !== from) return false;
  return finishedAt === undefined || event.finishedAt === finishedAt;
}

// What an audit row says of an act beside its kind, the same in every store.

/** Ids and counts; never a number or a text. */
export function auditDetail(act: Act, count: number): string {
  if ("quarantine" in act) return `quarantine ${act.quarantine}`;
  if ("lane" in act) return `lane ${act.lane}`;
  return act.kind === "erase" ? `${count} rows` : `event ${act.event}`;
}

// What one store gives and another takes when an inbox moves: lanes with all that is kept of them.

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

/**
 * A text of our own, such as an error's or an operator's name, as every database gives it back: not each takes NUL, nor half of a
 * surrogate pair. It need not come back exactly, but two stores of one inbox must agree.
 */
export function plainText(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}

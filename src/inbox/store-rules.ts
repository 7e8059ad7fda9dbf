/** Small rules that every store applies the same way: who may open an inbox, how far a claim goes, what an audit row says. */
import { SetupError } from "../errors.ts";
import type { EventRecord, EventState, LaneRecord, TransferredLane } from "./record.ts";
import type { Act, AsFound, AskedRules, InboxRules, Page } from "./store.ts";

/**
 * The rules that apply from now on: a receiver states them at each open, other openers take the recorded ones.
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

/** Only a receiver makes an inbox. For other openers, a missing one means a wrong path. */
export function noInbox(location: string): SetupError {
  const message = `There is no inbox at ${location}: check the path or the address. A receiver makes one when it is started.`;
  return new SetupError("no_inbox", message);
}

/**
 * Events that one transaction retires at most: meanwhile nothing else is written, and an embedded store blocks the event loop. After
 * `maxAttempts` was lowered any number can be due at once. The core asks again.
 */
export const RETIRED_PER_TURN = 256;

interface Found {
  readonly leased: readonly unknown[];
  readonly retired: readonly unknown[];
}

/** How many more lanes a claim of up to `limit` may read, given what it has found. 0 or less: none. */
export function roomLeft({ leased, retired }: Found, limit: number): number {
  return Math.min(limit - leased.length, RETIRED_PER_TURN - retired.length);
}

/**
 * A page of a query's rows.
 *
 * @param rows - up to `limit` rows, and at least one more if there are more
 */
export function pageOf<Row, Item extends { readonly id: number }>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const items = rows.slice(0, limit).map(toItem);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last?.id ?? null };
}

/** Whether an event is still in the state that an act requires. A precondition that is not given always holds. */
export function meetsPrecondition(
  event: Pick<EventRecord, "state" | "finishedAt">,
  { from, finishedAt }: AsFound,
): boolean {
  if (from !== undefined && event.state !== from) return false;
  return finishedAt === undefined || event.finishedAt === finishedAt;
}

/** The detail of an act's audit row. Ids and counts only, never a phone number or a text. */
export function auditDetail(act: Act, count: number): string {
  if ("quarantine" in act) return `quarantine ${act.quarantine}`;
  if ("lane" in act) return `lane ${act.lane}`;
  return act.kind === "erase" ? `${count} rows` : `event ${act.event}`;
}

/** An inbox that was copied in part would accept repeats of the missing events as new ones. */
export function copyUnfinished(location: string): SetupError {
  const message = `A copy into the inbox ${location} is unfinished: run copyInbox() again, before a receiver uses it.`;
  return new SetupError("copy_unfinished", message);
}

/** The status of a lane in its new inbox. A leased lane becomes ready, as of the first attempt of its event. */
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
 * One of our own texts, such as an error message or an operator's name, as every database can keep it: some take no NUL, or no half of a
 * surrogate pair. The text may change, but two stores of one inbox must keep the same.
 */
export function plainText(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}

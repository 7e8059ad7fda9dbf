/**
 * Small rules that every store applies the same way: who may open an inbox, what is old enough to prune, how far a claim goes, what an audit row says, and which
 * functions `ctx.commit` refuses, because they would silently break "exactly once".
 */

import { types } from "node:util";
import { SetupError } from "../errors.ts";
import { sameContent } from "../internal/json.ts";
import { isPromise } from "../internal/options.ts";
import { processRuns } from "../internal/process.ts";
import type { EventRecord, EventState, LaneRecord, NewEvent, TransferredLane } from "./record.ts";
import type {
  Act,
  AsFound,
  AskedRules,
  DeclaredEffect,
  EffectFunction,
  EffectStatement,
  EntryPreset,
  InboxRules,
  InstanceIdentity,
  OpenContext,
  Page,
  QuarantineQuota,
} from "./store.ts";

/**
 * Whether a delivery with a known identity is another event than the stored one.
 *
 * @param body - undefined once pruned or erased: then nothing can be compared
 */
export function isConflict(
  incoming: Pick<NewEvent, "digest" | "raw" | "isSame">,
  digest: Uint8Array,
  body: { readonly raw: Uint8Array; readonly head: string | null } | undefined,
): boolean {
  if (body === undefined || Buffer.compare(digest, incoming.digest) === 0) return false;
  return !sameContent(body.raw, incoming.raw) && incoming.isSame?.(body.raw, body.head) !== true;
}

/**
 * Which of a signer's held bodies give way to another one, the oldest first. Null if its quota has no room for it even so.
 *
 * @param held - in ascending order of their ids
 */
export function bodiesGivingWay<Held extends { readonly bytes: number; readonly reason: string }>(
  held: readonly Held[],
  bytes: number,
  { maxRows, maxBytes, givingWay = [] }: QuarantineQuota,
): readonly Held[] | null {
  const chosen: Held[] = [];
  let [rows, sum] = [held.length, held.reduce((all, each) => all + each.bytes, bytes)];
  for (const each of held) {
    if (rows < maxRows && sum <= maxBytes) break;
    if (!givingWay.includes(each.reason)) continue;
    chosen.push(each);
    rows -= 1;
    sum -= each.bytes;
  }
  return rows < maxRows && sum <= maxBytes ? chosen : null;
}

/** The times from which pruning counts ages. */
export interface RetentionEnds {
  /** Not after the newest signed time: a clock that jumped ahead must not delete what has one. */
  readonly timed: number;
  /** The clock's: where no time is signed there is no other. */
  readonly untimed: number;
}

/** @param newestSigned - epoch milliseconds; null if no time was ever signed */
export function retentionEnds(now: number, newestSigned: number | null): RetentionEnds {
  return { timed: Math.min(now, newestSigned ?? now), untimed: now };
}

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
 * Events that one claim ends at most: meanwhile nothing else is written, and an embedded store blocks the event loop. Any number without a
 * handler, or with more attempts than a lowered `maxAttempts`, can be due at once. The core asks again.
 */
export const ENDED_PER_CLAIM = 256;

/**
 * Bodies that are held or read together: no other is added once they have so many bytes, so that with one of the largest bodies they take
 * no more than this and its size.
 */
export const MOST_BYTES = 16 * 1024 * 1024;

/** A lane's record has at most so many of its events from its cursor on, and so many of those before it. */
export const EVENTS_BESIDE_CURSOR = 500;

/** Rows up to the one with which their bodies reach `MOST_BYTES`. */
export function withinBytes<Row>(rows: readonly Row[], bytesOf: (row: Row) => number): readonly Row[] {
  let bytes = 0;
  for (const [index, row] of rows.entries()) {
    bytes += bytesOf(row);
    if (bytes >= MOST_BYTES) return rows.slice(0, index + 1);
  }
  return rows;
}

/** As many bytes as there are. */
export const NO_BOUND = Number.MAX_SAFE_INTEGER;

interface Found {
  readonly leased: readonly unknown[];
  readonly retired: readonly unknown[];
  readonly untaken: readonly unknown[];
  /** Of the bodies of what is leased and retired. */
  readonly bytes: number;
}

/** How many more lanes a claim of up to `limit` may read, given what it has found. 0 or less: none. */
export function roomLeft({ leased, retired, untaken, bytes }: Found, limit: number, maxBytes = NO_BOUND): number {
  if (bytes >= maxBytes) return 0;
  return Math.min(limit - leased.length, ENDED_PER_CLAIM - retired.length - untaken.length);
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

/** What a store keeps of an entry under its name. */
export function entryText({ preset, shows, sequence }: EntryPreset): string {
  return JSON.stringify({ preset, shows, sequence });
}

export function entryOf(name: string, text: string): EntryPreset {
  return { name, ...(JSON.parse(text) as Omit<EntryPreset, "name">) };
}

/**
 * @param known - what the inbox keeps of the entry
 * @throws SetupError `wrong_source`
 */
export function checkPreset(known: string | undefined, { name, preset }: EntryPreset): void {
  if (known === undefined) return;
  const { preset: recorded } = entryOf(name, known);
  if (recorded === preset) return;
  const message = `The inbox has events of the source "${name}" as ${recorded}, and this receiver has it as ${preset}: give the new source another name, and keep the old one until its events are handled.`;
  throw new SetupError("wrong_source", message, { fields: { source: name, recorded, preset } });
}

/** An inbox that was copied in part would accept repeats of the missing events as new ones. */
export function copyUnfinished(location: string): SetupError {
  const message = `A copy into the inbox ${location} is unfinished: run copyInbox() again, before a receiver uses it.`;
  return new SetupError("copy_unfinished", message);
}

/** An inbox that was moved is not opened by mistake: what it and the new one both handle is done twice. @throws SetupError `inbox_moved` */
export function checkMoved(
  movedTo: string | null | undefined,
  location: string,
  allowed: OpenContext["movedTo"],
): void {
  if (movedTo === null || movedTo === undefined || allowed === true || allowed === movedTo) return;
  const message = `The inbox ${location} was moved to ${movedTo}: use that one. To go back, copy that one into a new inbox with "oncehook inbox copy --move". Only if it is lost, or was never used, run "oncehook inbox reopen" on this one: what was accepted or handled there since is unknown here.`;
  throw new SetupError("inbox_moved", message, { fields: { location, movedTo } });
}

/** Other hosts' processes are believed to be gone when they have sent no heartbeat for this long. They come every 10 s. */
export const RECENTLY_MS = 60_000;

/** A process that has the inbox open, as its row shows it. */
interface OpenedBy {
  readonly host: string;
  readonly pid: number;
  readonly pidStartedAt: string;
  /** Epoch milliseconds: its last heartbeat, or when it opened. */
  readonly seenAt: number;
}

/** The ids of the processes that still have the inbox open. */
export function stillOpenIn(rows: readonly OpenedBy[], here: InstanceIdentity, now: number): readonly number[] {
  const alive = rows.filter(({ host, pid, pidStartedAt, seenAt }) =>
    host === here.host ? processRuns(pid, pidStartedAt) : seenAt > now - RECENTLY_MS,
  );
  return alive.map(({ pid }) => pid);
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

/** The statements of a declared effect, in order. @throws SetupError `invalid_argument` */
export function declaredEffects(given: DeclaredEffect | readonly DeclaredEffect[]): readonly EffectStatement[] {
  const effects: readonly unknown[] = Array.isArray(given) ? given : [given];
  return effects.map((effect) => {
    const { text, sql, values, params, parameters, bindings } = Object(effect) as Readonly<Record<string, unknown>>;
    const statement = { text: text ?? sql, values: values ?? params ?? parameters ?? bindings ?? [] };
    if (typeof statement.text === "string" && Array.isArray(statement.values)) return statement as EffectStatement;
    throw new SetupError(
      "invalid_argument",
      "An effect of ctx.commit must be a function of the connection, a statement { text, values }, or an array of statements. Of a query builder, pass what toSQL() (Drizzle), compile() (Kysely) or toSQL().toNative() (Knex) returns.",
    );
  });
}

/** `during`: the transaction waits for a promise (Postgres). `never`: it ends when the effect returns (SQLite). */
export type Waits = "during" | "never";

/**
 * Refuses a function that cannot work, before it runs.
 * @throws SetupError `async_effect` for a generator function, and for an async function where the transaction does not wait
 */
export function refuseUnwaited(effect: EffectFunction<never>, waits: Waits): void {
  // By tag: `instanceof` fails across realms (Jest), and `types.isAsyncFunction` fails on bound functions.
  const tag = Object.prototype.toString.call(effect);
  if (tag === "[object GeneratorFunction]" || tag === "[object AsyncGeneratorFunction]") throw generator();
  if (waits === "never" && tag === "[object AsyncFunction]") {
    throw refusal(`An effect of ctx.commit is an async function, so it was not run: ${NEVER_WAITS}`);
  }
}

/**
 * Refuses a returned value that nothing would run or wait for. The transaction has to be rolled back.
 * @param returned - the effect's result; if the transaction waits, the value that it resolved with
 * @throws SetupError `async_effect`
 */
export function refuseUnrun(returned: unknown, waits: Waits): void {
  if (typeof returned !== "object" && typeof returned !== "function") return;
  if (returned === null) return;
  if (types.isPromise(returned)) {
    ignoreRejection(returned);
    throw refusal(`An effect of ctx.commit returned a promise: ${NEVER_WAITS}`);
  }
  // Not called: a query builder runs its query when `then` is called.
  if (isPromise(returned))
    throw refusal(`An effect of ctx.commit returned a query that was not run. ${HOW_TO_RUN.never}`);
  if (types.isGeneratorObject(returned)) throw generator();
  if (!Array.isArray(returned) || !returned.some(isPromise)) return;
  for (const one of returned) if (types.isPromise(one)) ignoreRejection(one);
  throw refusal(
    `An effect of ctx.commit returned an array of queries, which are not run or awaited. ${HOW_TO_RUN[waits]}`,
  );
}

/**
 * Refuses a function without a parameter: it does not use the connection that it receives, so its writes are most likely not in the
 * transaction that completes its event. Code that keeps a connection from `onOpen` has to take this one all the same.
 * @param orElse - what else the store allows, as a sentence
 * @throws SetupError `invalid_argument`
 */
export function refuseWithoutConnection(effect: EffectFunction<never>, orElse = ""): void {
  if (effect.length > 0) return;
  const source = Function.prototype.toString.call(effect);
  // Rest parameters, defaults and `arguments` receive it too. The source of a bound function is not visible.
  if (/\.\.\.|\barguments\b|\[native code\]/.test(source) || /^[^)]*=(?!>)/.test(source)) return;
  const message = `An effect of ctx.commit has no parameter. Writes through another connection are not in the transaction that completes the event: take the connection that the effect receives, ctx.commit((tx) => …), and write with it.${orElse}`;
  throw new SetupError("invalid_argument", message);
}

const NEVER_WAITS =
  "SQLite's transaction ends when the effect returns. Await before ctx.commit, and write synchronously in it (with an ORM, end each query with .run(), .get() or .all()).";

const HOW_TO_RUN: Readonly<Record<Waits, string>> = {
  never:
    "Call its .run(), .get() or .all(), or have the ORM only make the SQL and run that with the connection, synchronously.",
  during: "Await each of them in the effect.",
};

function generator(): SetupError {
  return refusal("An effect of ctx.commit is a generator, which would not run: use a plain function.");
}

function refusal(message: string): SetupError {
  return new SetupError("async_effect", message);
}

/** It is not awaited, and must not become an unhandled rejection. */
function ignoreRejection(promise: Promise<unknown>): void {
  promise.then(undefined, () => {});
}

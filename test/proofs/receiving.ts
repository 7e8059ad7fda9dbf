/** A receiver on an inbox, as a JSON describes it: of a process of any programme, or of the programme's own. */
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import pg from "pg";
import {
  createReceiver,
  type HandlerContext,
  type InboxStore,
  PermanentError,
  type PrunePolicy,
  RetryAfter,
  type SourcesReceiver,
  type SourcesReceiverOptions,
} from "../../src/index.ts";
import { type Clock, systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { ServiceOptions } from "../../src/sources/index.ts";
import type { SqliteDatabase, SqliteStoreOptions } from "../../src/stores/sqlite.ts";
import { becomeLater } from "../support/later-version.ts";
import { type DriverName, driverOf } from "./drivers.ts";
import { ownOf } from "./history.ts";
import { commitEffect, effectStatement, makeEffectTable, type Place, storeAt, write } from "./inbox.ts";
import { isOfStripe, type SourceName, sourcesFor, wrongEvent } from "./sources.ts";

/**
 * Faults of an application or a front, built in on purpose: a run with them must end with breaches, or none would mean nothing.
 *
 * - `effect_outside_commit`: a handler writes by itself.
 * - `answer_before_commit`: the 2xx is sent before the inbox has the event.
 * - `check_then_insert`: a receiver of its own, which looks whether it knows an event and then inserts it.
 * - `keeps_events`: every event that is handled stays in memory, with its body.
 */
export type Flaw = "effect_outside_commit" | "answer_before_commit" | "check_then_insert" | "keeps_events";

type Terms = Partial<
  Pick<SourcesReceiverOptions<never, never>, "leaseMs" | "maxAttempts" | "concurrency" | "retention">
>;

export interface Description {
  readonly place: Place;
  /** What the process is called in the rows that its handlers write. */
  readonly name?: string;
  /** Default: the messaging service. */
  readonly sources?: readonly SourceName[];
  readonly receiver?: Terms;
  readonly store?: Pick<SqliteStoreOptions, "busyTimeoutMs" | "maxDatabaseBytes"> & {
    readonly maxConnections?: number;
  };
  readonly driver?: DriverName;
  /** Of the messaging service; 250 for messages whose id says `gap`. Default: as users have it. */
  readonly gapWaitMs?: number;
  readonly toleranceMs?: ServiceOptions["toleranceMs"];
  readonly rate?: { readonly perSecond: number; readonly perKey: boolean } | null;
  /** Of this version, or of a later one, which knows one schema more. */
  readonly version?: "this" | "later";
  /** `ahead`: by as much as it is told. Otherwise its time runs faster since then, epoch milliseconds. */
  readonly clock?: "ahead" | { readonly speed: number; readonly since: number };
  /** Where alerts of dead letters go. */
  readonly alerts?: { readonly to: string; readonly secret: string };
  readonly flaws?: readonly Flaw[];
  /** Whether its handlers are at work. Default true. */
  readonly works?: boolean;
  /** Prunes and says that it lives again and again, so that it comes between everything else. */
  readonly upkeep?: "beats" | "prunes";
  /** Default: one that is free. */
  readonly port?: number;
  /** A file for the starts and ends of its handlers. */
  readonly log?: string;
  /** The share of attempts that fail, 0 to 1; `seed` decides which. */
  readonly failures?: number;
  readonly seed?: number;
  readonly handlerMs?: number;
  /** Names of sums to which each effect adds one, in this order. */
  readonly adds?: readonly string[];
  /** Whether handlers write anything. Default true. */
  readonly writes?: boolean;
}

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const PRUNING: PrunePolicy = {
  ...{ handledBodiesMs: 0, otherBodiesMs: 0 },
  ...{ identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 50 },
};
const AGAIN_AFTER_MS = 10;
/** So long the handler is held up in which a process is about to be killed or paused. */
const HELD_MS = 300;

/** Message ids say what handlers do with their events, in words with dashes between them. */
const WORDS: Readonly<Record<string, (ctx: HandlerContext<never>) => unknown>> = {
  slow: () => sleep(200),
  slower: ({ attempt }) => attempt > 1 && sleep(300),
  stopped: ({ attempt }) => attempt === 1 && process.kill(process.pid, "SIGSTOP"),
  noticing: ({ attempt }) => attempt === 1 && sleep(100),
  poison: ({ meta }) => meta.sequence === 2 && process.kill(process.pid, "SIGKILL"),
  dead: ({ meta }) => meta.sequence === 2 && Promise.reject(new PermanentError("This one can not be mended.")),
  hopeless: () => Promise.reject(new PermanentError("Each one is a dead letter.")),
  failing: () => Promise.reject(new RetryAfter(AGAIN_AFTER_MS)),
  flaky: ({ attempt }) => attempt === 1 && Promise.reject(new RetryAfter(AGAIN_AFTER_MS)),
};

function wordsOf(event: object): string[] {
  return "messageId" in event && typeof event.messageId === "string" ? event.messageId.split("-") : [];
}

/** Of the keys of a rate: a message's id begins with it. */
export const keyOf = (messageId: string): string => messageId.split("-", 1)[0] ?? "";

export interface Receiving {
  readonly store: InboxStore<unknown>;
  readonly receiver: SourcesReceiver<unknown>;
  readonly sources: readonly SourceName[];
  /** Sets a clock that is `ahead`. */
  advance(aheadMs: number): void;
  /** Resolves when the next handler has begun, which is then held up for a moment. */
  hold(): Promise<void>;
}

/** What a programme gives to a receiver of its own. */
export interface Around {
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Called before an event is handled: what it throws is the handler's failure. */
  readonly before?: (ctx: HandlerContext<unknown>) => void;
  /** Around the store. */
  readonly wrap?: (store: InboxStore<unknown>) => InboxStore<unknown>;
}

export function receive(description: Description, around: Around = {}): Receiving {
  const {
    place,
    sources = ["messages"],
    gapWaitMs,
    toleranceMs,
    rate = null,
    alerts,
    adds = [],
    store: options = {},
  } = description;
  if (description.version === "later") becomeLater();
  let aheadMs = 0;
  const clock = around.clock ?? clockOf(description, () => aheadMs);
  const opened = storeAt(place, {
    ...{ ...options, ...driverOf(description.driver) },
    onOpen: (db) => makeTables(db, adds),
  }) as unknown as InboxStore<unknown>;
  const store = around.wrap?.(opened) ?? opened;
  const gapWait = (event: object) => (wordsOf(event).includes("gap") ? 250 : Number(gapWaitMs));
  const receiver = createReceiver({
    sources: sourcesFor(sources, {
      ...(gapWaitMs !== undefined && { gapWait }),
      ...(toleranceMs !== undefined && { toleranceMs }),
    }),
    ...{ store, logger: silentLogger },
    ...{ maxAttempts: 100, ...description.receiver },
    ...(clock !== undefined && { clock }),
    ...(around.random !== undefined && { random: around.random }),
    // The destination knows by it whose alert it is.
    ...(alerts !== undefined && {
      alerts: { ...alerts, to: `${alerts.to}?pid=${process.pid}`, when: { deadLetters: 1 } },
    }),
    ...(rate !== null && { rate: { perSecond: rate.perSecond, per: rate.perKey ? keyOfEvent : ("inbox" as const) } }),
  });
  const handlers = new Handlers(description, around);
  for (const name of sources) {
    const source = receiver.source(name);
    source.onAny((event, ctx) => handlers.handle(name, event, ctx, "on"));
    // Nothing that GitHub sends can be late.
    if (name === "messages" || isOfStripe(name))
      source.onLate((event, ctx) => handlers.handle(name, event, ctx, "late"));
  }
  const { log } = description;
  if (log !== undefined) receiver.onDeadLetter(({ eventId }) => appendFileSync(log, `D ${eventId}\n`));
  const advance = (ms: number) => {
    aheadMs = ms;
  };
  return { store, receiver, sources, advance, hold: () => handlers.hold() };
}

function keyOfEvent(event: object): string {
  return "messageId" in event ? keyOf(String(event.messageId)) : "";
}

/** With a clock that is not the system's, a server's own time is not used: so all processes have it, or none. */
function clockOf({ clock }: Description, aheadMs: () => number): Clock | undefined {
  if (clock === undefined) return undefined;
  if (clock === "ahead") return { ...systemClock, now: () => Date.now() + aheadMs() };
  const { speed, since } = clock;
  return {
    now: () => since + (systemClock.now() - since) * speed,
    monotonic: () => systemClock.monotonic() * speed,
    setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / speed),
  };
}

function makeTables(db: SqliteDatabase, adds: readonly string[]): void {
  makeEffectTable(db);
  if (adds.length > 0) db.exec("create table if not exists sum (name text primary key, total int)");
  for (const name of adds) db.prepare("insert or ignore into sum values (?, 0)").run(name);
}

/** What all handlers of a receiver do. */
class Handlers {
  readonly #description: Description;
  readonly #around: Around;
  /** In which a handler writes by itself. */
  readonly #outside: unknown;
  readonly #kept: unknown[] = [];
  #begun: (() => void) | null = null;

  constructor(description: Description, around: Around) {
    this.#description = description;
    this.#around = around;
    this.#outside = description.flaws?.includes("effect_outside_commit") ? lazyConnection(description.place) : null;
  }

  hold(): Promise<void> {
    return new Promise((resolve) => {
      this.#begun = resolve;
    });
  }

  /** Some end in the turn that passed them to their handler, others in a later one. */
  handle(source: SourceName, event: object, ctx: HandlerContext<unknown>, handler: "on" | "late"): unknown {
    const { log, handlerMs = 0, failures = 0, adds = [], flaws = [] } = this.#description;
    this.#around.before?.(ctx);
    if (flaws.includes("keeps_events")) this.#kept.push(event, Uint8Array.from(ctx.rawBody));
    const words = wordsOf(event).filter((word) => word in WORDS);
    const held = this.#begun;
    this.#begun = null;
    held?.();
    const effect = () => this.#write(ctx, { ...ownOf(event, handler), wrong: wrongEvent(source, event, ctx) });
    const turns = ctx.meta.eventId % 3;
    const isQuick = turns + handlerMs + failures + words.length === 0 && held === null && log === undefined;
    if (isQuick && adds.length === 0) return effect();
    return this.#noted(ctx, async () => {
      for (const word of words) await WORDS[word]?.(ctx as HandlerContext<never>);
      this.#stumble(ctx);
      await effect();
      for (let turn = 0; turn < turns; turn++) await nextTurn();
      if (held !== null || handlerMs > 0) await sleep(held === null ? handlerMs : HELD_MS);
      if (adds.length > 0) this.#add(ctx, adds);
    });
  }

  #write(ctx: HandlerContext<unknown>, known: Parameters<typeof effectStatement>[2]): unknown {
    const { place, name = "", writes = true } = this.#description;
    const own = { ...known, by: name };
    if (!writes) return;
    if (this.#outside === null) return commitEffect(ctx, place, own);
    return write(this.#outside, [effectStatement(place, ctx, own)]);
  }

  #add(ctx: HandlerContext<unknown>, adds: readonly string[]): void {
    const { place } = this.#description;
    const table = "path" in place ? "sum" : `${place.schema}_sum`;
    const where = "path" in place ? "?" : "$1";
    const statements = adds.map((name) => {
      return { text: `update ${table} set total = total + 1 where name = ${where}`, values: [name] };
    });
    // On a file a function stands behind what was declared.
    if ("url" in place && ctx.meta.eventId % 2 === 0) ctx.commit(statements);
    else ctx.commit((tx) => write(tx, statements));
  }

  /** Fails some attempts, by a number that hangs on the attempt alone: a seed repeats its failures whoever has the event. */
  #stumble({ identity, attempt }: HandlerContext<unknown>): void {
    const { failures = 0, seed = 1 } = this.#description;
    if (failures === 0) return;
    const dice = createHash("sha256").update(`${seed} ${identity} ${attempt}`).digest();
    if (dice.readUInt8(0) < 256 * failures) throw new RetryAfter(dice.readUInt8(1) / 4);
  }

  /** Runs a handler's work between a line for its start and one for its end. */
  async #noted(ctx: HandlerContext<unknown>, work: () => Promise<void>): Promise<void> {
    const { log } = this.#description;
    const { eventId, laneId, sequence } = ctx.meta;
    const facts = [laneId, sequence, eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
    // By the monotonic clock, which all processes of a machine share.
    const note = (mark: "S" | "E") =>
      log !== undefined && appendFileSync(log, `${[mark, process.hrtime.bigint(), ...facts].join(" ")}\n`);
    note("S");
    try {
      await work();
    } finally {
      note("E");
    }
  }
}

/** A connection of the application's own, opened when the inbox is there. */
function lazyConnection(place: Place): unknown {
  if ("url" in place) {
    const pool = new pg.Pool({ connectionString: place.url, max: 2 });
    pool.on("error", () => {});
    return pool;
  }
  let db: InstanceType<typeof Database> | undefined;
  const prepare = (text: string) => {
    db ??= new Database(place.path, { timeout: 5_000 });
    return db.prepare(text);
  };
  return { prepare };
}

/** Limits of handlers by key: a rate that all processes of the inbox share, and how many run at once in this one. */
import { hash } from "node:crypto";
import { types } from "node:util";
import type { Clock, Timer } from "../internal/clock.ts";
import { type Logger, SampledLog } from "../internal/logger.ts";
import type { HeldLease, HeldLeases } from "./claims.ts";
import { FRESH_MS, isFreshEvent, LONGEST_WAIT_MS } from "./gap.ts";
import type { Registered } from "./handlers.ts";
import { errorFields } from "./masking.ts";
import type { InboxStore, Lease } from "./store.ts";

/** Names what an event's handlers use, such as its customer. A method, so that a function of the application's own type of event fits. */
export type FlowKey = { of(event: object): string }["of"];

export interface FlowLimits {
  /** Null: handlers start as soon as one is free. */
  readonly rate: { readonly perSecond: number; readonly per: "inbox" | "source" | FlowKey } | null;
  /** Null: `concurrency` alone bounds them. */
  readonly concurrency: { readonly each: number; readonly per: "source" | FlowKey } | null;
}

export interface FlowOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: FlowLimits;
}

/** What a flow asks of its worker. */
export interface FlowWorker {
  /** A handler may start that could not before. */
  wake(): void;
  /** The lease returns to its queue for `delayMs`. */
  park(lease: Lease, delayMs: number): void;
}

/** Starts are reserved so far ahead: a process that dies loses no more of the rate. */
const AHEAD_MS = 250;
/** A start that was not used until then is lost: many at once would break the rate. */
const EXPIRES_MS = 500;
/** How much of a key this process holds ready to start. */
const HELD_FOR_MS = 500;
const MOST_HELD_OF_KEY = 64;
/** Of all keys, and of those that are about to be parked. */
const MOST_HELD = 256;
/** Parked lanes are due a little faster than the rate, so that none of it is lost. */
const SURPLUS = 1.25;
const SHORTEST_PARK_MS = 250;
/** So long after its last start, a key counts as idle: then nothing of it is parked any more. */
const IDLE_MS = 2_000;
/** One of so many starts is for an event that is not fresh, if there is one. */
const FRESH_OF = 4;
/** The timeline of a key is forgotten so long after its last start. */
const KEEP_MS = 3_600_000;
/** The clocks of machines that share an inbox without a clock of its own may differ so much. */
const SMALL_STEP_MS = 1_000;
/** After a failure the store is asked again this much later. */
const STORE_RETRY_MS = 1_000;
/** A guess by how long handlers take is wrong for no longer. */
const LONGEST_GUESS_MS = 30_000;
/** What handlers take, until some have ended. */
const FIRST_AVERAGE_MS = 100;

interface Keys {
  readonly rate: string;
  readonly concurrency: string;
}

/** The events of the same keys that are held. */
interface Group {
  readonly name: string;
  readonly keys: Keys;
  readonly fresh: HeldLease[];
  readonly old: HeldLease[];
  /** How many were started while fresh and old ones were held. */
  turns: number;
  /** When one of them was started last, or the first one came, monotonic. */
  startedAt: number;
  /** Where a concurrency alone limits it: when the last one that was parked is due, monotonic. */
  parkedUntil: number;
}

/** The starts of a key that this process has reserved. */
interface Pace {
  /** The name of its timeline. A key may be personal data, so it is hashed. */
  readonly note: string;
  /** Monotonic, ascending. */
  readonly starts: number[];
  /** When the next starts can be reserved, monotonic. */
  askAt: number;
  /** They return to their queue. */
  readonly parking: HeldLease[];
}

/** A request for starts, and its answer. */
interface Reserving {
  readonly pace: Pace;
  readonly count: number;
  readonly parking: readonly HeldLease[];
  readonly areFresh: readonly boolean[];
  starts: number[];
  askAt: number;
  parkMs: number[];
}

/**
 * Holds leases until their handlers may start. Events of a key beyond those that start soon are parked: they return to their queue until it
 * is likely their time, so that they take no place from other keys. One that comes back too early is parked again.
 */
export class Flow<Tx> implements HeldLeases {
  readonly #store: Pick<InboxStore, "changeNotes">;
  readonly #registered: Registered<Tx>;
  readonly #options: FlowOptions;
  readonly #worker: FlowWorker;
  readonly #log: SampledLog;
  /** In the order in which they take turns. */
  readonly #groups = new Map<string, Group>();
  readonly #paces = new Map<string, Pace>();
  /** How many run, by the key of the concurrency. */
  readonly #running = new Map<string, number>();
  readonly #started = new Map<HeldLease, Group>();
  #isReserving = false;
  #timer: Timer | null = null;
  #averageMs = FIRST_AVERAGE_MS;

  constructor(
    store: Pick<InboxStore, "changeNotes">,
    registered: Registered<Tx>,
    options: FlowOptions,
    worker: FlowWorker,
  ) {
    this.#store = store;
    this.#registered = registered;
    this.#options = options;
    this.#worker = worker;
    this.#log = new SampledLog(options.logger, options.clock);
  }

  /** The leases that have not started. */
  get held(): readonly HeldLease[] {
    const parking = [...this.#paces.values()].flatMap((pace) => pace.parking);
    return [...[...this.#groups.values()].flatMap(({ fresh, old }) => [...fresh, ...old]), ...parking];
  }

  /** How many more lanes may be claimed. With one key for all, no more than can be held: then none is parked. */
  get room(): number {
    return Math.max(0, 2 * (this.#isOneKey ? this.#mostOf() : MOST_HELD) - this.held.length);
  }

  get #isOneKey(): boolean {
    const { rate, concurrency } = this.#options.limits;
    return rate?.per === "inbox" && concurrency === null;
  }

  /** How many could start now if a handler were free: they take slots. */
  get ready(): number {
    const now = this.#options.clock.monotonic();
    let count = 0;
    for (const group of this.#groups.values()) count += Math.min(sizeOf(group), this.#startsOf(group, now));
    return count;
  }

  /** Holds the lease, or parks it. */
  add(given: HeldLease): void {
    const { held, keys } = this.#keysOf(given);
    const group = this.#group(keys);
    const queue = this.#isFresh(held.lease) ? group.fresh : group.old;
    const most = this.#mostOf();
    const isFull = (this.#isOneKey ? sizeOf(group) >= 2 * most : queue.length >= most) || this.held.length >= MOST_HELD;
    if (!isFull) queue.push(held);
    else if (this.#options.limits.rate === null) this.#parkByConcurrency(held, group);
    else this.#pace(keys.rate).parking.push(held);
    queueMicrotask(() => this.#reserve());
  }

  /** The next lease whose handlers may start now: keys take turns. Null if there is none. */
  next(): HeldLease | null {
    const now = this.#options.clock.monotonic();
    for (const group of this.#groups.values()) {
      const held = this.#mayStart(group, now) ? takeOf(group) : undefined;
      if (held === undefined) continue;
      this.#start(group, held);
      return held;
    }
    // Starts may have expired while all handlers were busy.
    this.#reserve();
    this.#plan(now);
    return null;
  }

  /** The handlers of a lease have ended. */
  ended(held: HeldLease, durationMs: number): void {
    const group = this.#started.get(held);
    if (group === undefined) return;
    this.#started.delete(held);
    this.#averageMs += (durationMs - this.#averageMs) / 10;
    const key = group.keys.concurrency;
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left > 0) this.#running.set(key, left);
    else this.#running.delete(key);
    this.#forgetIfEmpty(group);
  }

  takeAll(): readonly HeldLease[] {
    const { held } = this;
    for (const { parking } of this.#paces.values()) parking.length = 0;
    for (const group of this.#groups.values()) {
      group.fresh.length = 0;
      group.old.length = 0;
    }
    this.#forgetUnused();
    this.#timer?.cancel();
    this.#timer = null;
    return held;
  }

  /** Removes a lease that was lost. False if it has started. */
  remove(held: HeldLease): boolean {
    const queues = [...this.#groups.values()].flatMap(({ fresh, old }) => [fresh, old]);
    for (const queue of [...queues, ...[...this.#paces.values()].map(({ parking }) => parking)]) {
      const index = queue.indexOf(held);
      if (index < 0) continue;
      queue.splice(index, 1);
      return true;
    }
    return false;
  }

  // Keys.

  #keysOf(given: HeldLease): { readonly held: HeldLease; readonly keys: Keys } {
    const { rate, concurrency } = this.#options.limits;
    const { lease } = given;
    const isRead = typeof rate?.per === "function" || typeof concurrency?.per === "function";
    const parsed = given.parsed ?? (isRead ? this.#registered.entries.reread(lease.key, lease) : null);
    const keys = {
      rate: rate === null ? "" : this.#keyOf(rate.per, lease, parsed),
      concurrency: concurrency === null ? "" : this.#keyOf(concurrency.per, lease, parsed),
    };
    return { held: { lease, parsed }, keys };
  }

  /** Where the function fails, the key is that of the source: the event is handled all the same. */
  #keyOf(per: "inbox" | "source" | FlowKey, lease: Lease, parsed: object | null): string {
    if (per === "inbox") return "inbox";
    const source = `source ${lease.key.source}`;
    if (per === "source" || parsed === null) return source;
    try {
      const key: unknown = per(parsed);
      if (typeof key === "string") return `key ${key}`;
      // Nothing awaits it: a rejection would end the process.
      if (types.isPromise(key)) key.catch(() => {});
      throw new TypeError("It returned something other than a string.");
    } catch (error) {
      this.#log.warn(
        {
          ...errorFields(error, this.#registered.entries.masking(lease.key, lease, parsed)),
          code: "flow_key_failed",
          eventId: lease.event,
        },
        "The function per of a rate or a concurrency failed: the event counts for its source.",
      );
      return source;
    }
  }

  #group(keys: Keys): Group {
    const name = JSON.stringify([keys.rate, keys.concurrency]);
    let group = this.#groups.get(name);
    if (group === undefined) {
      const startedAt = this.#options.clock.monotonic();
      group = { name, keys, fresh: [], old: [], turns: 0, startedAt, parkedUntil: 0 };
      this.#groups.set(name, group);
    }
    return group;
  }

  #pace(key: string): Pace {
    let pace = this.#paces.get(key);
    if (pace === undefined) {
      pace = { note: `rate ${hash("sha256", key, "base64url")}`, starts: [], askAt: 0, parking: [] };
      this.#paces.set(key, pace);
    }
    return pace;
  }

  /** How many fresh ones of a group are held, and as many others. */
  #mostOf(): number {
    const { rate, concurrency } = this.#options.limits;
    if (rate === null) return 2 * (concurrency?.each ?? 1);
    return Math.min(MOST_HELD_OF_KEY, Math.max(1, Math.ceil((rate.perSecond * HELD_FOR_MS) / 1_000)));
  }

  #isFresh(lease: Lease): boolean {
    return isFreshEvent(lease, this.#options.clock.now());
  }

  #forgetIfEmpty(group: Group): void {
    // With a rate, how long its handlers run does not matter: nothing is parked by that.
    const isRunning = this.#options.limits.rate === null && this.#running.has(group.keys.concurrency);
    // It may have been forgotten before, and another one made since.
    if (sizeOf(group) > 0 || isRunning || this.#groups.get(group.name) !== group) return;
    this.#groups.delete(group.name);
  }

  /** There may be as many keys as customers: what is not used any more is forgotten, also of a key that was only parked. */
  #forgetUnused(): void {
    for (const group of [...this.#groups.values()]) this.#forgetIfEmpty(group);
    const used = new Set([...this.#groups.values()].map(({ keys }) => keys.rate));
    const now = this.#options.clock.monotonic();
    for (const [key, { starts, parking }] of this.#paces) {
      const isUsed = used.has(key) || parking.length > 0 || starts.some((at) => at >= now - EXPIRES_MS);
      if (!isUsed) this.#paces.delete(key);
    }
  }

  // Starting.

  #mayStart(group: Group, now: number): boolean {
    return sizeOf(group) > 0 && this.#startsOf(group, now) > 0;
  }

  /** How many of the group may start now. */
  #startsOf({ keys }: Group, now: number): number {
    const free = this.#freeOf(keys);
    if (this.#options.limits.rate === null) return free;
    const starts = this.#paces.get(keys.rate)?.starts ?? [];
    while (starts[0] !== undefined && starts[0] < now - EXPIRES_MS) starts.shift();
    return Math.min(free, starts.filter((at) => at <= now).length);
  }

  /** How many more of these keys may run at once. */
  #freeOf(keys: Keys): number {
    const { concurrency } = this.#options.limits;
    return concurrency === null ? MOST_HELD : concurrency.each - (this.#running.get(keys.concurrency) ?? 0);
  }

  #start(group: Group, held: HeldLease): void {
    const { name, keys } = group;
    this.#paces.get(keys.rate)?.starts.shift();
    this.#started.set(held, group);
    group.startedAt = this.#options.clock.monotonic();
    if (this.#options.limits.concurrency !== null)
      this.#running.set(keys.concurrency, (this.#running.get(keys.concurrency) ?? 0) + 1);
    if (sizeOf(group) === 0) group.parkedUntil = 0;
    this.#groups.delete(name);
    this.#groups.set(name, group);
    this.#reserve();
  }

  /** Wakes when the next handler may start, or when its start can be reserved. */
  #plan(now: number): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#options.limits.rate === null) return;
    let soonest = Number.POSITIVE_INFINITY;
    for (const group of this.#groups.values()) {
      const pace = sizeOf(group) > 0 ? this.#paces.get(group.keys.rate) : undefined;
      for (const at of [pace?.starts[0], pace?.askAt])
        if (at !== undefined && at > now) soonest = Math.min(soonest, at);
    }
    if (soonest === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#reserve();
      this.#worker.wake();
    }, soonest - now);
    // A drain may wait for the lease that waits for it.
    this.#timer.keepAlive();
  }

  // Reserving: all processes of the inbox take the starts of a key from one timeline.

  /** Reserves starts for the events that are held without one and could use it, and places for those that are parked. One request at a time. */
  #reserve(): void {
    const { rate } = this.#options.limits;
    if (rate === null || this.#isReserving) return;
    const wanted = this.#wanted();
    if (wanted.length === 0) return;
    this.#isReserving = true;
    const { clock } = this.#options;
    const intervalMs = 1_000 / rate.perSecond;
    const names = wanted.map(({ pace }) => pace.note);
    this.#store
      .changeNotes(names, (notes, now) => {
        const written = wanted.map((one) => {
          const timeline = reserve(one, parseTimeline(notes.get(one.pace.note)), {
            now,
            intervalMs,
            at: clock.monotonic(),
          });
          return [
            one.pace.note,
            { value: JSON.stringify(timeline), keepMs: KEEP_MS + Math.max(0, ...timeline.map((at) => at - now)) },
          ] as const;
        });
        return new Map(written);
      })
      .then(
        () => this.#reserved(wanted),
        () => this.#notReserved(wanted),
      )
      .finally(() => {
        this.#isReserving = false;
        this.#forgetUnused();
        this.#reserve();
        this.#worker.wake();
      });
  }

  #wanted(): Reserving[] {
    const now = this.#options.clock.monotonic();
    const held = new Map<string, number>();
    for (const group of this.#groups.values())
      held.set(group.keys.rate, (held.get(group.keys.rate) ?? 0) + Math.min(sizeOf(group), this.#freeOf(group.keys)));
    for (const key of held.keys()) this.#pace(key);
    return [...this.#paces].flatMap(([key, pace]) => {
      const count = pace.askAt <= now ? Math.max(0, (held.get(key) ?? 0) - pace.starts.length) : 0;
      const parking = [...pace.parking];
      const areFresh = parking.map(({ lease }) => this.#isFresh(lease));
      return count + parking.length === 0 ? [] : [{ pace, count, parking, areFresh, starts: [], askAt: 0, parkMs: [] }];
    });
  }

  #reserved(wanted: readonly Reserving[]): void {
    for (const { pace, count, starts, askAt, parking, parkMs } of wanted) {
      pace.starts.push(...starts);
      if (count > 0) pace.askAt = askAt;
      for (const [index, held] of parking.entries()) this.#park(pace, held, parkMs[index] ?? SHORTEST_PARK_MS);
    }
  }

  /** The worker's own batches report that the store is not available. */
  #notReserved(wanted: readonly Reserving[]): void {
    for (const { pace, parking } of wanted) {
      pace.askAt = this.#options.clock.monotonic() + STORE_RETRY_MS;
      for (const held of parking) this.#park(pace, held, STORE_RETRY_MS);
    }
  }

  /** Unless it was lost, or taken back, meanwhile. */
  #park(pace: Pace, held: HeldLease, delayMs: number): void {
    const index = pace.parking.indexOf(held);
    if (index < 0) return;
    pace.parking.splice(index, 1);
    this.#worker.park(held.lease, delayMs);
  }

  /** How soon a handler is free is a guess, by their average time and by how long they run now. */
  #parkByConcurrency({ lease }: HeldLease, group: Group): void {
    const now = this.#options.clock.monotonic();
    const each = this.#options.limits.concurrency?.each ?? 1;
    const dueAt = Math.max(group.parkedUntil, now);
    group.parkedUntil = dueAt + Math.max(this.#averageMs, now - group.startedAt) / each / SURPLUS;
    this.#worker.park(lease, Math.min(LONGEST_GUESS_MS, parkMs(dueAt - now)));
    this.#forgetIfEmpty(group);
  }
}

function takeOf(group: Group): HeldLease | undefined {
  const { fresh, old } = group;
  if (fresh.length === 0 || old.length === 0) return fresh.shift() ?? old.shift();
  group.turns++;
  return group.turns % FRESH_OF === 0 ? old.shift() : fresh.shift();
}

function sizeOf({ fresh, old }: Group): number {
  return fresh.length + old.length;
}

/**
 * Where a key's timeline is, epoch milliseconds: the next start, and the next places of lanes that are parked. Fresh ones have places of their
 * own, so that they do not come behind a backlog.
 */
type Timeline = readonly [start: number, place: number, freshPlace: number];

function parseTimeline(value: string | undefined): Timeline {
  return value === undefined ? [0, 0, 0] : (JSON.parse(value) as Timeline);
}

interface ReservedAt {
  /** The store's time, epoch milliseconds. */
  readonly now: number;
  /** The same moment by the monotonic clock. */
  readonly at: number;
  readonly intervalMs: number;
}

/** Answers a request by moving the timeline. Pure except for that. */
function reserve(one: Reserving, [start, place, freshPlace]: Timeline, { now, at, intervalMs }: ReservedAt): Timeline {
  // No start is reserved further ahead: then the clock was set back.
  const isAhead = start > now + AHEAD_MS + intervalMs + SMALL_STEP_MS;
  let next = isAhead ? now : Math.max(start, now);
  const starts: number[] = [];
  for (; starts.length < one.count && next <= now + AHEAD_MS; next += intervalMs) starts.push(at + next - now);
  const isIdle = isAhead || start < now - intervalMs - IDLE_MS;
  const old = { at: isIdle ? 0 : place };
  const fresh = { at: isIdle ? 0 : freshPlace };
  const delays = one.areFresh.map((isFresh) => {
    // It would not be fresh any more when it comes back.
    const last = isFresh && fresh.at < now + FRESH_MS ? fresh : old;
    last.at = Math.max(last.at, next) + intervalMs / SURPLUS;
    return parkMs(last.at - now);
  });
  one.starts = starts;
  // With half of the time left, several starts are in reach: one request is for all of them.
  one.askAt = starts.length < one.count ? at + next - now - AHEAD_MS / 2 : at;
  one.parkMs = delays;
  return [next, old.at, fresh.at];
}

function parkMs(ms: number): number {
  return Math.round(Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_PARK_MS, ms)));
}

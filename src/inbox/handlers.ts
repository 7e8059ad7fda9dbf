/** What an application registers with a receiver: its entries, each with a source and handlers, and what a handler receives. */
import { SetupError } from "../errors.ts";
import type { Logger } from "../internal/logger.ts";
import { choiceOption, refuseUnknownOptions, suggestion } from "../internal/options.ts";
import type { Instruments } from "./instrumentation.ts";
import { type LaneKey, type LaneOrder, publicId } from "./lane-key.ts";
import { type Masking, maskingOf } from "./masking.ts";
import type { EventNotice, NewEvent, QuarantineRecord } from "./record.ts";
import { DEFAULT_SEQUENCE_RULES } from "./sequence-rules.ts";
import type { DeclaredEffect, EffectFunction, EntryPreset, SequenceRules } from "./store.ts";

/** A handler. Its result is awaited and otherwise ignored. If it throws, the event is retried. */
export type Handler<E, Tx> = (event: E, ctx: HandlerContext<Tx>) => unknown;

/** A delivery of a known event had different content. It was kept, and not handled. */
export interface ConflictNotice extends EventNotice {}

export interface FailureNotice extends EventNotice {
  readonly attempt: number;
  readonly error: unknown;
}

export interface DeadLetterNotice extends EventNotice {
  readonly attempts: number;
  /** The failure's code, such as `attempts_exhausted`. */
  readonly code: string;
}

export interface Hooks {
  conflict: ((notice: ConflictNotice) => unknown)[];
  error: ((notice: FailureNotice) => unknown)[];
  deadLetter: ((notice: DeadLetterNotice) => unknown)[];
}

/** What a source knows of its events, and of their types. */
export interface EventTypes {
  /** The types that `on()` takes. Null where the provider may send any: there, a misspelt type cannot be refused. */
  readonly known: readonly string[] | null;
  /** The order in which an event can be late. By sequence it goes to `onLate()` or is only recorded, by position to `on()` without `onLate()`. */
  readonly order: Exclude<LaneOrder, "arrival"> | null;
  /** How long events are held back for others of a lower position, milliseconds. 0: not at all. */
  readonly holdBackMs: number;
}

type AnyHandler<Tx> = Handler<object, Tx>;

interface Registration<Tx> {
  readonly takes: (type: string) => boolean;
  readonly handler: AnyHandler<Tx>;
  readonly skipsLate: boolean;
}

/** How a handler is registered. */
export interface HandlerOptions {
  /**
   * `skip`: the handler does not get late events, because it keeps a state that a later event has set already. Only for a source in order by
   * position. Default: it gets them, with `ctx.late`, where no `onLate()` is registered.
   */
  readonly late?: "skip";
}

/** What the worker uses of a receiver. A reload in development replaces it: read it at each use. */
export interface Registered<Tx> {
  readonly entries: Entries<Tx>;
  readonly instruments: Instruments;
}

/** The handlers of one entry. An event's handlers are called in the order of their registration. */
export class HandlerRegistry<Tx> {
  readonly #types: EventTypes;
  readonly #handlers: Registration<Tx>[] = [];
  readonly #late: AnyHandler<Tx>[] = [];
  readonly #named = new Set<string>();
  readonly #byType = new Map<string, readonly AnyHandler<Tx>[]>();
  #frozen = false;

  constructor(types: EventTypes) {
    this.#types = types;
  }

  on(types: string | readonly string[], handler: Handler<never, Tx>, options?: HandlerOptions): void {
    const wanted: readonly unknown[] = Array.isArray(types) ? types : [types];
    if (wanted.length === 0) throw noType(this.#types);
    const names: string[] = [];
    for (const type of wanted) {
      if (typeof type !== "string" || type === "") throw noType(this.#types);
      const { known } = this.#types;
      if (known !== null && !known.includes(type)) throw unknownType(type, known);
      names.push(type);
    }
    this.#add((type) => names.includes(type), handler, options);
    for (const name of names) this.#named.add(name);
  }

  onAny(handler: Handler<never, Tx>, options?: HandlerOptions): void {
    this.#add(() => true, handler, options);
  }

  /** Events of types that the source does not know; for an open source, of types that no `on()` names. */
  onUnknown(handler: Handler<never, Tx>, options?: HandlerOptions): void {
    const known = this.#types.known ?? { includes: (type: string) => this.#named.has(type) };
    this.#add((type) => !known.includes(type), handler, options);
  }

  onLate(handler: Handler<never, Tx>): void {
    this.refuseIfFrozen();
    if (this.#types.order === null)
      throw new SetupError(
        "invalid_option",
        "No event of this source can be late: its events have no position, or no lane. Leave onLate() out.",
      );
    this.#late.push(checked(handler));
  }

  get holdBackMs(): number {
    return this.#types.holdBackMs;
  }

  /** Nothing can be registered from here on. */
  freeze(): void {
    this.#frozen = true;
  }

  get isEmpty(): boolean {
    return this.#handlers.length === 0 && this.#late.length === 0;
  }

  /** Late events by position go to handlers that a later event may have overtaken. */
  get lateGoToOn(): boolean {
    return this.#types.order === "position" && this.#late.length === 0;
  }

  /** The handlers of an event. A late one goes to `onLate` only, if there is one, unless an operator replays it. */
  handlersFor(eventType: string, late: boolean): readonly AnyHandler<Tx>[] {
    if (late && !this.lateGoToOn) return this.#late;
    let handlers = late ? undefined : this.#byType.get(eventType);
    if (handlers === undefined) {
      const isFor = ({ takes, skipsLate }: Registration<Tx>) => takes(eventType) && !(late && skipsLate);
      handlers = this.#handlers.filter(isFor).map(({ handler }) => handler);
      // The number of other types has no bound.
      const isBounded = this.#types.known?.includes(eventType) ?? this.#named.has(eventType);
      if (this.#frozen && isBounded && !late) this.#byType.set(eventType, handlers);
    }
    return handlers;
  }

  #add(takes: Registration<Tx>["takes"], handler: Handler<never, Tx>, options: HandlerOptions = {}): void {
    this.refuseIfFrozen();
    refuseUnknownOptions("on()", options, ["late"]);
    const skipsLate = choiceOption("late", options.late, "call", ["call", "skip"]) === "skip";
    if (skipsLate && this.#types.order !== "position") throw neverLate(this.#types);
    this.#handlers.push({ takes, handler: checked(handler), skipsLate });
  }

  refuseIfFrozen(): void {
    if (!this.#frozen) return;
    throw new SetupError(
      "already_started",
      "Handlers must be registered before start(), drain() or the first event: an event that came earlier would miss this one.",
    );
  }
}

function neverLate({ order }: EventTypes): SetupError {
  const why =
    order === null
      ? "no event of this source can be late"
      : "late events of this source never reach on(): they go to onLate(), or are only recorded";
  return new SetupError("invalid_option", `Leave the option late out: ${why}.`);
}

function noType({ known }: EventTypes): SetupError {
  const example = known?.at(-1) ?? "invoice.paid";
  return new SetupError(
    "invalid_option",
    `on() takes an event type, such as "${example}", or a list of them; onAny() is for every event.`,
  );
}

function unknownType(type: string, known: readonly string[]): SetupError {
  return new SetupError(
    "invalid_option",
    `on() knows no event type "${type}". ${suggestion(type, known)} Types that the service adds later reach onUnknown().`,
  );
}

/** Handlers of all event types are kept together: which one an event goes to is decided by its type. */
function checked<Tx>(handler: Handler<never, Tx>): AnyHandler<Tx> {
  if (typeof handler === "function") return handler as AnyHandler<Tx>;
  throw notAFunction(handler);
}

function notAFunction(handler: unknown): SetupError {
  return new SetupError(
    "invalid_option",
    `A handler must be a function, not ${handler === null ? "null" : typeof handler}.`,
  );
}

/**
 * What a handler receives besides its event.
 *
 * @typeParam Tx - the connection that an effect receives. `postgresStore(pool)`: the pool's client, pg's `PoolClient`; with a connection
 *   string `PgClient` of oncehook/postgres. `sqliteStore`: as its option `driver` or `effects` sets it, such as better-sqlite3's
 *   `Database`; without them `SqliteDatabase` of oncehook/sqlite.
 */
export interface HandlerContext<Tx = unknown> {
  /** Hex SHA-256 that names the event, the same for every delivery and attempt. Use it as idempotency key. */
  readonly identity: string;
  /** 1 on the first attempt. */
  readonly attempt: number;
  /** When the event was accepted, epoch milliseconds. */
  readonly receivedAt: number;
  /** The verified timestamp of its delivery, epoch milliseconds (DLV-13). */
  readonly timestamp: number;
  /** Sequences before this event that did not arrive in time, both included. Null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** An operator replayed the event. */
  readonly replay: boolean;
  /** An event with a higher sequence or position was passed to a handler before, and this one is not a replay. */
  readonly late: boolean;
  /** An event with a higher sequence was handled before: this one is late, or a replay. */
  readonly outOfOrder: boolean;
  /**
   * Aborts at `handlerTimeoutMs`. The attempt then fails when the handler ends, or 30 s later at the latest. A handler that runs on
   * after that can overlap its own retry, but cannot commit.
   */
  readonly signal: AbortSignal;
  /**
   * Registers a write to the inbox's own database. After all handlers of the event returned, the effects run in order, in the
   * transaction that completes the event: exactly once.
   *
   * The first choice is one statement or a few, `ctx.commit({ text, values })`, or an array of them, or what a query builder makes of
   * its query (Drizzle's `toSQL()`, Kysely's `compile()`, Knex's `toSQL().toNative()`). On Postgres the statements of many events are
   * sent together, without waiting for the answers.
   *
   * A function can read, decide and use an ORM: `ctx.commit((tx) => …)`. It is synchronous on SQLite. Its connection works only while
   * effects run. Write with this connection only: other writes are not in the transaction.
   * @throws LeaseLost when the event is already completed
   * @throws SetupError `async_effect` for an async function on SQLite, and for a generator function
   * @throws SetupError `invalid_argument` for a function without a parameter (but not with the option `effects` of `sqliteStore`), for a text
   *   that begins or ends a transaction or changes a setting, and for anything else that is not an effect
   * @throws SetupError `effects_unsupported` with a store that has no transactions
   */
  commit(effect: EffectFunction<Tx> | DeclaredEffect | readonly DeclaredEffect[]): void;
  /** The receiver's logger, with the event's ids. */
  readonly log: Logger;
  readonly meta: HandlerMeta;
  /** The exact bytes of the body. */
  readonly rawBody: Uint8Array;
  /**
   * A header that the event's source keeps next to the body, by its lower-case name; undefined for all others. A signature covers it only if
   * the source's documentation says so.
   */
  header(name: string): string | undefined;
}

/** Where the inbox keeps the event that a handler received. */
export interface HandlerMeta {
  /** The inbox's number for the event, as `receiver.inbox` takes it. */
  readonly eventId: number;
  readonly laneId: number;
  /** The name of the entry that it came through. */
  readonly source: string;
  /** Whose it is, where one source has the events of several. The messaging service's is the `apiClientId`. */
  readonly tenant: string | null;
  /** The name of its lane, such as the id of an outbound message. Null if the event is by itself. */
  readonly lane: string | null;
  /** The id that its source gives it, such as that of an inbound message. Null by sequence. */
  readonly id: string | null;
  /** 0 for events without a sequence. */
  readonly sequence: number;
  readonly eventType: string;
  /** The delivery's `traceparent`, or null. */
  readonly traceparent: string | null;
}

/** A stored body, and the headers that were kept next to it. */
export interface StoredBody {
  /** Null once pruned or erased. */
  readonly raw: Uint8Array | null;
  /** As JSON. Null without any. */
  readonly head: string | null;
}

/** Reads what a source stored. It needs no secrets. */
export interface StoredReader {
  /** Names the kind of source: `service`, `stripe`. */
  readonly preset: string;
  /** Paths of the fields of its events that logs and viewers may see. */
  readonly shows: readonly string[];
  /** How its lanes treat missing numbers. Null: they are not by sequence. */
  readonly sequence: SequenceRules | null;
  /** The event of a stored body. Null without a body, or if it is not an event for this version. Never throws. */
  reread(stored: StoredBody): object | null;
  /** The event that the replay of a quarantined body would accept, or the reason why it cannot be replayed. */
  release(row: QuarantineRecord): Released;
}

/** `source_needed`: this process does not have the entry that the body came through. */
export type Released =
  | { readonly ok: true; readonly event: NewEvent }
  | { readonly ok: false; readonly reason: "body_pruned" }
  | { readonly ok: false; readonly reason: "source_needed"; readonly message: string }
  | { readonly ok: false; readonly reason: "invalid_event"; readonly message: string };

/** @param name - the entry that the body came through */
export function sourceNeeded(name: string): Released {
  const message = `This body came through the source "${name}", which this process does not have: replay it through a receiver that has it.`;
  return { ok: false, reason: "source_needed", message };
}

/** An event as it is stored, for `Entries.masking`. */
type QuotedBody = Pick<NewEvent, "eventType"> & { readonly ownId?: string | null | undefined } & {
  readonly [F in keyof StoredBody]?: StoredBody[F] | undefined;
};

export interface Entry<Tx> {
  readonly name: string;
  readonly source: StoredReader;
  readonly handlers: HandlerRegistry<Tx>;
}

/** What an application registered with a receiver: the handlers of each entry, and the hooks of all. */
export class Entries<Tx> {
  readonly hooks: Hooks = { conflict: [], error: [], deadLetter: [] };
  readonly all: readonly Entry<Tx>[];
  readonly #byName = new Map<string, Entry<Tx>>();

  constructor(all: readonly Entry<Tx>[]) {
    this.all = all;
    for (const entry of all) this.#byName.set(entry.name, entry);
  }

  /** As the inbox records them. */
  get presets(): readonly EntryPreset[] {
    return this.all.map(({ name, source: { preset, shows, sequence } }) => ({ name, preset, shows, sequence }));
  }

  /** Entries that this process lacks, whose events it met. */
  readonly missing = new Set<string>();

  /** The entry of a lane. Undefined if this process does not have it. */
  of(lane: LaneKey): Entry<Tx> | undefined {
    return this.#byName.get(lane.source);
  }

  /** See `StoredReader`. Undefined for an entry that this process does not have. */
  shows(name: string): readonly string[] | undefined {
    return this.#byName.get(name)?.source.shows;
  }

  /** Those of an entry's lanes. */
  sequenceRules(name: string): SequenceRules {
    return this.#byName.get(name)?.source.sequence ?? DEFAULT_SEQUENCE_RULES;
  }

  /** The event of a stored body. Null without its entry, without a body, or if it cannot be read. */
  reread(lane: LaneKey, stored: StoredBody): object | null {
    return this.of(lane)?.source.reread(stored) ?? null;
  }

  /** Hides what errors quote of an event. `event` is null if it cannot be read. */
  masking(lane: LaneKey, { raw, head = null, eventType, ownId = null }: QuotedBody, event: object | null): Masking {
    const shows = this.of(lane)?.source.shows ?? [];
    const named = [eventType, publicId(lane.name) ?? "", publicId(ownId) ?? ""];
    return maskingOf({ event, bytes: raw?.length ?? 0, head, shows, named });
  }

  /** The event that the replay of a quarantined body would accept. */
  release(row: QuarantineRecord): Released {
    return this.#byName.get(row.source)?.source.release(row) ?? sourceNeeded(row.source);
  }

  /** The longest that events are held back, milliseconds. */
  get holdBackMs(): number {
    return Math.max(0, ...this.all.map(({ handlers }) => handlers.holdBackMs));
  }

  /** Whether a handler of this process gets the event, or it lacks the entry, so that another process must decide. */
  takes(lane: LaneKey, eventType: string, late: boolean): boolean {
    const entry = this.of(lane);
    return entry === undefined || entry.handlers.handlersFor(eventType, late).length > 0;
  }

  addHook<H extends keyof Hooks>(hook: H, listener: Hooks[H][number]): void {
    for (const { handlers } of this.all) handlers.refuseIfFrozen();
    if (typeof listener !== "function") throw notAFunction(listener);
    (this.hooks[hook] as unknown[]).push(listener);
  }

  /** Nothing can be registered from here on. */
  freeze(): void {
    for (const { handlers } of this.all) handlers.freeze();
  }

  /** @throws SetupError for an entry without any handler: events would end as unhandled */
  requireHandlers(): void {
    const without = this.all.find(({ handlers }) => handlers.isEmpty);
    if (without === undefined) return;
    const example =
      this.all.length > 1
        ? `receiver.source("${without.name}").onAny((event, ctx) => { … })`
        : 'receiver.on("message.inbound", (event, ctx) => { … })';
    throw new SetupError("no_handlers", `Register a handler first: ${example}.`);
  }
}

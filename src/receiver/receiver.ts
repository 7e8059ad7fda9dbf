/** The receiver: it holds the handlers, takes requests from adapters, owns the worker that runs the handlers, and reports its health. */

import { SetupError } from "../errors.ts";
import { checkDrainOptions, type DrainOptions, type DrainResult } from "../inbox/claims.ts";
import {
  type ConflictNotice,
  type DeadLetterNotice,
  Entries,
  type Entry,
  type FailureNotice,
  type Handler,
  type HandlerOptions,
  HandlerRegistry,
} from "../inbox/handlers.ts";
import { channelInstrumentation, EventLog, type Instrumentation, Instruments } from "../inbox/instrumentation.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { invalidOption, isPromise, numberOption, refuseUnknownOptions, suggestion } from "../internal/options.ts";
import type { ConnectedSource, SourceEvents } from "../sources/source.ts";
import { BodyBudget } from "./body-limits.ts";
import { Engine, type InUse } from "./engine.ts";
import { HttpHandler } from "./http.ts";
import type { Answer, IncomingWebhook } from "./incoming.ts";
import { InboxOperator } from "./operator.ts";
import type { ResolvedReceiverOptions } from "./options.ts";
import type { KeyringUse } from "./upkeep.ts";
import { type WaitOptions, type WantedEvent, waitForEvent } from "./wait-for.ts";

export interface StopOptions {
  /** How long running handlers may take, milliseconds, 0 to 3,600,000. Later their events are claimed again. Default 30,000. */
  readonly timeoutMs?: number;
  /** Resolves when the HTTP server has closed. Until then deliveries are still accepted. Default: now. */
  readonly until?: PromiseLike<unknown>;
}

/** A source of a receiver, connected, and the name of its entry. */
export interface NamedSource {
  readonly name: string;
  readonly source: ConnectedSource;
}

/** One entry as this receiver serves it. */
interface Served<Tx> extends Entry<Tx> {
  readonly http: HttpHandler<Tx>;
}

/** What receivers of one source and of several have in common. */
export class ReceiverBase<Tx = unknown> {
  readonly #options: ResolvedReceiverOptions<Tx>;
  readonly #sources: readonly NamedSource[];
  readonly #entries: Entries<Tx>;
  readonly #keyrings: KeyringUse;
  readonly #instruments: Instruments;
  readonly #inbox: InboxOperator;
  #engine: Engine<Tx>;
  /** By the name of the entry. */
  protected readonly served: ReadonlyMap<string, Served<Tx>>;

  constructor(options: ResolvedReceiverOptions<Tx>, sources: readonly NamedSource[]) {
    this.#options = options;
    this.#sources = sources;
    const { clock, logger } = options;
    const entries = sources.map(({ name, source }) => ({
      name,
      source,
      handlers: new HandlerRegistry<Tx>(source.types),
    }));
    this.#entries = new Entries(entries);
    this.#keyrings = keyringsOf(sources);
    this.#instruments = new Instruments(logger, clock);
    this.#instruments.add(channelInstrumentation);
    if (options.logEvents) this.#instruments.add(new EventLog(logger));
    this.#engine = new Engine(options, this.#inUse);
    this.#inbox = new InboxOperator(() => this.#engine);
    const budget = new BodyBudget(clock);
    this.served = new Map(
      entries.map((entry) => [entry.name, { ...entry, http: new HttpHandler(() => this.#engine, entry, budget) }]),
    );
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  /** The system's clock, unless a test passed its own. */
  get clock(): Clock {
    return this.#options.clock;
  }

  /** The names of its entries: `service` for the messaging service alone. */
  get sources(): readonly string[] {
    return this.#entries.all.map(({ name }) => name);
  }

  /** The name of receiver and inbox: `default@sqlite:/data/inbox.db`. */
  get key(): string {
    return `${this.#options.name}@${this.#options.store.location}`;
  }

  /** `start()` was called, and `stop()` was not. */
  get running(): boolean {
    return this.#engine.worker.isStarted;
  }

  /** Views and acts of an operator: find, replay, discard, erase and the like. */
  get inbox(): InboxOperator {
    return this.#inbox;
  }

  /** Cumulative for this process: deliveries by source and slot of their secret (`slot:stripe:previous`), by refusal (`refused:signature_mismatch`), repeats under another id (`same_body`), filtered events by source (`filtered:stripe`), and `handshakes`. */
  get counters(): Readonly<Record<string, number>> {
    return this.#engine.upkeep.counters;
  }

  /** Calls `hook` when a delivery has a known identity but different content. */
  onConflict(hook: (notice: ConflictNotice) => unknown): this {
    this.#entries.addHook("conflict", hook);
    return this;
  }

  /** Calls `hook` on each failed attempt. */
  onError(hook: (notice: FailureNotice) => unknown): this {
    this.#entries.addHook("error", hook);
    return this;
  }

  /**
   * Calls `hook` when an event becomes a dead letter. If the process ends or the store's answer is lost at that moment, the hook is not
   * called: watch `gauges.dead` of `inbox.stats()` too.
   */
  onDeadLetter(hook: (notice: DeadLetterNotice) => unknown): this {
    this.#entries.addHook("deadLetter", hook);
    return this;
  }

  /**
   * Registers an instrumentation of deliveries, attempts and write transactions, such as those of `oncehook/telemetry` for OpenTelemetry
   * and Prometheus. Several are allowed. Earlier deliveries are not reported.
   * @throws SetupError `invalid_option` for anything but an object with the methods of `Instrumentation`
   */
  instrument(instrumentation: Instrumentation): this {
    this.#instruments.add(instrumentation);
    return this;
  }

  /**
   * Opens the inbox and starts the worker, which keeps the process alive until `stop()`.
   * @throws SetupError without any handler, or if the inbox cannot be opened as configured
   * @throws StoreError `closed` after `stop()`, also if it was called while the inbox was opening
   */
  async start(): Promise<void> {
    const engine = this.#engine;
    try {
      await engine.start();
    } catch (error) {
      if (engine === this.#engine) throw error;
    }
    if (engine === this.#engine) return;
    // Another receiver's inbox was taken over while its own was opening.
    this.#leave(engine);
    await this.#engine.start();
  }

  /**
   * Stops claiming, lets running handlers end, and closes the store once `until` has settled. A second call waits for the same end. A
   * store that does not answer can add 10 s to `timeoutMs`: 5 for an open in progress and pending writes, 5 for its close.
   * @throws SetupError `invalid_option` for a wrong option. Then nothing is stopped
   */
  async stop(options: StopOptions = {}): Promise<void> {
    refuseUnknownOptions("stop", options, ["timeoutMs", "until"]);
    const timeoutMs = numberOption("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: 3_600_000, unit: "ms" });
    await this.#engine.stop(timeoutMs, untilOption(options.until));
    for (const { source } of this.#sources) source.keyrings.close();
  }

  /**
   * Handles the events that are ready now, without `start()`: after a response, or from a cron. Does not wait for gaps and backoffs. But if a
   * source has `holdBackMs`, it waits within its budget for all that is due in that time. It also waits for what a rate puts off: give it a
   * budget then.
   * @throws SetupError without any handler, or if the inbox cannot be opened as configured
   * @throws StoreError if the store fails meanwhile, after running handlers have ended. Nothing is lost: the next drain continues
   */
  async drain(options: DrainOptions = {}): Promise<DrainResult> {
    checkDrainOptions(options);
    return this.#engine.drain(options);
  }

  /** Claims nothing more until `resume()`. Deliveries are still accepted. */
  pause(): void {
    this.#engine.worker.pause();
  }

  resume(): void {
    this.#engine.worker.resume();
  }

  protected waitForEvent(ref: object, wanted: WantedEvent<never>, options: WaitOptions = {}): Promise<object> {
    const waited = this.#sources.find(({ source }) => source.lookUp !== undefined);
    if (waited === undefined) return Promise.reject(cannotWait());
    return waitForEvent(this.#engine, waited.source, ref, wanted, options);
  }

  health(): Promise<Health> {
    return healthOf(this.#engine);
  }

  /**
   * Continues with the open inbox and worker of an older receiver, and with this one's handlers, secrets and instrumentations: for reloads
   * in development. An inbox that this one had opened is closed. If the older receiver's inbox is not open, the older one continues with
   * this one's inbox; if the older receiver was stopped, nothing changes.
   * @throws SetupError `no_handlers` if the worker runs and this receiver has no handlers
   */
  takeOver(previous: ReceiverBase<Tx>): void {
    const own = this.#engine;
    const next = previous.#engine;
    if (next.isStopping || next === own) return;
    if (!next.isInUse) {
      previous.#engine = own;
      return;
    }
    if (next.worker.isStarted) this.#entries.requireHandlers();
    const { running } = this;
    this.#engine = next;
    next.use(this.#inUse);
    this.#leave(own);
    if (!running) return;
    next.start().catch((error: unknown) => {
      const said = "The worker could not continue with the inbox that was taken over. Call receiver.start() again.";
      this.logger.error(placeFields(error), explained(said, error));
    });
  }

  /** Closes the engine of a module that started its receiver before mounting it: nothing could stop that worker any more. */
  #leave(own: Engine<Tx>): void {
    if (own.options.store !== this.#engine.options.store) void own.stop(0).catch(() => {});
  }

  get #inUse(): InUse<Tx> {
    return { entries: this.#entries, keyrings: this.#keyrings, instruments: this.#instruments };
  }
}

/** A receiver of one source: `createReceiver({ secrets, store })`, or with the option `source`. */
export class Receiver<Tx = unknown, E extends SourceEvents = SourceEvents> extends ReceiverBase<Tx> {
  get #served(): Served<Tx> {
    for (const served of this.served.values()) return served;
    throw new RangeError("A receiver has at least one source.");
  }

  /** Registers a handler of one or more event types. Several handlers of an event run in order. A retry starts at the first again. */
  on<T extends keyof E["byType"] & string>(
    types: T | readonly T[],
    handler: Handler<E["byType"][T], Tx>,
    options?: HandlerOptions,
  ): this {
    this.#served.handlers.on(types, handler, options);
    return this;
  }

  /** Registers a handler of every event, known or unknown. */
  onAny(handler: Handler<E["any"], Tx>, options?: HandlerOptions): this {
    this.#served.handlers.onAny(handler, options);
    return this;
  }

  /**
   * Registers a handler of event types that this version of oncehook does not know (RCV-11). For a source whose types are open: of those
   * that no `on()` names.
   */
  onUnknown(handler: Handler<E["unknown"], Tx>, options?: HandlerOptions): this {
    this.#served.handlers.onUnknown(handler, options);
    return this;
  }

  /**
   * Registers a handler of late events: one with a higher sequence or position of their lane was passed to a handler before. Other handlers
   * do not receive them (RCV-7). Those of the messaging service are outbound, so they have `event.messageId` and `event.sequence`. Without
   * one, a late event of the messaging service is only recorded, and one of a source by position goes to its `on()` handler with `ctx.late`.
   *
   * @throws SetupError if no event of the source can be late
   */
  onLate(handler: Handler<E["late"], Tx>): this {
    this.#served.handlers.onLate(handler);
    return this;
  }

  /** Answers one request. For adapters; never rejects. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    return this.#served.http.handle(incoming);
  }

  /**
   * Resolves with the event once a process on the same inbox has handled it, or at once if that has happened. You can call it in another
   * process than the started one, before or after the event arrives (DLV-20). A failed message has no `message.delivery`: to wait for
   * either, pass a function.
   *
   * @param ref - the message: `apiClientId` from `client.whoami()`, `messageId` from `client.messages.send()`
   * @throws DeadLettered if it ended as a dead letter, discarded, recorded as late, or without any handler
   * @throws OncehookError `wait_timeout`. The message may still be handled later. `fields.state` is `missing` or `pending`, with
   * `laneStatus` and `eventTypes`
   * @throws SetupError `invalid_option` for a missing argument or a misspelt event type
   * @throws the reason of `signal` when it aborts
   */
  waitFor<T extends keyof E["byType"] & string>(
    ref: E["ref"],
    wanted: T,
    options?: WaitOptions,
  ): Promise<E["byType"][T]>;
  waitFor<Wished extends E["any"]>(
    ref: E["ref"],
    wanted: (event: E["any"]) => event is Wished,
    options?: WaitOptions,
  ): Promise<Wished>;
  waitFor(ref: E["ref"], wanted: WantedEvent<E["any"]>, options?: WaitOptions): Promise<E["any"]>;
  waitFor(ref: E["ref"], wanted: WantedEvent<E["any"]>, options: WaitOptions = {}): Promise<E["any"]> {
    return this.waitForEvent(ref, wanted as WantedEvent<never>, options);
  }
}

/** The events of each source of a receiver, by the name of its entry. */
export type SourcesEvents = Readonly<Record<string, SourceEvents>>;

/** A receiver of several sources: one inbox, one worker, one inspector. Each source has its handlers and its own URL. */
export class SourcesReceiver<Tx = unknown, S extends SourcesEvents = SourcesEvents> extends ReceiverBase<Tx> {
  readonly #views = new Map<string, SourceView<Tx>>();

  /**
   * One source: where its handlers are registered, and what an adapter takes.
   *
   * @throws SetupError `invalid_option` for a name that is not in the option `sources`
   * @example
   * receiver.source("billing").on("invoice.paid", (event) => …);
   * app.all("/webhooks/billing", expressWebhook(receiver.source("billing")));
   */
  source<N extends keyof S & string>(name: N): SourceView<Tx, S[N]> {
    const served = this.served.get(name);
    if (served === undefined) throw noSource(name, [...this.served.keys()]);
    const view = this.#views.get(name) ?? new SourceView<Tx>(this, name, served);
    this.#views.set(name, view);
    // The view of this name, whose events are those of `S[N]`.
    return view as unknown as SourceView<Tx, S[N]>;
  }

  /** Not here: which source's? Use `receiver.source(name).on(…)`. */
  get on(): never {
    throw ofSource("on");
  }

  /** Not here: use `receiver.source(name).onAny(…)`. */
  get onAny(): never {
    throw ofSource("onAny");
  }

  /** Not here: use `receiver.source(name).onUnknown(…)`. */
  get onUnknown(): never {
    throw ofSource("onUnknown");
  }

  /** Not here: use `receiver.source(name).onLate(…)`. */
  get onLate(): never {
    throw ofSource("onLate");
  }

  /** Not here: an adapter takes `receiver.source(name)`. */
  get handle(): never {
    throw ofSource("handle");
  }

  /** Resolves with an event of the messaging service once it is handled: as `Receiver.waitFor`. */
  waitFor<E extends S[keyof S]>(
    ref: E["ref"],
    wanted: WantedEvent<E["any"]>,
    options?: WaitOptions,
  ): Promise<E["any"]> {
    return this.waitForEvent(ref, wanted as WantedEvent<never>, options);
  }
}

/** One source of a receiver of several. */
export class SourceView<Tx = unknown, E extends SourceEvents = SourceEvents> {
  readonly #receiver: ReceiverBase<Tx>;
  readonly #name: string;
  readonly #served: Served<Tx>;

  /** Use `receiver.source(name)`. */
  constructor(receiver: ReceiverBase<Tx>, name: string, served: Served<Tx>) {
    this.#receiver = receiver;
    this.#name = name;
    this.#served = served;
  }

  get logger(): Logger {
    return this.#receiver.logger;
  }

  /** The name of the source, and the receiver's key: `billing#default@sqlite:/data/inbox.db`. */
  get key(): string {
    return `${this.#name}#${this.#receiver.key}`;
  }

  /** `start()` of the receiver was called, and `stop()` was not. */
  get running(): boolean {
    return this.#receiver.running;
  }

  /** Registers a handler of one or more event types. Several handlers of an event run in order. A retry starts at the first again. */
  on<T extends keyof E["byType"] & string>(
    types: T | readonly T[],
    handler: Handler<E["byType"][T], Tx>,
    options?: HandlerOptions,
  ): this {
    this.#served.handlers.on(types, handler, options);
    return this;
  }

  /** Registers a handler of every event of this source. */
  onAny(handler: Handler<E["any"], Tx>, options?: HandlerOptions): this {
    this.#served.handlers.onAny(handler, options);
    return this;
  }

  /** Registers a handler of event types that no `on()` names; for the messaging service, of types that this version does not know. */
  onUnknown(handler: Handler<E["unknown"], Tx>, options?: HandlerOptions): this {
    this.#served.handlers.onUnknown(handler, options);
    return this;
  }

  /** As `Receiver.onLate`. */
  onLate(handler: Handler<E["late"], Tx>): this {
    this.#served.handlers.onLate(handler);
    return this;
  }

  /** Answers one request. For adapters; never rejects. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    return this.#served.http.handle(incoming);
  }

  /** As `Receiver.drain`: events of all sources. */
  drain(options?: DrainOptions): Promise<DrainResult> {
    return this.#receiver.drain(options);
  }

  /** As `Receiver.takeOver`. */
  takeOver(previous: SourceView<Tx>): void {
    this.#receiver.takeOver(previous.#receiver);
  }
}

function ofSource(member: string): SetupError {
  const message = `This receiver has several sources: call ${member} on one of them, receiver.source("NAME").`;
  return new SetupError("invalid_option", message);
}

function noSource(name: string, names: readonly string[]): SetupError {
  const message = `receiver.source() knows no source "${name}". ${suggestion(name, names)}`;
  return new SetupError("invalid_option", message);
}

/** The secrets whose version this process reports: those of the source with kinds, which can be rotated. */
function keyringsOf(sources: readonly NamedSource[]): KeyringUse {
  const rotated = sources.find(({ source }) => source.hasKinds)?.source.keyrings;
  return {
    version: () => rotated?.version() ?? "none",
    background: rotated?.background ?? null,
    get isFailing() {
      return sources.some(({ source }) => source.keyrings.isFailing);
    },
  };
}

function cannotWait(): SetupError {
  return new SetupError(
    "invalid_option",
    "waitFor() waits for events of the messaging service, which this receiver does not have.",
  );
}

/** The likeliest mistake is the result of `server.close()`, which is the server. */
function untilOption(value: unknown): PromiseLike<unknown> | undefined {
  if (value === undefined || isPromise(value)) return value;
  const rule =
    "must be a promise, such as new Promise((resolve) => server.close(resolve)): server.close() returns none";
  throw invalidOption("until", rule, value);
}

/**
 * - `stopped`: `stop()` was called. Deliveries may still be accepted.
 * - `store_unavailable`: the inbox does not answer, or the last delivery could not be stored and got 503. The latter counts for half a
 *   minute: a load balancer that removed this process would never send the delivery that clears it.
 * - `keyring_unavailable`: the last read of the secret store or keyring provider failed, or returned no secret. The secrets read before
 *   serve for 10 minutes. After that, deliveries get 503.
 * - `worker_not_running`: an event is due, and neither `start()` nor `drain()` ran for a minute.
 * - `worker_paused`: every handler failed, or `pause()` was called.
 * - `dead_letters`, `blocked_lanes`, `quarantined`: something waits for an operator.
 * - `quarantine_full`: in the last hour a signed body found no room in the quarantine. Older ones gave way to it, or it got 503.
 * - `source_missing`: events of a source that this receiver does not have were met. They stay untouched.
 */
export type HealthReason =
  | "stopped"
  | "store_unavailable"
  | "keyring_unavailable"
  | "worker_not_running"
  | "worker_paused"
  | "dead_letters"
  | "blocked_lanes"
  | "quarantined"
  | "quarantine_full"
  | "source_missing";

/** Whether the receiver works, and what is in its way. */
export interface Health {
  readonly status: "ok" | "degraded";
  readonly reasons: readonly HealthReason[];
  readonly details: HealthDetails;
}

/** Figures that call for no action by themselves. */
export interface HealthDetails {
  /** Events that came late since the inbox was made: after a later one of their lane was handled. Null while the inbox does not answer. */
  readonly late: number | null;
}

async function healthOf<Tx>(engine: Engine<Tx>): Promise<Health> {
  const reasons: HealthReason[] = [];
  let late: number | null = null;
  if (engine.isStopping) reasons.push("stopped");
  else {
    if (engine.worker.isTripped || engine.worker.isPaused) reasons.push("worker_paused");
    const inbox = await inboxHealth(engine);
    reasons.push(...inbox.reasons);
    late = inbox.late;
    if (engine.inUse.keyrings.isFailing) reasons.push("keyring_unavailable");
    if (engine.inUse.entries.missing.size > 0) reasons.push("source_missing");
  }
  return { status: reasons.length === 0 ? "ok" : "degraded", reasons, details: { late } };
}

async function inboxHealth<Tx>(engine: Engine<Tx>): Promise<Pick<Health, "reasons"> & HealthDetails> {
  try {
    await engine.open();
    const { gauges, counters } = await engine.options.store.stats();
    const reasons: HealthReason[] = [];
    // A full disk can still be read.
    if (engine.isFailingToStore) reasons.push("store_unavailable");
    if (await engine.upkeep.isWorkLeft()) reasons.push("worker_not_running");
    if (gauges.dead > 0) reasons.push("dead_letters");
    if (gauges.blockedLanes > 0) reasons.push("blocked_lanes");
    if (gauges.quarantined > 0) reasons.push("quarantined");
    if (gauges.quarantined > 0 && engine.isQuarantineFull) reasons.push("quarantine_full");
    return { reasons, late: counters.late };
  } catch {
    return { reasons: ["store_unavailable"], late: null };
  }
}

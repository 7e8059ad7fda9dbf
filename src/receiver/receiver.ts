/** The receiver: handlers are registered on it, adapters hand it requests, and its worker runs the handlers. */
import type { EventByType, KnownEventType, LateEvent, UnknownEvent, WebhookEvent } from "../events/types.ts";
import { checkDrainOptions, type DrainOptions, type DrainResult } from "../inbox/drain.ts";
import {
  type ConflictNotice,
  type DeadLetterNotice,
  type FailureNotice,
  type Handler,
  HandlerRegistry,
} from "../inbox/handlers.ts";
import { channelInstrumentation, EventLog, type Instrumentation, Instruments } from "../inbox/instrumentation.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { isPromise } from "../internal/type-guards.ts";
import type { KeyringSource } from "../signature/keyring-provider.ts";
import { createKeyringSource } from "../signature/keyring-source.ts";
import { Engine, type InUse } from "./engine.ts";
import { type Health, healthOf } from "./health.ts";
import { HttpIntake } from "./http.ts";
import type { Answer, IncomingWebhook } from "./incoming.ts";
import { InboxOperator } from "./operator.ts";
import { type ReceiverOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { type MessageRef, type WaitOptions, type Wanted, waitForEvent } from "./wait-for.ts";

export interface StopOptions {
  /** How long running handlers may take, milliseconds, 0 to 3,600,000; what is left then is claimed again later. Default 30,000. */
  readonly timeoutMs?: number;
  /** Settles when the HTTP server has closed: until then deliveries are still accepted. Default: now. */
  readonly until?: PromiseLike<unknown>;
}

/**
 * Receives webhooks: verified against the raw bytes, stored before the 2xx, handled once in effect, and in ascending
 * sequence per message.
 *
 * @throws SetupError for every mistake in the options, naming the option and the fix
 * @example
 * const receiver = createReceiver({ secrets: process.env.WEBHOOK_SECRET ?? "", store: sqliteStore("inbox.db") });
 * receiver.on("message.delivery", (event, ctx) => ctx.commit((db) => markDelivered(db, event.messageId)));
 * await receiver.start();
 */
export function createReceiver<Tx>(options: ReceiverOptions<Tx>): Receiver<Tx> {
  return new Receiver(options);
}

export class Receiver<Tx = unknown> {
  readonly #options: ResolvedOptions<Tx>;
  readonly #registry = new HandlerRegistry<Tx>();
  readonly #keyrings: KeyringSource;
  readonly #instruments: Instruments;
  readonly #http: HttpIntake<Tx>;
  readonly #inbox: InboxOperator;
  #engine: Engine<Tx>;

  /** Use `createReceiver`. */
  constructor(options: ReceiverOptions<Tx>) {
    this.#options = resolveOptions(options);
    const { clock, logger } = this.#options;
    this.#keyrings = createKeyringSource(this.#options.secrets, { clock, logger });
    this.#instruments = new Instruments(logger, clock);
    this.#instruments.add(channelInstrumentation);
    if (this.#options.logEvents) this.#instruments.add(new EventLog(logger));
    this.#engine = new Engine(this.#options, this.#inUse);
    this.#http = new HttpIntake(() => this.#engine, this.#keyrings);
    this.#inbox = new InboxOperator(() => this.#engine);
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  /** The clock it was made with: the system's, unless a test gave its own. */
  get clock(): Clock {
    return this.#options.clock;
  }

  /** Names receiver and inbox: `default@sqlite:/data/inbox.db`. */
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

  /** Cumulative for this process: deliveries by secret slot (`slot:previous`) and by refusal (`refused:signature_mismatch`). */
  get counters(): Readonly<Record<string, number>> {
    return this.#engine.upkeep.counters;
  }

  /** Registers a handler of one or several event types. Several handlers of an event run in order; a failure starts again at the first. */
  on<T extends KnownEventType>(types: T | readonly T[], handler: Handler<EventByType[T], Tx>): this {
    this.#registry.on(types, handler);
    return this;
  }

  /** Registers a handler of every event, known or unknown. */
  onAny(handler: Handler<WebhookEvent, Tx>): this {
    this.#registry.onAny(handler);
    return this;
  }

  /** Registers a handler of event types that this version of oncehook does not know (RCV-11). */
  onUnknown(handler: Handler<UnknownEvent, Tx>): this {
    this.#registry.onUnknown(handler);
    return this;
  }

  /**
   * Registers a handler of events that arrive below their message's cursor; no other handler sees those (RCV-7). They are outbound, so
   * `event.messageId` and `event.sequence` are there.
   */
  onLate(handler: Handler<LateEvent, Tx>): this {
    this.#registry.onLate(handler);
    return this;
  }

  /** Calls `hook` when a known identity comes with other content. */
  onConflict(hook: (notice: ConflictNotice) => unknown): this {
    this.#registry.addHook("conflict", hook);
    return this;
  }

  /** Calls `hook` on each failed attempt. */
  onError(hook: (notice: FailureNotice) => unknown): this {
    this.#registry.addHook("error", hook);
    return this;
  }

  /**
   * Calls `hook` when an event becomes a dead letter. Not where the process ends, or the store's answer is lost, just then: watch
   * `gauges.dead` of `inbox.stats()` too.
   */
  onDeadLetter(hook: (notice: DeadLetterNotice) => unknown): this {
    this.#registry.addHook("deadLetter", hook);
    return this;
  }

  /**
   * Registers somebody who watches deliveries, attempts and write transactions; `oncehook/telemetry` does so for OpenTelemetry and
   * Prometheus. Several may. What happened before is not told.
   * @throws SetupError `invalid_option` for anything but an object with the methods of `Instrumentation`
   */
  instrument(instrumentation: Instrumentation): this {
    this.#instruments.add(instrumentation);
    return this;
  }

  /** Answers one request. For adapters; never rejects. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    return this.#http.handle(incoming);
  }

  /**
   * Opens the inbox and starts the worker, which keeps the process alive until `stop()`.
   * @throws SetupError without any handler, or when the inbox can not be opened as configured
   * @throws StoreError `closed` once `stop()` was called, also while the inbox was opening
   */
  async start(): Promise<void> {
    const engine = this.#engine;
    try {
      await engine.start();
    } catch (error) {
      if (engine === this.#engine) throw error;
    }
    if (engine === this.#engine) return;
    // Another one's inbox was taken over while its own was opening.
    this.#leave(engine);
    await this.#engine.start();
  }

  /**
   * Stops claiming, lets running handlers end, and closes the store once `until` is settled. A second call waits for the
   * first one's end. A store that does not answer holds it up for 10 s more than `timeoutMs` at most: 5 for an open under way or what
   * is still to be written, 5 for its end.
   * @throws SetupError `invalid_option` for an option that is wrong; then nothing is stopped
   */
  async stop(options: StopOptions = {}): Promise<void> {
    refuseUnknownOptions("stop", options, ["timeoutMs", "until"]);
    const timeoutMs = numberOption("timeoutMs", options.timeoutMs, 30_000, { min: 0, max: 3_600_000, unit: "ms" });
    await this.#engine.stop(timeoutMs, untilOption(options.until));
    this.#keyrings.close();
  }

  /**
   * Handles what is ready now, without `start()`: after a response, or from a cron. Gaps and backoffs are not waited for.
   * @throws SetupError without any handler, or when the inbox can not be opened as configured
   * @throws StoreError when the store fails meanwhile, once what was begun has ended; nothing is lost, and the next drain goes on
   */
  async drain(options: DrainOptions = {}): Promise<DrainResult> {
    checkDrainOptions(options);
    return this.#engine.drain(options);
  }

  /** Claims nothing more until `resume()`; deliveries are still accepted. */
  pause(): void {
    this.#engine.worker.pause();
  }

  resume(): void {
    this.#engine.worker.resume();
  }

  /**
   * Resolves with the event once it was handled, by any process on the same inbox; also when it already was. So it can be called
   * in another process than the one that is started, before or after the event came (DLV-20). A message that fails has no
   * `message.delivery`: give a function that takes both ends.
   *
   * @param ref - the message: `apiClientId` as `client.whoami()` tells it, `messageId` as `client.messages.send()` did
   * @throws DeadLettered when it ended otherwise: as a dead letter, discarded, recorded as late, or without any handler
   * @throws OncehookError `wait_timeout`, which does not end the message; it says what the inbox holds of it: `fields.state` is
   * `missing` or `pending`, with `laneStatus` and `eventTypes`
   * @throws SetupError `invalid_option` for an argument that is missing, and for a misspelt event type
   * @throws the reason of `signal` when it aborts
   */
  waitFor<T extends KnownEventType>(ref: MessageRef, wanted: T, options?: WaitOptions): Promise<EventByType[T]>;
  waitFor<E extends WebhookEvent>(
    ref: MessageRef,
    wanted: (event: WebhookEvent) => event is E,
    options?: WaitOptions,
  ): Promise<E>;
  waitFor(ref: MessageRef, wanted: Wanted, options?: WaitOptions): Promise<WebhookEvent>;
  waitFor(ref: MessageRef, wanted: Wanted, options: WaitOptions = {}): Promise<WebhookEvent> {
    return waitForEvent(this.#engine, ref, wanted, options);
  }

  health(): Promise<Health> {
    return healthOf(this.#engine);
  }

  /**
   * Goes on with the open inbox and worker of an older receiver, with this one's handlers, secrets and instruments: for reloads in
   * development. What this one had opened itself is closed. There is nothing to go on with of a receiver whose `stop()` was called, or
   * whose inbox is not open: it goes on with this one's.
   * @throws SetupError `no_handlers` where the worker runs, and would get none
   */
  takeOver(previous: Receiver<Tx>): void {
    const own = this.#engine;
    const next = previous.#engine;
    if (next.isStopping || next === own) return;
    if (!next.isInUse) {
      previous.#engine = own;
      return;
    }
    if (next.worker.isStarted) this.#registry.requireHandlers();
    const { running } = this;
    this.#engine = next;
    next.use(this.#inUse);
    this.#leave(own);
    if (!running) return;
    next.start().catch((error: unknown) => {
      const said = "The worker did not go on with the inbox that was taken over; call receiver.start() again.";
      this.logger.error(placeFields(error), explained(said, error));
    });
  }

  /** A module that starts its receiver before it mounts it: nobody could stop that worker any more. */
  #leave(own: Engine<Tx>): void {
    if (own.options.store !== this.#engine.options.store) void own.stop(0).catch(() => {});
  }

  get #inUse(): InUse<Tx> {
    return { registry: this.#registry, keyrings: this.#keyrings, instruments: this.#instruments };
  }
}

/** What `server.close()` gives is the server, and the likeliest mistake. */
function untilOption(value: unknown): PromiseLike<unknown> | undefined {
  if (value === undefined || isPromise(value)) return value;
  const rule = "must be a promise, such as new Promise((resolve) => server.close(resolve)): server.close() gives none";
  throw invalidOption("until", rule, value);
}

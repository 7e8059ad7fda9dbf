/** The receiver: it holds the handlers, takes requests from adapters, owns the worker that runs the handlers, and reports its health. */

import type { EventByType, KnownEventType, LateEvent, UnknownEvent, WebhookEvent } from "../events/types.ts";
import { checkDrainOptions, type DrainOptions, type DrainResult } from "../inbox/claims.ts";
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
import { invalidOption, isPromise, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { KeyringSource } from "../signature/keyring-provider.ts";
import { createKeyringSource } from "../signature/keyring-source.ts";
import { Engine, type InUse } from "./engine.ts";
import { HttpHandler } from "./http.ts";
import type { Answer, IncomingWebhook } from "./incoming.ts";
import { InboxOperator } from "./operator.ts";
import { type ReceiverOptions, type ResolvedReceiverOptions, resolveReceiverOptions } from "./options.ts";
import { type MessageRef, type WaitOptions, type Wanted, waitForEvent } from "./wait-for.ts";

export interface StopOptions {
  /** How long running handlers may take, milliseconds, 0 to 3,600,000. Later their events are claimed again. Default 30,000. */
  readonly timeoutMs?: number;
  /** Resolves when the HTTP server has closed. Until then deliveries are still accepted. Default: now. */
  readonly until?: PromiseLike<unknown>;
}

/**
 * Receives webhooks: verifies the raw bytes and stores each event before the 2xx. Your handler's effect happens once, and a message's
 * events run in order.
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
  readonly #options: ResolvedReceiverOptions<Tx>;
  readonly #registry = new HandlerRegistry<Tx>();
  readonly #keyrings: KeyringSource;
  readonly #instruments: Instruments;
  readonly #http: HttpHandler<Tx>;
  readonly #inbox: InboxOperator;
  #engine: Engine<Tx>;

  /** Use `createReceiver`. */
  constructor(options: ReceiverOptions<Tx>) {
    this.#options = resolveReceiverOptions(options);
    const { clock, logger } = this.#options;
    this.#keyrings = createKeyringSource(this.#options.secrets, { clock, logger });
    this.#instruments = new Instruments(logger, clock);
    this.#instruments.add(channelInstrumentation);
    if (this.#options.logEvents) this.#instruments.add(new EventLog(logger));
    this.#engine = new Engine(this.#options, this.#inUse);
    this.#http = new HttpHandler(() => this.#engine, this.#keyrings);
    this.#inbox = new InboxOperator(() => this.#engine);
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  /** The system's clock, unless a test passed its own. */
  get clock(): Clock {
    return this.#options.clock;
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

  /** Cumulative for this process: deliveries by secret slot (`slot:previous`) and by refusal (`refused:signature_mismatch`). */
  get counters(): Readonly<Record<string, number>> {
    return this.#engine.upkeep.counters;
  }

  /** Registers a handler of one or more event types. Several handlers of an event run in order. A retry starts at the first again. */
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
   * Registers a handler of events that arrive below their message's cursor. Other handlers do not receive them (RCV-7). They are
   * outbound, so they have `event.messageId` and `event.sequence`.
   */
  onLate(handler: Handler<LateEvent, Tx>): this {
    this.#registry.onLate(handler);
    return this;
  }

  /** Calls `hook` when a delivery has a known identity but different content. */
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
   * Calls `hook` when an event becomes a dead letter. If the process ends or the store's answer is lost at that moment, the hook is not
   * called: watch `gauges.dead` of `inbox.stats()` too.
   */
  onDeadLetter(hook: (notice: DeadLetterNotice) => unknown): this {
    this.#registry.addHook("deadLetter", hook);
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

  /** Answers one request. For adapters; never rejects. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    return this.#http.handle(incoming);
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
    this.#keyrings.close();
  }

  /**
   * Handles the events that are ready now, without `start()`: after a response, or from a cron. Does not wait for gaps and backoffs.
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
   * Continues with the open inbox and worker of an older receiver, and with this one's handlers, secrets and instrumentations: for reloads
   * in development. An inbox that this one had opened is closed. If the older receiver's inbox is not open, the older one continues with
   * this one's inbox; if the older receiver was stopped, nothing changes.
   * @throws SetupError `no_handlers` if the worker runs and this receiver has no handlers
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
      const said = "The worker could not continue with the inbox that was taken over. Call receiver.start() again.";
      this.logger.error(placeFields(error), explained(said, error));
    });
  }

  /** Closes the engine of a module that started its receiver before mounting it: nothing could stop that worker any more. */
  #leave(own: Engine<Tx>): void {
    if (own.options.store !== this.#engine.options.store) void own.stop(0).catch(() => {});
  }

  get #inUse(): InUse<Tx> {
    return { registry: this.#registry, keyrings: this.#keyrings, instruments: this.#instruments };
  }
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
 */
export type HealthReason =
  | "stopped"
  | "store_unavailable"
  | "keyring_unavailable"
  | "worker_not_running"
  | "worker_paused"
  | "dead_letters"
  | "blocked_lanes"
  | "quarantined";

export interface Health {
  readonly status: "ok" | "degraded";
  readonly reasons: readonly HealthReason[];
}

async function healthOf<Tx>(engine: Engine<Tx>): Promise<Health> {
  const reasons: HealthReason[] = [];
  if (engine.isStopping) reasons.push("stopped");
  else {
    if (engine.worker.isTripped || engine.worker.isPaused) reasons.push("worker_paused");
    reasons.push(...(await inboxReasons(engine)));
    if (engine.inUse.keyrings.isFailing) reasons.push("keyring_unavailable");
  }
  return { status: reasons.length === 0 ? "ok" : "degraded", reasons };
}

async function inboxReasons<Tx>(engine: Engine<Tx>): Promise<HealthReason[]> {
  try {
    await engine.open();
    const { gauges } = await engine.options.store.stats();
    const reasons: HealthReason[] = [];
    // A full disk can still be read.
    if (engine.isFailingToStore) reasons.push("store_unavailable");
    if (await engine.upkeep.isWorkLeft()) reasons.push("worker_not_running");
    if (gauges.dead > 0) reasons.push("dead_letters");
    if (gauges.blockedLanes > 0) reasons.push("blocked_lanes");
    if (gauges.quarantined > 0) reasons.push("quarantined");
    return reasons;
  } catch {
    return ["store_unavailable"];
  }
}

/** A process of a world: a receiver on a connection of its own, which dies or stands still at any await, whoever is in it. */
import {
  type Answer,
  createReceiver,
  type FailureNotice,
  type HandlerContext,
  type IncomingWebhook,
  type SourcesReceiver,
} from "../../../src/index.ts";
import type { Clock, Timer } from "../../../src/internal/clock.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SourceName, sourcesFor } from "../sources.ts";
import { connectionOf } from "./connection.ts";
import { type Course, isWanted } from "./course.ts";
import { Dice } from "./dice.ts";
import type { Connection } from "./places.ts";

/** What a process meets in its world. */
export interface Surroundings {
  readonly course: Course;
  /** The time that passes alike everywhere. */
  readonly clock: Clock;
  /** What the machine takes for the time of day. */
  wallClock(): number;
  /** Called at each await; the process may be dead or stand still when it returns. */
  awaited(process: Process, where: string): void;
  /** What is wrong with the store now. */
  storeIs(kind: Course["troubles"][number]["kind"]): boolean;
  /** Another process may have something to do now. */
  knock(): void;
  /** So many events were left to another process, which has their source. */
  putOff(events: number): void;
  handle(handed: HandedEvent): unknown;
  /** A hook was called: the failure or the dead letter that it names is stored. */
  reported(kind: "failure" | "dead letter", notice: Reported): void;
}

/** What a hook is called with. */
export type Reported = Pick<FailureNotice, "eventId" | "lane" | "id" | "sequence"> & { readonly attempt: number };

/** An event as a handler of `source` receives it. */
export interface HandedEvent {
  readonly process: Process;
  readonly source: SourceName;
  /** Whether it was registered by `onLate`. */
  readonly handler: "on" | "late";
  readonly event: object;
  readonly ctx: HandlerContext<unknown>;
}

/** The last digit of a message's id; all other events have one key. */
export function keyOfMessage(event: object): string {
  return "messageId" in event ? String(event.messageId).slice(-1) : "";
}

export class Process {
  readonly name: string;
  readonly receiver: SourcesReceiver<unknown>;
  readonly sources: readonly SourceName[];
  /** As it goes in this process: with it, timers end or stand still. */
  readonly clock: Clock;
  /** It is being stopped as in a deployment, and takes no more deliveries. */
  isLeaving = false;
  readonly #surroundings: Surroundings;
  readonly #connection: Connection;
  readonly #timers = new Set<Timer>();
  readonly #listeners = new Set<() => void>();
  #state: "runs" | "stands still" | "is dead" = "runs";
  #missed: (() => void)[] = [];

  constructor(
    { name, sources }: Pick<Process, "name" | "sources">,
    connection: Connection,
    surroundings: Surroundings,
  ) {
    this.name = name;
    this.sources = sources;
    this.#surroundings = surroundings;
    this.#connection = connection;
    this.clock = this.#ownClock();
    const { course } = surroundings;
    const random = new Dice(course.seed, `backoff of ${name}`).next;
    const { gapWait, firstSequence, concurrency, ...options } = course.receiver;
    const { rate, each } = course;
    const wants =
      course.filters === null ? undefined : (source: SourceName, event: object) => isWanted(course, source, event);
    this.receiver = createReceiver({
      ...{ sources: sourcesFor(sources, { gapWait, firstSequence, holdBackMs: course.holdBackMs, wants }), ...options },
      concurrency: each === null ? concurrency : { total: concurrency, each, per: "source" },
      ...(rate !== null && { rate: { ...rate, per: rate.per === "message" ? keyOfMessage : rate.per } }),
      ...{ store: connectionOf(this, connection.store, surroundings) },
      ...{ clock: this.clock, random, logger: silentLogger },
    });
    this.receiver
      .onError((notice) => surroundings.reported("failure", notice))
      .onDeadLetter((notice) => surroundings.reported("dead letter", { ...notice, attempt: notice.attempts }));
    for (const source of sources) {
      const handle = (handler: HandedEvent["handler"]) => (event: object, ctx: HandlerContext<unknown>) =>
        surroundings.handle({ process: this, source, handler, event, ctx });
      this.receiver.source(source).onAny(handle("on"));
      // Nothing that GitHub sends can be late, and what is late by position must have a handler.
      if (source === "billing" || (source === "messages" && course.takesLate))
        this.receiver.source(source).onLate(handle("late"));
    }
  }

  handle(source: SourceName, incoming: IncomingWebhook): Promise<Answer> {
    return this.receiver.source(source).handle(incoming);
  }

  get isDead(): boolean {
    return this.#state === "is dead";
  }

  get isStill(): boolean {
    return this.#state === "stands still";
  }

  /** An await in it: does not come back when the process is dead, and only later when it stands still. */
  async pass(where: string): Promise<void> {
    this.#surroundings.awaited(this, where);
    while (this.isStill) await new Promise<void>((resolve) => this.#missed.push(resolve));
    if (this.isDead) await new Promise<never>(() => {});
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimeout(resolve, ms));
  }

  /** @param isKnown - its machine has noticed: whoever opens the inbox next need not wait for its leases */
  die(isKnown: boolean): void {
    this.#state = "is dead";
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#listeners.clear();
    void this.#connection.cut(isKnown).catch(() => {});
  }

  standStill(): void {
    if (this.#state === "runs") this.#state = "stands still";
  }

  goOn(): void {
    if (this.#state !== "stands still") return;
    this.#state = "runs";
    for (const callback of this.#missed.splice(0)) callback();
  }

  /** Calls `listener` when another process has written. */
  onKnock(listener: () => void): () => void {
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  knocked(): void {
    this.#whenItRuns(() => {
      for (const listener of [...this.#listeners]) listener();
    });
  }

  #whenItRuns(callback: () => void): void {
    if (this.#state === "runs") callback();
    else if (this.isStill) this.#missed.push(() => this.#whenItRuns(callback));
  }

  #ownClock(): Clock {
    const { clock, wallClock } = this.#surroundings;
    return {
      now: wallClock,
      monotonic: () => clock.monotonic(),
      setTimeout: (callback, ms) => {
        let isCancelled = false;
        const timer = clock.setTimeout(() => {
          this.#timers.delete(timer);
          this.#whenItRuns(() => isCancelled || callback());
        }, ms);
        this.#timers.add(timer);
        const cancel = () => {
          isCancelled = true;
          timer.cancel();
          this.#timers.delete(timer);
        };
        return { cancel, keepAlive: () => {} };
      },
    };
  }
}

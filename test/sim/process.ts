/** A process of a world: a receiver on a connection of its own, which dies or stands still at any await, whoever is in it. */
import { createReceiver, type HandlerContext, type Receiver, type WebhookEvent } from "../../src/index.ts";
import type { Clock, Timer } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { TEST_SECRET } from "../../src/testing/index.ts";
import { connectionOf } from "./connection.ts";
import type { Course } from "./course.ts";
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
  handle(process: Process, event: WebhookEvent, ctx: HandlerContext<unknown>): unknown;
}

export class Process {
  readonly name: string;
  readonly receiver: Receiver<unknown>;
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

  constructor(name: string, connection: Connection, surroundings: Surroundings) {
    this.name = name;
    this.#surroundings = surroundings;
    this.#connection = connection;
    this.clock = this.#ownClock();
    const { course } = surroundings;
    const random = new Dice(course.seed, `backoff of ${name}`).next;
    this.receiver = createReceiver<unknown>({
      ...{ secrets: TEST_SECRET, store: connectionOf(this, connection.store, surroundings), ...course.receiver },
      ...{ clock: this.clock, random, logger: silentLogger },
    });
    const handle = (event: WebhookEvent, ctx: HandlerContext<unknown>) => surroundings.handle(this, event, ctx);
    this.receiver.onAny(handle);
    if (course.takesLate) this.receiver.onLate(handle);
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

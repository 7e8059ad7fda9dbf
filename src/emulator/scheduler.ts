/**
 * What is due when, on the emulator's time, and in which order it happens.
 *
 * Tasks start in the order of their time, and of their entry where that is equal. A task of a lane starts when the lane's earlier
 * one has ended; others overlap, which is what lets thousands of retries pass in seconds. Overlapping changes nothing that can
 * be seen: a task that runs can only bring work that is due `horizonMs` after its own time, and nothing later than that starts
 * before it has ended.
 */
import type { Clock, Timer } from "../internal/clock.ts";
import type { EmulatorTime } from "./clock.ts";
import { Heap } from "./heap.ts";

export interface Task {
  /** Epoch ms on the emulator's time; what lies in the past is due now. */
  readonly dueAt: number;
  /** Tasks of one lane never overlap. Without a lane, the task must be synchronous. */
  readonly lane?: string;
  /** `at`: when it happens, at least `dueAt`. Must not throw. */
  run(at: number): Promise<void> | void;
}

interface Entry {
  readonly task: Task;
  readonly order: number;
}

const MOST_AT_ONCE = 32;

export class Scheduler {
  readonly #clock: Clock;
  readonly #time: EmulatorTime;
  readonly #horizonMs: number;
  readonly #heap = new Heap<Entry>((a, b) =>
    a.task.dueAt === b.task.dueAt ? a.order < b.order : a.task.dueAt < b.task.dueAt,
  );
  /** The times of tasks under way, oldest first (tasks start in order). */
  readonly #running = new Set<{ readonly at: number }>();
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #idleWaiters = new Set<() => void>();
  #order = 0;
  #limit = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();
  #timer: Timer | null = null;
  #timerAt = 0;
  #driving = false;
  #closed = false;

  /** `horizonMs`: the least time between a task's start and anything it brings about later. */
  constructor(clock: Clock, time: EmulatorTime, horizonMs: number) {
    this.#clock = clock;
    this.#time = time;
    this.#horizonMs = horizonMs;
  }

  /** How many tasks wait for their time. */
  get waiting(): number {
    return this.#heap.size;
  }

  add(task: Task): void {
    this.#heap.push({ task, order: this.#order++ });
    this.#drive();
  }

  /** Forgets all tasks that have not started. */
  clear(): void {
    while (this.#heap.pop() !== undefined);
    this.#drive();
  }

  /** Moves time on by `ms`; resolves when all that came due has happened and ended. Calls take turns. */
  advance(ms: number): Promise<void> {
    const turn = this.#turn.then(async () => {
      const end = this.#time.now() + ms;
      this.#limit = end;
      await this.idle();
      this.#limit = Number.NEGATIVE_INFINITY;
      this.#time.raiseTo(end);
      this.#drive();
    });
    this.#turn = turn;
    return turn;
  }

  /** Resolves when nothing is due and nothing is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.add(resolve);
      this.#drive();
    });
  }

  /** Starts nothing more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.idle();
  }

  #drive(): void {
    if (this.#driving) return; // A synchronous task added another one: the loop below sees it.
    this.#driving = true;
    try {
      for (let next = this.#next(); next !== undefined; next = this.#next()) {
        this.#heap.pop();
        this.#start(next.task);
      }
    } finally {
      this.#driving = false;
    }
    this.#setTimer();
    if (this.#running.size === 0 && this.#next() === undefined) {
      const waiters = [...this.#idleWaiters];
      this.#idleWaiters.clear();
      for (const wake of waiters) wake();
    }
  }

  /** The next entry, when it may start now. */
  #next(): Entry | undefined {
    const entry = this.#heap.peek();
    if (entry === undefined || this.#closed || this.#running.size >= MOST_AT_ONCE) return undefined;
    const { dueAt } = entry.task;
    if (dueAt > Math.max(this.#limit, this.#time.now())) return undefined;
    const [oldest] = this.#running;
    return oldest !== undefined && dueAt >= oldest.at + this.#horizonMs ? undefined : entry;
  }

  #start(task: Task): void {
    this.#time.raiseTo(task.dueAt);
    const at = this.#time.rate === 0 ? task.dueAt : this.#time.now();
    if (task.lane === undefined) {
      task.run(at);
      return;
    }
    const { lane } = task;
    const entry = { at };
    this.#running.add(entry);
    const ended = (this.#lanes.get(lane) ?? Promise.resolve()).then(() => task.run(at));
    this.#lanes.set(lane, ended);
    const end = () => {
      this.#running.delete(entry);
      if (this.#lanes.get(lane) === ended) this.#lanes.delete(lane);
      this.#drive();
    };
    ended.then(end, end);
  }

  #setTimer(): void {
    const entry = this.#heap.peek();
    if (entry === undefined || this.#closed || this.#time.rate === 0) return;
    const { dueAt } = entry.task;
    if (this.#timer !== null && this.#timerAt <= dueAt) return;
    this.#timer?.cancel();
    this.#timerAt = dueAt;
    const wake = () => {
      this.#timer = null;
      this.#drive();
    };
    this.#timer = this.#clock.setTimeout(wake, Math.ceil((dueAt - this.#time.now()) / this.#time.rate));
  }
}

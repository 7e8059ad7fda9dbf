/**
 * What is due when, on the emulator's time, and in which order it happens.
 *
 * Tasks start in the order of their time, and of their place where that is equal. A task of a lane runs when the lane's earlier
 * one has ended; others overlap, which is what lets thousands of retries pass in seconds. Overlapping changes nothing that can
 * be seen: a task that runs can only bring work that is due `horizonMs` after its own time, and time moves no further than that
 * before it has ended; and what must not depend on who ends first is decided in `prepare`.
 */
import type { Clock, Timer } from "../internal/clock.ts";
import type { EmulatorTime } from "./clock.ts";
import { Heap } from "./heap.ts";

export interface Task {
  /** Epoch ms on the emulator's time; what lies in the past is due now. */
  readonly dueAt: number;
  /** Decides between tasks of the same time: the lower one first. From `nextPlace()`; default: behind all others. */
  readonly place?: number;
  /** Tasks of one lane never overlap. Without a lane, the task must be synchronous. */
  readonly lane?: string;
  /** Called in the order of the tasks, before this one waits for its lane. */
  prepare?(): void;
  /** `at`: when it happens, at least `dueAt`. A failure is reported, and is this task's end. */
  run(at: number): Promise<void> | void;
  /** Called when the task is forgotten and will not run. Must not throw. */
  dropped?(): void;
}

export interface SchedulerOptions {
  /** The least time between a task's start and anything it brings about later. */
  readonly horizonMs: number;
  /** Told what a task threw. Must not throw itself. */
  readonly onFailure: (error: unknown) => void;
}

interface Entry {
  readonly task: Task;
  readonly place: number;
}

/** A task of a lane from its start to its end. */
interface Run {
  readonly task: Task;
  readonly at: number;
  state: "waiting" | "running" | "dropped";
  ended: Promise<void>;
}

const MOST_AT_ONCE = 32;

export class Scheduler {
  readonly #clock: Clock;
  readonly #time: EmulatorTime;
  readonly #options: SchedulerOptions;
  readonly #heap = new Heap<Entry>((a, b) =>
    a.task.dueAt === b.task.dueAt ? a.place < b.place : a.task.dueAt < b.task.dueAt,
  );
  /** Oldest first: tasks start in the order of time. */
  readonly #runs = new Set<Run>();
  /** The newest run of each lane. */
  readonly #lanes = new Map<string, Run>();
  #waiters: (() => void)[] = [];
  #place = 0;
  #limit = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();
  #timer: Timer | null = null;
  /** On the monotonic clock: the emulator's time may jump past anything. */
  #timerAt = 0;
  #driving = false;
  #closed = false;

  constructor(clock: Clock, time: EmulatorTime, options: SchedulerOptions) {
    this.#clock = clock;
    this.#time = time;
    this.#options = options;
  }

  /** How many tasks wait for their time. */
  get waiting(): number {
    return this.#heap.size;
  }

  /** A place behind all others, to be kept by something whose tasks follow each other, such as retries. */
  nextPlace(): number {
    return this.#place++;
  }

  /** After `close()`, the task is dropped. */
  add(task: Task): void {
    if (this.#closed) {
      task.dropped?.();
      return;
    }
    this.#heap.push({ task, place: task.place ?? this.nextPlace() });
    this.#drive();
  }

  /** Forgets all tasks that do not run yet. */
  clear(): void {
    for (const { task } of this.#heap.drain()) task.dropped?.();
    for (const run of this.#runs) {
      if (run.state !== "waiting") continue;
      run.state = "dropped";
      run.task.dropped?.();
    }
    this.#drive();
  }

  /** Moves time on by `ms`; resolves when all that came due has happened and ended. Calls take turns. */
  advance(ms: number): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      const end = this.#time.now() + ms;
      this.#limit = end;
      // Whoever waited as well may have brought new work before this goes on.
      do await this.idle();
      while (!this.#isQuiet());
      this.#limit = Number.NEGATIVE_INFINITY;
      // Closed in between, what is due until then has not happened: a kept state takes it up at the right time.
      if (!this.#closed) this.#time.raiseTo(end);
      this.#drive();
    });
    return this.#turn;
  }

  /** Resolves when nothing is due and nothing is under way. */
  async idle(): Promise<void> {
    this.#drive();
    while (!this.#isQuiet()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Starts nothing more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.clear();
    await this.idle();
  }

  #isQuiet(): boolean {
    return this.#runs.size === 0 && this.#next() === undefined;
  }

  #drive(): void {
    if (this.#driving) return; // A synchronous task added another one: the loop below sees it.
    this.#driving = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#heap.pop();
      this.#start(next.task);
    }
    this.#driving = false;
    this.#setTimer();
    if (!this.#isQuiet()) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }

  /** The next entry, when it may start now. */
  #next(): Entry | undefined {
    const entry = this.#heap.peek();
    if (entry === undefined || this.#closed || this.#runs.size >= MOST_AT_ONCE) return undefined;
    const { dueAt } = entry.task;
    const now = this.#time.now();
    if (dueAt <= now) return entry;
    const [oldest] = this.#runs;
    const furthest =
      oldest === undefined ? this.#limit : Math.min(this.#limit, oldest.at + this.#options.horizonMs - 1);
    return dueAt <= furthest ? entry : undefined;
  }

  #start(task: Task): void {
    this.#time.raiseTo(task.dueAt);
    const at = this.#time.now();
    const { lane } = task;
    if (lane === undefined) {
      this.#guard(() => task.run(at));
      return;
    }
    const run: Run = { task, at, state: "waiting", ended: Promise.resolve() };
    this.#runs.add(run);
    this.#guard(() => task.prepare?.());
    run.ended = this.#perform(run, lane, this.#lanes.get(lane)?.ended);
    this.#lanes.set(lane, run);
  }

  async #perform(run: Run, lane: string, earlier: Promise<void> | undefined): Promise<void> {
    await earlier;
    if (run.state === "waiting") {
      run.state = "running";
      // Where time stands still it may be that of a later task by now, depending on how long the lane's earlier one took.
      const at = this.#time.rate === 0 ? run.at : this.#time.now();
      try {
        await run.task.run(at);
      } catch (error) {
        this.#options.onFailure(error);
      }
    }
    this.#runs.delete(run);
    if (this.#lanes.get(lane) === run) this.#lanes.delete(lane);
    this.#drive();
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.onFailure(error);
    }
  }

  #setTimer(): void {
    const entry = this.#heap.peek();
    // With all hands full, the end of a run looks for the next task.
    if (entry === undefined || this.#closed || this.#time.rate === 0 || this.#runs.size >= MOST_AT_ONCE) return;
    const waitMs = Math.ceil(Math.max(0, entry.task.dueAt - this.#time.now()) / this.#time.rate);
    const timerAt = this.#clock.monotonic() + waitMs;
    if (this.#timer !== null && this.#timerAt <= timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = timerAt;
    const wake = () => {
      this.#timer = null;
      this.#drive();
    };
    this.#timer = this.#clock.setTimeout(wake, waitMs);
  }
}

/**
 * Which work is due when, on the emulator's time, and in which order it happens.
 *
 * Tasks start in the order of their time, and of their place where that is equal. A task of a lane runs when the lane's earlier
 * one has ended; others that are due at the same time overlap. While time is moved it stays where it is until what it brought
 * has ended, so that a webhook that calls the API sees its own time. Retries may run ahead of each other,
 * which is what lets thousands of them pass in seconds: a task brings nothing that is due sooner than `horizonMs` after its own
 * time, and time moves no further than that before it has ended. What must not depend on who ends first is decided in `prepare`.
 */

import type { Clock, Timer } from "../../internal/clock.ts";
import type { EmulatorTime } from "./clock.ts";

export interface SchedulerOptions {
  /** The least time between a task's start and anything it brings about later. */
  readonly horizonMs: number;
  /** Told what a task threw. Must not throw itself. */
  readonly onFailure: (error: unknown) => void;
  /** Tasks of lanes under way or waiting for their lane: a bound for memory alone. Default 50,000. */
  readonly mostAtOnce?: number;
}

/** A task of a lane from its start to its end. */
interface Run {
  readonly task: Task;
  /** Moved time waits for it. */
  holdsTime: boolean;
  readonly at: number;
  /** On the monotonic clock. */
  readonly startedAt: number;
  state: "waiting" | "running" | "dropped";
  ended: Promise<void>;
}

interface Waiter {
  isDone(): boolean;
  /** Called in the same turn in which it is found done. */
  done(): void;
}

const MOST_AT_ONCE = 50_000;

export class Scheduler {
  readonly #clock: Clock;
  readonly #time: EmulatorTime;
  readonly #options: Required<SchedulerOptions>;
  readonly #agenda = new Agenda();
  /** Oldest first: tasks start in the order of time. */
  readonly #runs = new Set<Run>();
  /** Of these, how many hold time against everybody, and how many only against tasks that do not allow to be ahead. */
  #holding = 0;
  #holdingLoosely = 0;
  /** The newest run of each lane. */
  readonly #lanes = new Map<string, Run>();
  #waiters: Waiter[] = [];
  /** How far time is being moved. */
  #limit = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();
  #timer: Timer | null = null;
  /** On the monotonic clock: the emulator's time may jump past anything. */
  #timerAt = 0;
  #driving = false;
  /** Counts the calls of `advance`. */
  #advance = 0;
  /** Of the synchronous task that runs now. */
  #stepBroughtIn = 0;
  #closed = false;

  constructor(clock: Clock, time: EmulatorTime, options: SchedulerOptions) {
    this.#clock = clock;
    this.#time = time;
    this.#options = { mostAtOnce: MOST_AT_ONCE, ...options };
  }

  /** How many tasks wait for their time. */
  get waiting(): number {
    return this.#agenda.size;
  }

  /** A place behind all others, to be kept by something whose tasks follow each other, such as retries. */
  nextPlace(): number {
    return this.#agenda.nextPlace();
  }

  /** After `close()`, the task is dropped. */
  add(task: Task): Cancel {
    if (this.#closed) {
      task.dropped?.();
      return () => {};
    }
    const cancel = this.#agenda.add({ task, broughtIn: this.#broughtIn(task) });
    this.#drive();
    return cancel;
  }

  /** Forgets all tasks that do not run yet. */
  clear(): void {
    for (const { task } of this.#agenda.drain()) task.dropped?.();
    for (const run of this.#runs) {
      // What runs belongs to what was there before: nothing new waits for it.
      this.#hold(run, -1);
      run.holdsTime = false;
      if (run.state !== "waiting") continue;
      run.state = "dropped";
      run.task.dropped?.();
    }
    this.#lanes.clear();
    this.#drive();
  }

  /** Moves time on by `ms`; resolves when all that came due has happened and ended. Calls take turns. */
  advance(ms: number): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      const end = this.#time.now() + ms;
      this.#limit = end;
      this.#advance += 1;
      await this.#until(
        () => !this.#canBringUntil(end),
        () => {
          this.#limit = Number.NEGATIVE_INFINITY;
          // If it was closed in between, due work has not happened: an import of the state does it at the right time.
          if (!this.#closed) this.#time.raiseTo(end);
        },
      );
      this.#drive();
      await Promise.all([...this.#runs].map(({ ended }) => ended));
    });
    return this.#turn;
  }

  /** Resolves when nothing is due and nothing is under way. */
  async idle(): Promise<void> {
    // Other waiters may have added work before this continues.
    while (!this.#isQuiet()) await this.#until(() => this.#isQuiet());
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

  /** Whether something can still come due until `end`, besides what callers bring. */
  #canBringUntil(end: number): boolean {
    if (this.#closed) return this.#runs.size > 0;
    if (this.#holding + this.#holdingLoosely > 0) return true;
    const first = this.#agenda.first();
    const [oldest] = this.#runs;
    return (first !== undefined && first.task.dueAt <= end) || (oldest !== undefined && this.#horizonOf(oldest) < end);
  }

  /**
   * What a call brings while time is being moved must not hold it then, and neither must what follows from that: under steady
   * calls time would hardly go on. Retries do: they come after their attempts, when nobody can tell any more who brought them.
   */
  #broughtIn({ allowsAhead = false }: Task): number {
    if (this.#driving) return this.#stepBroughtIn;
    return allowsAhead || this.#limit === Number.NEGATIVE_INFINITY ? 0 : this.#advance;
  }

  #until(isDone: () => boolean, then: () => void = () => {}): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        then();
        resolve();
      };
      this.#waiters.push({ isDone, done });
      this.#drive();
    });
  }

  #drive(): void {
    if (this.#driving) return; // A synchronous task added another one: the loop below sees it.
    this.#driving = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#agenda.removeFirst();
      this.#start(next);
    }
    this.#driving = false;
    this.#passCalls();
    this.#setTimer();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) {
      if (waiter.isDone()) waiter.done();
      else this.#waiters.push(waiter);
    }
  }

  /** The next entry, when it may start now. */
  #next(): Entry | undefined {
    const entry = this.#agenda.first();
    if (entry === undefined || this.#closed) return undefined;
    const { task } = entry;
    if (task.lane !== undefined && this.#runs.size >= this.#options.mostAtOnce) return undefined;
    return task.dueAt <= this.#time.now() || task.dueAt <= this.#furthestFor(task) ? entry : undefined;
  }

  /** How far time may be moved for a task. */
  #furthestFor({ allowsAhead = false }: Task): number {
    const isHeld = this.#holding > 0 || (this.#holdingLoosely > 0 && !allowsAhead);
    const [oldest] = this.#runs;
    if (isHeld) return Number.NEGATIVE_INFINITY;
    return oldest === undefined ? this.#limit : Math.min(this.#limit, this.#horizonOf(oldest));
  }

  /** The last moment at which nothing can be due that a run may still bring. */
  #horizonOf({ at }: Run): number {
    return at + this.#options.horizonMs - 1;
  }

  /** With nothing but calls' work under way, time goes on as far as that allows, so that newer work allows more. */
  #passCalls(): void {
    const [oldest] = this.#runs;
    if (oldest === undefined || this.#closed || this.#holding + this.#holdingLoosely > 0) return;
    const next = this.#agenda.first()?.task.dueAt ?? Number.POSITIVE_INFINITY;
    this.#time.raiseTo(Math.min(this.#limit, this.#horizonOf(oldest), next));
  }

  #start({ task, broughtIn }: Entry): void {
    this.#time.raiseTo(task.dueAt);
    const at = this.#time.now();
    const { lane } = task;
    this.#stepBroughtIn = broughtIn;
    if (lane === undefined) {
      this.#guard(() => task.run(at));
      return;
    }
    const startedAt = this.#clock.monotonic();
    const holdsTime = broughtIn !== this.#advance || broughtIn === 0;
    const run: Run = { task, holdsTime, at, startedAt, state: "waiting", ended: Promise.resolve() };
    this.#runs.add(run);
    this.#hold(run, 1);
    this.#guard(() => task.prepare?.());
    run.ended = this.#perform(run, lane, this.#lanes.get(lane)?.ended);
    this.#lanes.set(lane, run);
  }

  #hold({ holdsTime, task: { allowsAhead = false } }: Run, count: 1 | -1): void {
    if (!holdsTime) return;
    if (allowsAhead) this.#holdingLoosely += count;
    else this.#holding += count;
  }

  async #perform(run: Run, lane: string, earlier: Promise<void> | undefined): Promise<void> {
    await earlier;
    if (run.state === "waiting") {
      run.state = "running";
      // Not what time is now: it may have been moved for others since.
      const waitedMs = Math.floor(this.#time.rate * (this.#clock.monotonic() - run.startedAt));
      try {
        await run.task.run(run.at + waitedMs);
      } catch (error) {
        this.#options.onFailure(error);
      }
    }
    this.#runs.delete(run);
    this.#hold(run, -1);
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
    const entry = this.#agenda.first();
    // With all hands full, the end of a run looks for the next task.
    if (entry === undefined || this.#closed || this.#time.rate === 0 || this.#runs.size >= this.#options.mostAtOnce)
      return;
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

// What is to be done when: tasks by their time and place, until they are taken out or cancelled.

/** Something that happens at a moment of the emulator's time. */
interface Task {
  /** Epoch ms on the emulator's time; what lies in the past is due now. */
  readonly dueAt: number;
  /** Decides between tasks of the same time: the lower one first. From `nextPlace()`; default: behind all others. */
  readonly place?: number;
  /** Tasks of one lane never overlap, but one that still runs after `clear()`. Without a lane, the task must be synchronous. */
  readonly lane?: string;
  /** Moved time may pass it while it runs, to others that allow the same. Default false. */
  readonly allowsAhead?: boolean;
  /** Called in the order of the tasks, before this one waits for its lane. */
  prepare?(): void;
  /** `at`: when it happens, at least `dueAt`. A failure is reported, and is this task's end. */
  run(at: number): Promise<void> | void;
  /** Called when the task is forgotten and will not run, but not for its own cancelling. Must not throw. */
  dropped?(): void;
}

/** Forgets a task that has not started yet; afterwards it does nothing. */
export type Cancel = () => void;

interface Entry {
  readonly task: Task;
  /** The number of the `advance` during which a call brought it, or something that it follows from; 0 for all else. */
  readonly broughtIn: number;
}

interface Slot {
  /** Null once it was taken or cancelled: a heap gives up nothing from its middle. */
  entry: Entry | null;
  readonly dueAt: number;
  readonly place: number;
}

class Agenda {
  readonly #heap = new Heap<Slot>((a, b) => (a.dueAt === b.dueAt ? a.place < b.place : a.dueAt < b.dueAt));
  #size = 0;
  #place = 0;

  /** How many tasks wait for their time. */
  get size(): number {
    return this.#size;
  }

  nextPlace(): number {
    return this.#place++;
  }

  add(entry: Entry): Cancel {
    const { dueAt, place = this.nextPlace() } = entry.task;
    const slot: Slot = { entry, dueAt, place };
    this.#heap.push(slot);
    this.#size += 1;
    return () => void this.#take(slot);
  }

  /** The first entry. */
  first(): Entry | undefined {
    let slot = this.#heap.peek();
    while (slot !== undefined && slot.entry === null) {
      this.#heap.pop();
      slot = this.#heap.peek();
    }
    return slot?.entry ?? undefined;
  }

  /** Takes the first entry out. */
  removeFirst(): void {
    const slot = this.#heap.pop();
    if (slot !== undefined) this.#take(slot);
  }

  /** Takes everything out, in no order. */
  drain(): Entry[] {
    return this.#heap.drain().flatMap((slot) => this.#take(slot) ?? []);
  }

  #take(slot: Slot): Entry | null {
    const { entry } = slot;
    if (entry !== null) this.#size -= 1;
    slot.entry = null;
    return entry;
  }
}

// A binary heap: the smallest element first, in O(log n).

export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  /** Empties the heap; what was in it, in no particular order. */
  drain(): T[] {
    return this.#items.splice(0);
  }

  push(item: T): void {
    this.#items.push(item);
    for (let i = this.#items.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!this.#swapIfBefore(i, parent)) return;
      i = parent;
    }
  }

  pop(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return first;
    this.#items[0] = last;
    for (let i = 0; ; ) {
      const left = 2 * i + 1;
      const right = left + 1;
      const child = right < this.#items.length && this.#before(right, left) ? right : left;
      if (child >= this.#items.length || !this.#swapIfBefore(child, i)) return first;
      i = child;
    }
  }

  #before(a: number, b: number): boolean {
    return this.#isBefore(this.#items[a] as T, this.#items[b] as T);
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#before(a, b)) return false;
    [this.#items[a], this.#items[b]] = [this.#items[b] as T, this.#items[a] as T];
    return true;
  }
}

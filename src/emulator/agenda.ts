/** What is to be done when: tasks by their time and place, until they are taken out or cancelled. */
import { Heap } from "./heap.ts";

/** Something that happens at a moment of the emulator's time. */
export interface Task {
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

export interface Entry {
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

export class Agenda {
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

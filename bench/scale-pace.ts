/** How fast processes do their work, each on the inbox it is given, and what an event takes of the processor. */
import { setTimeout as wait } from "node:timers/promises";
import { startChild } from "./child.ts";
import { processorOfAll } from "./processor.ts";

/**
 * `handle`: a receiver whose handlers wait, as those that call others do. `accept`: batches as 64 connections make them, two at
 * a time, as a receiver commits them under load; of Postgres only.
 */
export type Work = "handle" | "accept";
export type WorkerQuestion = "progress" | "stop";

export interface Progress {
  readonly done: number;
  /** Seconds of the process's processor time. */
  readonly processor: number;
}

/** A receiver's handlers at once, and how long each waits. */
export const HANDLERS = 32;
export const WAIT_MS = 100;
export const BATCH = 64;
/** Turns of a receiver that are under way at once, on a store that takes two. */
export const TURNS = 2;

const ROUNDS = 3;
/** While the code of a process that has just started is still being compiled, an event takes two fifths more of it. */
const WARM_UP_MS = 3_000;
const MEASURED_MS = 2_500;
/** How long a process is at work in all rounds; starting and stopping takes a second or two. */
export const WORKING_MS = ROUNDS * (WARM_UP_MS + MEASURED_MS + 2_500);

export interface Inbox {
  readonly location: string;
  /** Seconds of processor time that its server has used. */
  serverProcessor(): number;
}

/** What processes did in one round. */
export interface Pace {
  readonly perSecond: number;
  /** Seconds of processor time for an event, of the processes and of the servers. */
  readonly workers: number;
  readonly servers: number;
  /** Cores that were busy with something else, which a result has to be read with. */
  readonly others: number;
}

/** An inbox for each of the processes that work at once, the same one where they share it. */
export type Inboxes = readonly Inbox[];

/**
 * What the processes of each name did, round by round. Each round takes all of them in turn, and every second one the other way
 * round: who comes first finds another machine than who comes after.
 */
export async function pacesOf<Name extends string>(
  work: Work,
  processes: Readonly<Record<Name, Inboxes>>,
): Promise<Readonly<Record<Name, readonly Pace[]>>> {
  const names = Object.keys(processes) as Name[];
  // Its names are those of `processes`.
  const paces = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Pace[]>;
  for (let round = 0; round < ROUNDS; round++) {
    const inOrder = round % 2 === 0 ? names : names.toReversed();
    for (const name of inOrder) paces[name].push(await measure(work, processes[name]));
  }
  return paces;
}

async function measure(work: Work, inboxes: Inboxes): Promise<Pace> {
  const workers = inboxes.map(({ location }) => startChild("scale-worker", [work, location]));
  const askAll = (ask: WorkerQuestion) => Promise.all(workers.map((worker) => worker.ask<Progress>({ ask })));
  const look = async () => {
    const progress = await askAll("progress");
    return {
      done: sum(progress.map(({ done }) => done)),
      workers: sum(progress.map(({ processor }) => processor)),
      servers: sum([...new Set(inboxes)].map((inbox) => inbox.serverProcessor())),
      all: processorOfAll(),
      at: performance.now(),
    };
  };
  try {
    await look();
    await wait(WARM_UP_MS);
    const before = await look();
    await wait(MEASURED_MS);
    const after = await look();
    const since = (what: keyof typeof before) => after[what] - before[what];
    const [done, seconds] = [since("done"), since("at") / 1000];
    if (done === 0) throw new Error("The processes had nothing to do.");
    await askAll("stop");
    return {
      perSecond: done / seconds,
      workers: since("workers") / done,
      servers: since("servers") / done,
      others: (since("all") - since("workers") - since("servers")) / seconds,
    };
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A process's share: worlds, and the doors of the inspector. */
import { setTimeout as sleep } from "node:timers/promises";
import { knockAtDoors } from "./doors.ts";
import { type Counts, runWorld } from "./world.ts";

export interface Share {
  readonly seeds: readonly number[];
  /** It also knocks at the doors. */
  readonly knocks: boolean;
}

export interface Result {
  readonly problems: readonly string[];
  readonly counts: readonly Counts[];
  /** To the doors. */
  readonly requests: number;
}

/** Of a world, on a busy machine too. */
const LONGEST_MS = 60_000;

export async function runShare({ seeds, knocks }: Share): Promise<Result> {
  const problems: string[] = [];
  const counts: Counts[] = [];
  const doors = knocks ? await inTime(knockAtDoors()) : { problems: [], requests: 0 };
  problems.push(...(doors?.problems ?? ["the inspector does not answer"]));
  for (const seed of seeds) {
    const world = await inTime(runWorld(seed));
    problems.push(...(world?.problems ?? ["it does not end"]).map((problem) => `seed ${seed}: ${problem}`));
    if (world === null) break;
    counts.push(world.counts);
  }
  return { problems, counts, requests: doors?.requests ?? 0 };
}

/** Null when it takes too long. */
function inTime<T>(work: Promise<T>): Promise<T | null> {
  const stop = new AbortController();
  const late = sleep(LONGEST_MS, null, { signal: stop.signal }).catch(() => null);
  return Promise.race([work, late]).finally(() => stop.abort());
}

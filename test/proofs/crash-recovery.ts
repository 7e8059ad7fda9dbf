/** How soon receivers are ready after a kill, by the clock and by the processor, and what is too slow. */
import { availableParallelism, loadavg } from "node:os";
import type { Ready } from "./child.ts";

/** Of the processor, to open the inbox, whatever else runs: judged in every opening. */
const MOST_PROCESSOR_MS = 500;
/** One sync of a disk that others write to can take seconds, so the slowest of so many openings is not judged by the clock. */
const OPENINGS_WITH_ONE_SLOW = 50;

export interface Recovery {
  readonly slowestMs: number;
  /** Of those that are judged by the clock. */
  readonly slowestJudgedMs: number;
  readonly mostProcessorMs: number;
}

export function recoveryOf(openings: readonly Pick<Ready, "recoveryMs" | "processorMs">[]): Recovery {
  const slowestFirst = openings.map(({ recoveryMs }) => recoveryMs).sort((a, b) => b - a);
  const [slowestMs = 0] = slowestFirst;
  const leftOut = Math.ceil(openings.length / OPENINGS_WITH_ONE_SLOW);
  return {
    slowestMs,
    slowestJudgedMs: slowestFirst[leftOut] ?? 0,
    mostProcessorMs: Math.max(0, ...openings.map(({ processorMs }) => processorMs)),
  };
}

/** How long it may take to open an inbox; longer where so much else runs that every program waits for the others. */
export function mostRecoveryMs(): number {
  const [load = 0] = loadavg();
  return load > 2 * availableParallelism() ? 5_000 : 1_000;
}

/** A line for each way in which receivers were ready too late. */
export function tooSlow({ slowestJudgedMs, mostProcessorMs }: Recovery, mostMs: number): string[] {
  const problems: string[] = [];
  if (slowestJudgedMs > mostMs) {
    problems.push(`more than one process in ${OPENINGS_WITH_ONE_SLOW} was ready only after ${mostMs} ms`);
  }
  if (mostProcessorMs > MOST_PROCESSOR_MS) {
    problems.push(`an opening took ${mostProcessorMs.toFixed(0)} ms of the processor`);
  }
  return problems;
}

/** In words, for a line of progress. */
export function recoveryLine({ slowestMs, slowestJudgedMs, mostProcessorMs }: Recovery): string {
  const judged = `${slowestJudgedMs.toFixed(0)} ms without one in ${OPENINGS_WITH_ONE_SLOW}`;
  return `slowest recovery ${slowestMs.toFixed(0)} ms (${judged}), opening ${mostProcessorMs.toFixed(0)} ms of the processor`;
}

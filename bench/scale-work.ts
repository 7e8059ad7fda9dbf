/** What `scale-pace.ts` has its processes do, and what it asks them. */

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

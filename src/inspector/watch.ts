/** Looks at the inbox once a second while somebody watches, once for all who do, and keeps what it saw for the charts. */
import type { History, Overview, Sample } from "./api.ts";

/** What is told to everybody who watches; who they are is added for each. */
export interface Look {
  /**
   * Grows when a gauge or a counter of the inbox moved, and by `touch`. An attempt that begins moves none, nor do some acts of other
   * processes: they are not noticed.
   */
  readonly changed: number;
  readonly overview: Omit<Overview, "access" | "by">;
  readonly sample: Sample;
}

export interface Watch {
  /** What was seen less than a second ago, or what is seen now. */
  look(): Promise<Look>;
  history(): History;
  /** Each look from now on, until `signal` aborts. Looking ends a while after the last one who does. */
  looks(signal: AbortSignal): AsyncIterable<Look>;
  /** How many `looks` are under way. */
  readonly watching: number;
  /** Something was done to the inbox: the next look is not waited for, and counts as a change. */
  touch(): void;
  close(): void;
}

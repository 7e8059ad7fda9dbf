/** What the processes of a soak tell each other. */

export interface ServerOptions {
  readonly path: string;
  /** The control: keeps every event that it handles, and its body. */
  readonly leaks: boolean;
}

/** What is looked at, when nothing is under way. */
export interface Sample {
  /** After a full collection, with buffers, MiB. */
  readonly heap: number;
  readonly rss: number;
  readonly descriptors: number;
  /** How late the event loop was since the last sample, at the 99th percentile, ms. */
  readonly delayMs: number;
}

export interface Orders {
  readonly port: number;
  /** Deliveries a second; null: as many as are answered. */
  readonly perSecond: number | null;
  /** Deliveries; somewhat more are sent, so that no message is left without its end. */
  readonly count: number;
  /** The wall clock of the day. */
  readonly aheadMs: number;
  /** Part of the messages' ids. */
  readonly day: number;
}

/** What became of what a sender sent. */
export interface Sent {
  readonly sent: readonly string[];
  readonly forged: readonly string[];
  readonly acknowledged: readonly string[];
  /** Forged ones that were answered with 401. */
  readonly refused: number;
  /** Other answers than 200 to a signed delivery and 401 to a forged one. */
  readonly wrong: readonly string[];
  /** Answers, those to repeats among them. */
  readonly answered: number;
  /** From the first delivery to the last answer, ms. */
  readonly tookMs: number;
}

/** How it is written down why mutants may live. */

/** What was written, and what it became, after Stryker's name for the change. */
type Change = readonly [mutator: string, code: string, becomes: string];

export interface Reason {
  readonly file: string;
  readonly reason: string;
  readonly changes: readonly Change[];
}

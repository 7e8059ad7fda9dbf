/** What a proof programme is: one claim, put to the test for as long as it takes. */

export interface Programme {
  /** As in `npm run prove -- NAME`. */
  readonly name: string;
  /** The claim, in a sentence. */
  readonly what: string;
  /** It has a form that is small enough to be run for each planted bug: the same checks on less, without the controls. */
  readonly hasSmallForm?: true;
  /** Part of its claim is a time, or what the machine can do: nothing may run beside it. */
  readonly needsQuiet?: true;
  run(terms: Terms): Promise<Proof>;
}

export interface Terms {
  /** The long form instead of the short one. */
  readonly full: boolean;
  /** The small form, of a programme that has one. */
  readonly small: boolean;
  /** Prints a line of progress. */
  say(line: string): void;
}

export interface Proof {
  /** How much was looked at; zero proves nothing. */
  readonly count: number;
  readonly unit: string;
  /** Empty when the claim held. */
  readonly problems: readonly string[];
}

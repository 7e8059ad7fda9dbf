/** By whose rules an inbox is kept: its receiver says them at each open, everybody else takes them as they were recorded. */
import { SetupError } from "../errors.ts";

/** What a receiver says of its inbox, recorded at each of its opens. */
export interface InboxRules {
  /** The receiver this inbox belongs to; recorded at the first open, and another name is refused (`wrong_receiver_name`). */
  readonly name: string;
  /** The sequence a message begins with; with `"any"` the first arrival is taken for the first. */
  readonly firstSequence: number | "any";
  /**
   * Past and future tolerance of timestamps together, in milliseconds: how long a delivery can be replayed. Pruning follows it
   * wherever it is done: no identity goes before this and a day.
   */
  readonly toleranceMs: number;
}

/** Opened by somebody who is no receiver: an operator, a page, a copy. */
export type AskedRules = InboxRules | "recorded";

/**
 * The rules that apply from now on.
 *
 * @param recorded - null when no receiver has opened the inbox yet
 * @throws SetupError `wrong_receiver_name`, `no_inbox`
 */
export function rulesFor(asked: AskedRules, recorded: InboxRules | null, location: string): InboxRules {
  if (asked === "recorded") {
    if (recorded === null) throw noInbox(location);
    return recorded;
  }
  if (recorded === null || recorded.name === asked.name) return asked;
  throw new SetupError(
    "wrong_receiver_name",
    `${location} belongs to a receiver of another name: give each receiver an inbox of its own, or keep the name.`,
  );
}

/** Only a receiver makes an inbox: to anybody else, one that is not there is a wrong path. */
export function noInbox(location: string): SetupError {
  const message = `There is no inbox at ${location}: check the path or the address. A receiver makes one when it is started.`;
  return new SetupError("no_inbox", message);
}

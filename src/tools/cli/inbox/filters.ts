/** Filters of events as flags, the same for looking at them and for acting on them. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { EventState, Outcome } from "../../../inbox/record.ts";
import { systemClock } from "../../../internal/clock.ts";
import type { BulkQuery } from "../../../receiver/bulk.ts";
import { OUTCOMES } from "../../../receiver/queries.ts";
import { duration, instantOf, wholeNumber } from "../flags.ts";

export interface FilterFlags {
  readonly state?: readonly EventState[];
  readonly outcome?: Outcome;
  readonly late?: true;
  readonly conflict?: true;
  readonly type?: string;
  readonly source?: string;
  readonly tenant?: string;
  readonly lane?: string;
  readonly id?: string;
  readonly reference?: string;
  readonly number?: string;
  readonly error?: string;
  /** Epoch milliseconds. */
  readonly since?: number;
  readonly olderThan?: number;
}

export function addFilterFlags(command: Command, states: readonly EventState[]): Command {
  return command
    .addOption(choices("--state <state>", "events in this state; may be given again", states))
    .addOption(new Option("--outcome <outcome>", "done events with this outcome").choices(OUTCOMES))
    .option("--late", "events that came after their place had passed")
    .option("--conflict", "events of which a repeat said something else")
    .option("--type <type>", "events of this type: message.failed")
    .option("--source <name>", "events of this source, by its name in the receiver")
    .option("--tenant <id>", "events of this tenant; of the messaging service, of this API client")
    .option("--lane <name>", "events of the lane with this name, such as the id of an outbound message")
    .option("--id <id>", "events that their source gave this id, such as that of an inbound message")
    .option("--reference <text>", "events of lanes with this external reference")
    .option("--number <number>", "events with this other party's number, in full (others on this machine may see it)")
    .option("--error <code>", "events whose last error has this code")
    .option("--since <when>", "accepted since then: 2h (ago), or 2026-01-01T00:00:00Z", moment)
    .option("--older-than <age>", "accepted longer ago: 90m", duration);
}

/** Those that were given, and no others. */
export function filterOf(flags: FilterFlags): BulkQuery {
  const { state, outcome, late, conflict, type, source, tenant, lane, id } = flags;
  const { reference, number, error, since, olderThan } = flags;
  return {
    ...(state && { states: state }),
    ...(outcome && { outcome }),
    ...(late && { late }),
    ...(conflict && { conflict }),
    ...(type !== undefined && { eventType: type }),
    ...(source !== undefined && { source }),
    ...(tenant !== undefined && { tenant }),
    ...(lane !== undefined && { lane }),
    ...(id !== undefined && { id }),
    ...(reference !== undefined && { externalReference: reference }),
    ...(number !== undefined && { peer: number }),
    ...(error !== undefined && { errorCode: error }),
    ...(since !== undefined && { acceptedFrom: since }),
    ...(olderThan !== undefined && { acceptedTo: systemClock.now() - olderThan }),
  };
}

/** An option with a fixed set of words that may be given several times. */
export function choices(flags: string, description: string, words: readonly string[]): Option {
  const option = new Option(flags, `${description} (${words.join(", ")})`);
  return option.argParser((text: string, before: readonly string[] = []) => {
    if (words.includes(text)) return [...before, text];
    throw new InvalidArgumentError(`Allowed are ${words.join(", ")}.`);
  });
}

/** Ids as arguments. */
export function ids(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, wholeNumber(1)(text)];
}

/** An age, or an instant; in epoch milliseconds. */
function moment(text: string): number {
  if (/^\d+(?:\.\d+)?(?:ms|s|m|h|d)$/.test(text)) return systemClock.now() - duration(text);
  const value = instantOf(text);
  if (value !== undefined) return value;
  throw new InvalidArgumentError("Write how long ago, such as 2h or 7d, or a time such as 2026-01-01T00:00:00Z.");
}

export interface PageFlags {
  readonly limit: number;
  readonly after?: number;
}

const LIMIT = 50;

export function addPageFlags(command: Command, noun: string): Command {
  return command
    .option("--limit <number>", `at most this many ${noun}, 1 to 1000`, wholeNumber(1, 1_000), LIMIT)
    .option("--after <id>", "where the page before ended", wholeNumber(1));
}

export function pageOf({ limit, after }: PageFlags) {
  return after === undefined ? { limit } : { limit, after };
}

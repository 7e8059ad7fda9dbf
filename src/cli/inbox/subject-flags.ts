/** Whom a request for access or erasure is about, as flags. */
import type { Command } from "commander";
import type { Subject } from "../../inbox/subject.ts";
import { maskNumbers } from "../../internal/logger.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";

export interface SubjectFlags {
  readonly number?: string;
  readonly message?: string;
}

export function addSubjectFlags(command: Command): Command {
  return command
    .option("--number <number>", "a person, by their number as it was delivered: +15550100002")
    .option("--message <id>", "one message");
}

/** @throws CommandError unless one of them was given */
export function subjectOf({ number, message }: SubjectFlags): Subject {
  if ((number === undefined) === (message === undefined))
    throw new CommandError("Say about whom or what: --number NUMBER or --message ID.", USAGE_MISTAKE);
  return number === undefined ? { messageId: message ?? "" } : { peer: number };
}

/** For a question. */
export function subjectText(subject: Subject): string {
  return "peer" in subject ? `the number ${maskNumbers(subject.peer)}` : `the message ${subject.messageId}`;
}

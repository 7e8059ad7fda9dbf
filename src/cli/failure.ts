/** How a command ends that cannot do what it was asked: a line on standard error, and an exit code. */
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { OncehookError, SetupError } from "../errors.ts";

/** 0 is success, 128 and more a signal's. It could not be done. */
export const FAILURE = 1;
/** The command line or its options are wrong: nothing was tried. */
export const USAGE_MISTAKE = 2;
/** It was done, and the answer is no: not found, not valid, not healthy. */
export const NEGATIVE = 3;

/** An end whose message says all there is to say; an empty one, nothing. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Whether the operating system refused something. */
export function isSystemError(error: unknown): error is Error & { readonly code: string; readonly syscall: string } {
  return error instanceof Error && "code" in error && "syscall" in error;
}

/** What to print for an error of a command, and the code to end with. */
export function endingOf(error: unknown, { debug = false } = {}): { text: string; exitCode: number } {
  // Commander has printed its own: help and version end with 0, all else is a mistake of the command line.
  if (error instanceof CommanderError) return { text: "", exitCode: error.exitCode === 0 ? 0 : USAGE_MISTAKE };
  const { text, exitCode } = shortly(error);
  return { text: debug ? `${text}${inspect(error)}\n` : text, exitCode };
}

function shortly(error: unknown): { text: string; exitCode: number } {
  if (error instanceof CommandError) return ending(error.message, error.exitCode);
  if (error instanceof SetupError) return ending(error.message, USAGE_MISTAKE);
  return ending(error instanceof OncehookError ? error.message : strange(error), FAILURE);
}

/** An error that no part of this package expected: a fault of ours, most likely. */
function strange(error: unknown): string {
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return `${what.split("\n")[0]} (unexpected; --debug shows where)`;
}

function ending(message: string, exitCode: number): { text: string; exitCode: number } {
  return { text: message && `error: ${message}\n`, exitCode };
}

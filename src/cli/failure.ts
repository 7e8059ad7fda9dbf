/** How a command ends that cannot do what it was asked: a line on standard error, and an exit code. */
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { OncehookError, SetupError } from "../errors.ts";

/** 0 is success. */
export const FAILURE = 1;
export const USAGE_MISTAKE = 2;

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
export function endingOf(error: unknown): { text: string; exitCode: number } {
  // Commander has printed its own: help and version end with 0, all else is a mistake of the command line.
  if (error instanceof CommanderError) return { text: "", exitCode: error.exitCode === 0 ? 0 : USAGE_MISTAKE };
  if (error instanceof CommandError) return ending(error.message, error.exitCode);
  if (error instanceof SetupError) return ending(error.message, USAGE_MISTAKE);
  return ending(error instanceof OncehookError ? error.message : inspect(error), FAILURE);
}

function ending(message: string, exitCode: number): { text: string; exitCode: number } {
  return { text: message && `error: ${message}\n`, exitCode };
}

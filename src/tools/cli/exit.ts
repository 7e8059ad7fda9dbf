/** How a command ends: its exit code, its line on standard error, the signals that end it, and why its server cannot listen. */

import { once } from "node:events";
import type { Server } from "node:http";
import { constants } from "node:os";
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { OncehookError, SetupError } from "../../errors.ts";
import { type Clock, systemClock } from "../../internal/clock.ts";

// How a command ends that cannot do what it was asked: a line on standard error, and an exit code.

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

// Signals that ask the process to end: the first one is passed on, a second one ends it at once.

/** All that a terminal, its end and an init send: otherwise a process group of ours would outlive this process. */
const SIGNALS = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const;

/** Resolves with the first signal from now on. A second one ends the process with 128 + its number. */
export function endingSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const hear = (signal: NodeJS.Signals) => {
      if (asked) process.exit(codeOf(signal));
      asked = true;
      resolve(signal);
    };
    for (const signal of SIGNALS) process.on(signal, hear);
  });
}

/** The exit code that shells give a process that a signal ended. */
export function codeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

// Long work that a signal ends between two steps.

/**
 * Resolves once the work has ended: with undefined, or, if a signal ended it, with the error to throw after the results are printed.
 *
 * @param advice - how to go on
 */
export async function interruptible(
  work: (signal: AbortSignal) => Promise<void>,
  advice: string,
): Promise<CommandError | undefined> {
  const stop = new AbortController();
  let heard: NodeJS.Signals | undefined;
  void endingSignal().then((signal) => {
    heard = signal;
    stop.abort();
  });
  try {
    await work(stop.signal);
    return undefined;
  } catch (error) {
    if (heard === undefined || error !== stop.signal.reason) throw error;
    return new CommandError(`Stopped. ${advice}`, codeOf(heard), { cause: error });
  }
}

// The end of the process when its reader has stalled: Node would wait for them for ever.

/** For a reader that is only slow. */
const GRACE_MS = 1_000;

/**
 * Ends a process that only waits for its output to be taken, with the exit code that it has by then. What is dropped are remarks, and
 * lines of events that are not marked as handled: those come again.
 */
export function leaveUntaken(clock: Clock = systemClock): void {
  // The timer keeps nothing alive: where all was taken, the process has ended before.
  clock.setTimeout(() => {
    if ([process.stdout, process.stderr].some(({ writableLength }) => writableLength > 0)) process.exit();
  }, GRACE_MS);
}

// Why a command could not open its socket, and what to do about it.

/** Whether the operating system refused to listen. */
export function isListenError(error: unknown): error is Error & { readonly code: string } {
  return isSystemError(error) && ["listen", "getaddrinfo"].includes(error.syscall);
}

interface Refused {
  readonly host: string;
  readonly port: number | string;
  /** Which of the two was refused. */
  readonly option: "host" | "port";
}

/** @param cause - an error for which `isListenError` holds */
export function cannotListen({ host, port, option }: Refused, cause: Error & { readonly code: string }): CommandError {
  const [reason, advice] =
    option === "host"
      ? ["it is not an address of this machine", "Choose another --host; 127.0.0.1 is the default."]
      : [cause.code === "EADDRINUSE" ? "it is in use" : cause.code, "Choose another --port, or 0 for any free one."];
  return new CommandError(`Cannot listen on ${host}, port ${port}: ${reason}. ${advice}`, FAILURE, { cause });
}

// The end of a command's HTTP server.

/** Takes no new connection, and resolves when the last one has ended; those that have not within `limitMs` are cut. */
export async function closeServer(server: Server, limitMs: number): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const limit = systemClock.setTimeout(() => server.closeAllConnections(), limitMs);
  await closed;
  limit.cancel();
}

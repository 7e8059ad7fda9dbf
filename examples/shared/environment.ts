/** What an example reads from its environment, and the one line that says what is missing. */

import { OncehookError, type SecretSet } from "oncehook";

export interface Environment {
  /** 0 picks a free one. */
  readonly port: number;
  readonly secrets: SecretSet;
  /** The SQLite file of the inbox; its directory must exist. */
  readonly inboxPath: string;
}

/** A mistake in the environment; the message names the variable and the fix, never its value. */
export class EnvironmentError extends Error {
  override readonly name = "EnvironmentError";
}

/**
 * Reads `PORT` (default 3000), `INBOX_PATH` (default ./inbox.db), `WEBHOOK_SECRET`, and for a rotation
 * `WEBHOOK_PREVIOUS_SECRET` with `WEBHOOK_PREVIOUS_VALID_UNTIL` (epoch milliseconds).
 */
export function readEnvironment(variables: NodeJS.ProcessEnv): Environment {
  return {
    port: readNumber("PORT", variables.PORT || "3000", 65_535),
    secrets: readSecrets(variables),
    inboxPath: variables.INBOX_PATH || "./inbox.db",
  };
}

/** What a client of the service's API needs. */
export interface ClientEnvironment {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Reads `SERVICE_BASE_URL`, `SERVICE_CLIENT_ID` and `SERVICE_CLIENT_SECRET`, which `oncehook emulator --exec` sets. */
export function readClientEnvironment(variables: NodeJS.ProcessEnv): ClientEnvironment {
  return {
    baseUrl: required(variables, "SERVICE_BASE_URL", "the service's address"),
    clientId: required(variables, "SERVICE_CLIENT_ID", "the client's id"),
    clientSecret: required(variables, "SERVICE_CLIENT_SECRET", "the client's secret"),
  };
}

/** @throws EnvironmentError that names the variable, when it is not set or empty */
export function required(variables: NodeJS.ProcessEnv, name: string, meaning: string): string {
  const value = variables[name];
  if (value) return value;
  throw new EnvironmentError(`${name} is not set: put ${meaning} in it.`);
}

/** Reads `WEBHOOK_SECRET`, and for a rotation the one before it. */
export function readSecrets(variables: NodeJS.ProcessEnv): SecretSet {
  const { WEBHOOK_PREVIOUS_SECRET: previous, WEBHOOK_PREVIOUS_VALID_UNTIL: until } = variables;
  const current = required(variables, "WEBHOOK_SECRET", "the webhook's signing secret");
  if (!previous) return { current };
  if (!until) {
    throw new EnvironmentError(
      "WEBHOOK_PREVIOUS_VALID_UNTIL is not set: put the moment in it at which the previous secret ends, in epoch milliseconds.",
    );
  }
  const validUntil = readNumber("WEBHOOK_PREVIOUS_VALID_UNTIL", until, Number.MAX_SAFE_INTEGER);
  return { current, previous: { secret: previous, validUntil } };
}

/** A whole number from `min` (default 0) to `max`. */
export function readNumber(name: string, text: string, max: number, min = 0): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number <= max) return number;
  throw new EnvironmentError(`${name} must be a whole number from ${min} to ${max}.`);
}

/** For `main().catch`: one line for what a person can fix, the stack for everything else; exit code 1. */
export function endWithOneLine(error: unknown): void {
  console.error(error instanceof EnvironmentError || error instanceof OncehookError ? error.message : error);
  process.exit(1); // A worker that runs already would keep the process alive.
}

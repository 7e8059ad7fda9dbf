/** Tells Postgres's errors apart: worth another try, out of space, or not reachable. */
import { OncehookError, StoreError } from "../../errors.ts";

/** The five characters that Postgres names an error with; empty for errors of other origin. */
export function sqlState(error: unknown): string {
  const code = codeOf(error);
  return /^[0-9A-Z]{5}$/.test(code) && !isOfSystem(error) ? code : "";
}

/**
 * Node and the system name errors so: `EPIPE`, `ECONNREFUSED`. Postgres has no class of errors that begins with E, but a trigger may call its
 * own so; what the server answers has a severity.
 */
function isOfSystem(error: unknown): boolean {
  return /^E[0-9A-Z]+$/.test(codeOf(error)) && !("severity" in (error as object));
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** Another transaction was in the way: deadlock, serialization, or a lock that was not to be had. */
export function isContention(error: unknown): boolean {
  return ["40001", "40P01", "55P03"].includes(sqlState(error));
}

/**
 * A statement that was prepared by name is not there, or somebody else's is: a pooler gave the transaction another connection of the
 * server than the one it was prepared on. The statement was not run.
 */
export function isStatementLost(error: unknown): boolean {
  const state = sqlState(error);
  return ["26000", "42P05"].includes(state) || (state === "08P01" && /prepared statement/.test(messageOf(error)));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}

/**
 * The server refused a statement and says why, so that nothing of it is written. The classes 08 and 57P tell of a connection that ends,
 * and so does an overstay: a commit may have come before.
 */
export function isRefusal(error: unknown): boolean {
  return !isOverstayed(error) && /^(?!08|57P)./.test(sqlState(error));
}

/** The server takes no writes now, whoever asks: its disk is full, or it has become a standby. */
export function refusesWrites(error: unknown): boolean {
  return ["53100", "25006"].includes(sqlState(error));
}

/** The server ended the connection because its transaction lasted too long, or idled too long. */
function isOverstayed(error: unknown): boolean {
  return ["25P03", "25P04"].includes(sqlState(error));
}

/** An answer was not waited for any longer; the connection cannot be used until it comes. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.message === "Query read timeout";
}

/**
 * Whether the application's statements failed because their connection broke: `loss` is what broke it, undefined while it is good.
 * What they threw may be an error of the application's own that tells nothing.
 */
export function isCutOff(thrown: unknown, loss: Error | undefined): boolean {
  return loss !== undefined && !(loss instanceof OncehookError) && !isOverstayed(thrown) && !isOverstayed(loss);
}

function isFull(error: unknown): boolean {
  return sqlState(error).startsWith("53") && sqlState(error) !== "53300";
}

/** No connection was to be had in time. */
export class ConnectionTimeout extends Error {
  constructor(ms: number) {
    super(`No connection of the pool became free within ${ms} ms.`);
  }
}

/** What a caller of the store gets to see. */
export function asStoreError(error: unknown, location: string): unknown {
  if (error instanceof OncehookError) return error;
  const state = sqlState(error);
  if (isFull(error)) {
    const message = `${location} is out of space or memory (${state}): events are refused until then, and the service repeats them.`;
    return new StoreError("store_full", message, { cause: error, fields: { sqlState: state } });
  }
  const isTheirs = state !== "" || isUnanswered(error);
  if (!isTheirs) return error;
  const message = `The inbox ${location} cannot be used now: ${reasonOf(error, state)}`;
  return new StoreError("store_unavailable", message, {
    cause: error,
    fields: { sqlState: state === "" ? null : state },
  });
}

/** The server's own words may quote values; they are in the cause. */
function reasonOf(error: unknown, state: string): string {
  if (error instanceof ConnectionTimeout)
    return `${error.message} Give it more connections, or the inbox a pool of its own.`;
  if (state === "42501") return `the role lacks a right (${state}). ${GRANTS}`;
  if (state === "25006")
    return `the server takes no writes (${state}): connect to the primary, as a role that may write.`;
  if (state === "3D000") return `the database does not exist (${state}).`;
  if (state.startsWith("28")) return `the server refused the role or its password (${state}).`;
  if (isStatementLost(error))
    return `a pooler between here and the server does not keep prepared statements (${state}). Pass { prepare: false } to postgresStore(), or set max_prepared_statements in PgBouncer 1.21 or later.`;
  if (state === "08P01") return `${reasonOfPooler(messageOf(error))} (08P01).`;
  if (state === "53300") return `the server has no connection left (${state}).`;
  if (state !== "") return `the server answered ${state}.`;
  return `${codeOf(error) || "no connection"}.`;
}

/** Poolers answer with 08P01 whatever is wrong with them; only PgBouncer's fixed texts tell what. */
function reasonOfPooler(message: string): string {
  if (/startup parameter/.test(message))
    return "the pooler refuses a parameter of the connection string, such as options: remove it, or name it in PgBouncer's ignore_startup_parameters";
  if (/statement pooling/.test(message))
    return "the pooler is in statement mode, which allows no transactions: set pool_mode to transaction or session";
  if (/query_wait_timeout/.test(message))
    return "the pooler had no connection of the server free in time: raise its default_pool_size";
  return "a pooler between here and the server ended the connection: look into its log, and whether the server runs";
}

const GRANTS =
  "To make the schema it needs CREATE on the database; to bring it to this version, to own it; in one that another role made, USAGE on it, SELECT, INSERT, UPDATE and DELETE on its tables, and USAGE on its sequences; copyInbox() needs SELECT and UPDATE on these too.";

/**
 * The server was not reached, went away, or did not answer in time. pg's own errors have no code that would tell them apart; Node's may have
 * nothing else, as where each of a server's addresses refuses, or where the socket was ended by the other side.
 */
export function isUnanswered(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof OncehookError) return false;
  if (error instanceof ConnectionTimeout || "syscall" in error || "errno" in error || isOfSystem(error)) return true;
  if (isOfTls(error)) return true;
  return /connection|timeout exceeded|Query read timeout|Client (?:was closed|has encountered)|Cannot use a pool/i.test(
    error.message,
  );
}

/** `ERR_SSL_…`, or a name of OpenSSL's for what is wrong with the server's certificate. */
function isOfTls(error: Error): boolean {
  const code = codeOf(error);
  return /^ERR_(?:SSL|TLS)_/.test(code) || (/^[A-Z_]+$/.test(code) && /certificate/i.test(error.message));
}

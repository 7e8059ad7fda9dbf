/** Classifies Postgres's errors: worth another try, out of space, or not reachable. */
import { OncehookError, StoreError } from "../../errors.ts";

/** The SQLSTATE of an error of Postgres; empty for other errors. */
export function sqlState(error: unknown): string {
  const code = codeOf(error);
  return /^[0-9A-Z]{5}$/.test(code) && !isOfSystem(error) ? code : "";
}

/**
 * Codes of Node and the system: `EPIPE`, `ECONNREFUSED`. Postgres has no class of errors that begins with E, but a trigger may define
 * such a code; errors of the server have a severity.
 */
function isOfSystem(error: unknown): boolean {
  return /^E[0-9A-Z]+$/.test(codeOf(error)) && !("severity" in (error as object));
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** A conflict with another transaction: deadlock, serialization failure, or a lock that was not available. */
export function isContention(error: unknown): boolean {
  return ["40001", "40P01", "55P03"].includes(sqlState(error));
}

/**
 * A statement prepared by name is missing, or is another client's: a pooler gave the transaction a different connection of the
 * server than the one that prepared it. The statement was not run.
 */
export function isStatementLost(error: unknown): boolean {
  const state = sqlState(error);
  return ["26000", "42P05"].includes(state) || (state === "08P01" && /prepared statement/.test(messageOf(error)));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}

/**
 * The server refused a statement, so nothing of it was written. The classes 08 and 57P mean that a connection ended,
 * and so does an exceeded time limit of a transaction: a commit may have happened before.
 */
export function isRefusal(error: unknown): boolean {
  return !isOverstayed(error) && /^(?!08|57P)./.test(sqlState(error));
}

/** The server accepts no writes from anyone now: its disk is full, or it has become a standby. */
export function refusesWrites(error: unknown): boolean {
  return ["53100", "25006"].includes(sqlState(error));
}

/** The server ended the connection because its transaction lasted or idled too long. */
function isOverstayed(error: unknown): boolean {
  return ["25P03", "25P04"].includes(sqlState(error));
}

/**
 * A new connection may lead to another server than this one: the server accepts no writes although it has space, as a standby does, or it
 * ends its connections.
 */
export function leadsAstray(error: unknown): boolean {
  return (/^(?:25006|08|57P)/.test(sqlState(error)) && !isStatementLost(error)) || isOverstayed(error);
}

/** The server of a new connection is a standby, which accepts no writes and may be behind in what it shows. */
export class StandbyFound extends Error {
  readonly code = "25006";

  constructor() {
    super("The server is a standby.");
  }
}

/** An answer did not come in time; the connection cannot be used until it does. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.message === "Query read timeout";
}

/**
 * Whether the application's statements failed because their connection broke: `loss` is the reason, undefined while it is good.
 * The error they threw may be the application's own, which says nothing about that.
 */
export function isCutOff(thrown: unknown, loss: Error | undefined): boolean {
  return loss !== undefined && !(loss instanceof OncehookError) && !isOverstayed(thrown) && !isOverstayed(loss);
}

function isFull(error: unknown): boolean {
  return sqlState(error).startsWith("53") && sqlState(error) !== "53300";
}

/** No connection became free in time. */
export class ConnectionTimeout extends Error {
  constructor(ms: number) {
    super(`No connection of the pool became free within ${ms} ms.`);
  }
}

/** Turns an error into the one that a caller of the store sees. */
export function storeErrorOf(error: unknown, location: string): unknown {
  if (error instanceof OncehookError) return error;
  const state = sqlState(error);
  if (isFull(error)) {
    const message = `${location} is out of space or memory (${state}): events are refused until it has some, and the service repeats them.`;
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

/** The server's own message may quote values; it is in the cause. */
function reasonOf(error: unknown, state: string): string {
  if (error instanceof ConnectionTimeout)
    return `${error.message} Give it more connections, or the inbox a pool of its own.`;
  if (state === "42501") return `the role lacks a right (${state}). ${GRANTS}`;
  if (state === "25006")
    return `the server accepts no writes (${state}): connect to the primary, with a role that may write.`;
  if (state === "3D000") return `the database does not exist (${state}).`;
  if (state.startsWith("28")) return `the server refused the role or its password (${state}).`;
  if (isStatementLost(error))
    return `a pooler between here and the server does not keep prepared statements (${state}). Pass { prepare: false } to postgresStore(), or set max_prepared_statements in PgBouncer 1.21 or later.`;
  if (state === "08P01") return `${reasonOfPooler(messageOf(error))} (08P01).`;
  if (state === "53300") return `the server has no connection left (${state}).`;
  if (state !== "") return `the server answered ${state}.`;
  return `${codeOf(error) || "no connection"}.`;
}

/** Poolers report all their problems as 08P01; only PgBouncer's fixed texts say which. */
function reasonOfPooler(message: string): string {
  if (/startup parameter/.test(message))
    return "the pooler refuses a parameter of the connection string, such as options: remove it, or name it in PgBouncer's ignore_startup_parameters";
  if (/statement pooling/.test(message))
    return "the pooler is in statement mode, which allows no transactions: set pool_mode to transaction or session";
  if (/query_wait_timeout/.test(message))
    return "the pooler had no connection of the server free in time: raise its default_pool_size";
  return "a pooler between here and the server ended the connection: check its log, and whether the server runs";
}

const GRANTS =
  "To create the schema it needs CREATE on the database; to migrate it, ownership of the schema; in a schema of another role, USAGE on it, SELECT, INSERT, UPDATE and DELETE on its tables, and USAGE on its sequences; copyInbox() also needs SELECT and UPDATE on the sequences.";

/**
 * The server was not reached, closed the connection, or did not answer in time. pg's own errors have no codes; Node's may have
 * nothing else, as when each of a server's addresses refuses, or when the other side ended the socket.
 */
export function isUnanswered(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof OncehookError) return false;
  if (error instanceof ConnectionTimeout || "syscall" in error || "errno" in error || isOfSystem(error)) return true;
  if (isOfTls(error)) return true;
  return /connection|timeout exceeded|Query read timeout|Client (?:was closed|has encountered)|Cannot use a pool/i.test(
    error.message,
  );
}

/** `ERR_SSL_…`, or OpenSSL's name of a problem with the server's certificate. */
function isOfTls(error: Error): boolean {
  const code = codeOf(error);
  return /^ERR_(?:SSL|TLS)_/.test(code) || (/^[A-Z_]+$/.test(code) && /certificate/i.test(error.message));
}

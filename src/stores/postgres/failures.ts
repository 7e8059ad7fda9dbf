/** Tells Postgres's errors apart: worth another try, out of space, one bad row, or not reachable. */
import { OncehookError, StoreError } from "../../errors.ts";

/** The five characters that Postgres names an error with; empty for errors of other origin. */
export function sqlState(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : "";
}

/** Another transaction was in the way: deadlock, serialization, a lock that was not to be had, or a lane that came in between. */
export function isContention(error: unknown): boolean {
  return error instanceof LaneAppeared || ["40001", "40P01", "55P03"].includes(sqlState(error));
}

export function isFull(error: unknown): boolean {
  return sqlState(error).startsWith("53") && sqlState(error) !== "53300";
}

/** The row's own values cannot be stored; its neighbours' can. */
export function isRowFault(error: unknown): boolean {
  return /^(22|23)/.test(sqlState(error)) || error instanceof TypeError || error instanceof RangeError;
}

/** Another transaction made a lane that this one was about to make: it is run again, and finds it. */
export class LaneAppeared extends Error {}

/** What a caller of the store gets to see. */
export function asStoreError(error: unknown, location: string): unknown {
  if (error instanceof OncehookError) return error;
  const state = sqlState(error);
  if (isFull(error)) {
    const message = `${location} is out of space or memory (${state}): events are refused until then, and the service repeats them.`;
    return new StoreError("store_full", message, { cause: error, fields: { sqlState: state } });
  }
  const isTheirs = state !== "" || isNetwork(error);
  if (!isTheirs) return error;
  const shown = state === "" ? ((error as { code?: string }).code ?? "no connection") : state;
  const message = `The inbox ${location} cannot be used now (${shown}).`;
  return new StoreError("store_unavailable", message, {
    cause: error,
    fields: { sqlState: state === "" ? null : state },
  });
}

/** pg's own errors have no code that would tell them apart. */
function isNetwork(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("syscall" in error || "errno" in error) return true;
  return /connection|timeout exceeded|Client (?:was closed|has encountered)|Cannot use a pool/i.test(error.message);
}

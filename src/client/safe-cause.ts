/** Copies of foreign errors that can be shown: the errors of `fetch` may hold the request with its token and its body. */

import { BAD_PORT_MESSAGE } from "../internal/network.ts";

const COPIED = ["code", "errno", "syscall"] as const;
/** What codes and names of errors look like. */
const NAME = /^[A-Za-z]\w{0,59}$/;
/**
 * Codes of the operating system, of TLS and of undici: their messages are fixed texts with a host, a port or a certificate's
 * names. Every other message may quote what was sent, in words that nobody can foresee.
 */
const KNOWN_CODE =
  /^(?:E(?:AI_[A-Z]+|CONN[A-Z]+|TIMEDOUT|NOTFOUND|PIPE|PROTO|MFILE|NFILE|ADDR[A-Z]+|(?:HOST|NET)(?:UNREACH|DOWN)|NETRESET)|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+|ERR_(?:TLS|SSL)_\w+|UND_ERR_\w+|HPE_\w+)$/;
const UNKNOWN_MESSAGE = "fetch failed";
const LONGEST_MESSAGE = 300;
const REDACTED = "[redacted]";
/** Anything that looks like a phone number in E.164 form. */
const E164 = /\+[1-9]\d{6,14}/g;
/** An address may hold a number in its path; what is quoted, or looks like JSON or a page, may be the request's body. */
const QUOTED = /\w+:\/\/\S+|(?:["`{<]|\[(?!redacted\]))[\s\S]*/g;

/** A copy of an error and of its own cause: name, the facts of the operating system, and a known message, without `secrets`. */
export function safeCause(error: unknown, secrets: readonly string[]): Error {
  try {
    const cause = error instanceof Error && error.cause !== undefined ? copyOf(error.cause, secrets) : undefined;
    return copyOf(error, secrets, cause);
  } catch {
    // A getter of it threw.
    return new Error("The error can not be read.");
  }
}

function copyOf(error: unknown, secrets: readonly string[], cause?: Error): Error {
  const source = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
  const isKnown = typeof source.code === "string" && KNOWN_CODE.test(source.code);
  const isTold = isKnown || source.message === BAD_PORT_MESSAGE;
  const message = isTold && typeof source.message === "string" ? source.message : UNKNOWN_MESSAGE;
  const copy = new Error(redacted(message, secrets), cause === undefined ? undefined : { cause });
  if (typeof source.name === "string" && NAME.test(source.name)) copy.name = redacted(source.name, secrets);
  for (const key of COPIED) {
    const fact = source[key];
    if (typeof fact === "number") Object.assign(copy, { [key]: fact });
    if (typeof fact === "string" && NAME.test(fact)) Object.assign(copy, { [key]: redacted(fact, secrets) });
  }
  return copy;
}

function redacted(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) if (secret !== "") shown = shown.replaceAll(secret, REDACTED);
  return shown.replace(QUOTED, REDACTED).replace(E164, REDACTED).slice(0, LONGEST_MESSAGE);
}

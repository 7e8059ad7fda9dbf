/** What comes of a request: a receiver's whole answer, or one word for why there is none. */
import type { IncomingMessage } from "node:http";

/** What came of it. */
export interface Outcome {
  /** Null when no answer came, or only a part of one. */
  readonly status: number | null;
  /** `timeout`, `reset`, `refused`, `blocked` (by the egress guard), `unresolved`, `failed`; null when an answer came. */
  readonly error: "timeout" | "reset" | "refused" | "blocked" | "unresolved" | "failed" | null;
  readonly headers: Readonly<Record<string, string>>;
  /** At most 16 KiB of the answer's body, as UTF-8 text. */
  readonly body: string;
}

export type ErrorWord = NonNullable<Outcome["error"]>;

/** What is kept of an answer's body. */
const KEPT_BYTES = 16_384;
/** What is read of one, so that its connection can be used again; a longer answer counts, but its connection is ended. */
const READ_BYTES = 262_144;

export function failure(error: ErrorWord): Outcome {
  return { status: null, error, headers: {}, body: "" };
}

/** The word for an error of `node:http`, `node:net`, `node:dns` or `node:tls`. */
export function wordOf({ code = "" }: NodeJS.ErrnoException): ErrorWord {
  switch (code) {
    case "EGRESS_BLOCKED":
      return "blocked";
    case "ECONNREFUSED":
      return "refused";
    case "ECONNRESET":
    case "EPIPE":
    case "ECONNABORTED":
      return "reset";
    case "ETIMEDOUT":
      return "timeout";
    case "ENOTFOUND":
    case "ENODATA":
      return "unresolved";
    default:
      return code.startsWith("EAI_") ? "unresolved" : "failed";
  }
}

/** Reads an answer to its end, or as far as is read of any; then calls `done`, before the connection is given back. */
export function readAnswer(response: IncomingMessage, done: (outcome: Outcome) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = () =>
    done({
      status: response.statusCode ?? null,
      error: null,
      headers: headersOf(response),
      body: textOf(Buffer.concat(chunks), length > KEPT_BYTES),
    });
  response.on("data", (chunk: Buffer) => {
    if (length < KEPT_BYTES) chunks.push(chunk.subarray(0, KEPT_BYTES - length));
    length += chunk.length;
    if (length > READ_BYTES) finish();
  });
  response.on("end", finish);
  response.on("error", (error) => done(failure(wordOf(error))));
}

/** Without the date: nearly every receiver sends one, and with it no two runs would have the same log. */
function headersOf({ headers: { date: _, ...headers } }: IncomingMessage): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : (value ?? ""),
  ]);
  return Object.fromEntries(entries);
}

/** A character that the limit cut in two is left out. */
function textOf(bytes: Buffer, isCut: boolean): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: isCut });
}

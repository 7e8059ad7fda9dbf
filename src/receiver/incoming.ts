/** The seam between adapters and the receiver: what an adapter hands in, and the answer it sends. No framework is known here. */
import type { HeaderSource } from "../signature/headers.ts";

/** One HTTP request, before its body is read. An adapter only converts; every decision is the receiver's. */
export interface IncomingWebhook {
  /** Upper case, as on the wire. */
  readonly method: string;
  readonly headers: HeaderSource;
  /** Reads the body to its end. Called at most once, and only after the headers were found well-formed. */
  readBody(reading: BodyReading): Promise<BodyResult> | BodyResult;
  /** Passed to an async keyring. Nothing else about the request is, since nothing else is known to be true yet. */
  readonly tenant?: string | undefined;
  /** Passed to an async keyring: the route this receiver is mounted on, as the application named it. */
  readonly route?: string | undefined;
}

/** The rules for reading one body. */
export interface BodyReading {
  /** Stop reading beyond it, with `too_large`. Bytes. */
  readonly maxBytes: number;
  /** From `Content-Length`; null when the request declares none. A body that ends short of it is `truncated`. */
  readonly declaredBytes: number | null;
  /** Report every chunk as it arrives, so that the bytes buffered by all requests stay within their budget. */
  received(bytes: number): void;
  /** `cut` is called when the read must stop: too slow, past its deadline, or in the way of others. Settle it as `cut`. */
  onCut(cut: () => void): void;
}

export type BodyResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false;
      /** `already_parsed`: the application consumed the body before the adapter saw it, and left no bytes. */
      readonly reason: "too_large" | "truncated" | "cut" | "already_parsed";
      /** With `already_parsed`: how this host leaves the bytes, for the log. */
      readonly fix?: string;
    };

/** What the log says when a body was `already_parsed`. */
export function bodyParsedMessage({ fix = RAW_BODY_FIX }: { readonly fix?: string }): string {
  return `The body was read before the receiver saw it, so its exact bytes are gone. ${fix}`;
}

const RAW_BODY_FIX =
  "Mount the receiver before everything that reads bodies, or keep the bytes as a Buffer in request.rawBody.";

/** What to send. Never a redirect, never the payload, never which check failed. */
export interface Answer {
  readonly status: 200 | 400 | 401 | 405 | 413 | 415 | 500 | 503;
  /** Lower-case names; always with `content-type` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  /** The body was not read to its end: answer, drain at most 64 KiB, close the connection. */
  readonly close: boolean;
}

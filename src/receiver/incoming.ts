/** Between adapters and the receiver: the request that an adapter passes in, and the answer that it sends. No framework is known here. */
import type { HeaderSource } from "../signature/verify.ts";

/** One HTTP request, before its body is read. An adapter only converts; the receiver makes every decision. */
export interface IncomingWebhook {
  /** Upper case, as on the wire. */
  readonly method: string;
  readonly headers: HeaderSource;
  /** Reads the body to its end. Called at most once, and only after the headers were checked. */
  readBody(reading: BodyReading): Promise<BodyResult> | BodyResult;
  /** Passed to a keyring provider. Nothing else about the request is passed: nothing is verified yet. */
  readonly tenant?: string | undefined;
  /** Passed to a keyring provider: the route of this receiver, as the application named it. */
  readonly route?: string | undefined;
}

/** The rules for reading one body. */
export interface BodyReading {
  /** Stop reading beyond it, with `too_large`. Bytes. */
  readonly maxBytes: number;
  /** From `Content-Length`, or null. A body that ends before this length is `truncated`. */
  readonly declaredBytes: number | null;
  /** Call this for every chunk when it arrives, so that the bytes held by all requests stay within their budget. */
  received(bytes: number): void;
  /** `cut` is called when the read must stop: it is too slow, past its deadline, or holds too much. Resolve with `cut` then. */
  onCut(cut: () => void): void;
}

export type BodyResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false;
      /** `already_parsed`: the application read the body before the adapter, and kept no bytes. */
      readonly reason: "too_large" | "truncated" | "cut" | "already_parsed";
      /** With `already_parsed`: how this host keeps the bytes, for the log. */
      readonly fix?: string;
    };

/** The log message for a body that was `already_parsed`. */
export function bodyParsedMessage({ fix = RAW_BODY_FIX }: { readonly fix?: string }): string {
  return `The body was read before the receiver saw it, so its exact bytes are gone. ${fix}`;
}

const RAW_BODY_FIX =
  "Mount the receiver before everything that reads bodies, or keep the bytes as a Buffer in request.rawBody.";

/** The response to send. Never a redirect, the payload, or which check failed. */
export interface Answer {
  readonly status: 200 | 400 | 401 | 405 | 413 | 415 | 500 | 503;
  /** Lower-case names; always with `content-type` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  /** The body was not read to its end: answer, drain at most 64 KiB, close the connection. */
  readonly close: boolean;
}

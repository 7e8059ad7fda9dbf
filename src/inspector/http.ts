/** The seam between adapters and the inspector: what an adapter hands in, and the answer it sends. No framework is known here. */
import type { Logger } from "../internal/logger.ts";
import type { HeaderSource } from "../signature/headers.ts";

/**
 * One HTTP request. An adapter only converts; every decision is the inspector's.
 *
 * @typeParam Native - the framework's own request, which `authorize` gets
 */
export interface InspectorRequest<Native = unknown> {
  /** Upper case, as on the wire. */
  readonly method: string;
  /** Path and query as they were asked for, with what a router has taken off: `/inspector/api/messages/7`. */
  readonly url: string;
  readonly headers: HeaderSource;
  readonly native: Native;
  /** Reads the body as JSON. Called at most once, and only for somebody who may do what is asked. Never rejects. */
  readJson(maxBytes: number): Promise<JsonReading>;
  /** Aborts when whoever asked is gone. */
  readonly signal: AbortSignal;
}

export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  /** `empty`: there is no body, or one without a byte. */
  | { readonly ok: false; readonly reason: "too_large" | "invalid" | "empty" };

/** What to send. */
export interface InspectorAnswer {
  readonly status: number;
  /** Lower-case names. `content-length` is there unless the body is a stream or the status 304. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is sent chunk by chunk as it comes, and ended (`return()`) when whoever asked is gone. */
  readonly body: string | Uint8Array | AsyncIterable<string>;
}

/** What an adapter mounts. */
export interface Mountable<Native = unknown> {
  /** Where it is mounted, such as `/inspector`; empty for the root. No slash at its end. */
  readonly path: string;
  /** Told of answers that could not be sent. */
  readonly logger: Logger;
  /** Answers any request at or below `path`. Neither throws nor rejects. */
  handle(request: InspectorRequest<Native>): Promise<InspectorAnswer>;
}

/** One HTTP request to a receiver: guarded, timed, never redirected. */
import type { Settings } from "../options.ts";

/** A request as it goes over the wire. */
export interface Outgoing {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Send the body in pieces over so many real milliseconds; null: at once. */
  readonly dribbleMs: number | null;
}

/** What came of it. */
export interface Outcome {
  /** Null when no answer came. */
  readonly status: number | null;
  /** `timeout`, `reset`, `refused`, `blocked` (by the egress guard), `unresolved`, `failed`; null when an answer came. */
  readonly error: "timeout" | "reset" | "refused" | "blocked" | "unresolved" | "failed" | null;
  readonly headers: Readonly<Record<string, string>>;
  /** At most 16 KiB of the answer's body, as UTF-8 text. */
  readonly body: string;
}

export interface Transport {
  /** Never rejects. */
  send(outgoing: Outgoing): Promise<Outcome>;
  close(): void;
}

export function createTransport(_settings: Settings): Transport {
  throw new Error("not yet");
}

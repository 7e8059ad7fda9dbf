/** One request that a verifier is asked about, and what must become of it. */
import type { TimestampFormat } from "../../../src/sources/messaging/verify.ts";

export interface Case {
  /** What was done to it, for the counts. */
  readonly kind: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Buffer;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly timestampFormat?: TimestampFormat;
  /**
   * - `accepted`: it is as it was signed.
   * - `refused`: whoever takes it is wrong, though its text, body and signature may be signed ones.
   * - `unless signed`: it may be taken only when timestamp text, body and signature bytes are those of one that was signed.
   */
  readonly due: "accepted" | "refused" | "unless signed";
}

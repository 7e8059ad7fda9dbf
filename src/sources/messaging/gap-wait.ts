/** How long an event of the service waits for a missing one before it: the option `gapWait`. */
import { choiceOption } from "../../internal/options.ts";
import type { WebhookEvent } from "./types.ts";

/** How long a missing sequence is waited for: a policy, or milliseconds (0 to 24 h) for the event that would wait. It only decides whether the missing event arrives in order or late. */
export type GapWait = "balanced" | "strict" | "eager" | ((event: WebhookEvent) => number);

/** How long after an event the service sends it for the last time (DLV-16). */
export const LAST_RETRY_MS = 81 * 60_000;
/** Until the service's last retry, with a margin: no gap is waited for longer. */
const LONGEST_MS = 85 * 60_000;
/** The documented failure has sequence 4 after 2 (EVT-9). A short wait, so that this normal case is not delayed for long. */
const BEFORE_FAILED_MS = 90_000;
/** Covers three of the service's four retries. */
const BEFORE_OTHERS_MS = 22 * 60_000;

/** @throws SetupError for an unknown policy */
export function gapWaitPolicy(gapWait: GapWait | undefined): (event: WebhookEvent) => number {
  if (typeof gapWait === "function") return gapWait;
  const policy = choiceOption("gapWait", gapWait, "balanced", ["balanced", "strict", "eager"]);
  if (policy === "strict") return () => LONGEST_MS;
  if (policy === "eager") return () => 0;
  return (event) => (event.eventType === "message.failed" ? BEFORE_FAILED_MS : BEFORE_OTHERS_MS);
}

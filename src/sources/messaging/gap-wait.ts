/** How long an event of the service waits for a missing one before it: the option `gapWait`. */
import { boundedWait, LAST_RETRY_MS } from "../../inbox/gap.ts";
import { choiceOption } from "../../internal/options.ts";
import type { WebhookEvent } from "./types.ts";

/** How long a missing sequence is waited for: a policy, or milliseconds (0 to 24 h) for the event that would wait. It only decides whether the missing event arrives in order or late. */
export type GapWait = "balanced" | "strict" | "eager" | ((event: WebhookEvent) => number);

/** The documented failure has sequence 4 after 2 (EVT-9). A short wait, so that this normal case is not delayed for long. */
const BEFORE_FAILED_MS = 90_000;
/** Covers three of the service's four retries. */
const BEFORE_OTHERS_MS = 22 * 60_000;

/** @throws SetupError for an unknown policy. The returned function throws it if the user's function returns an invalid wait */
export function gapWaitPolicy(gapWait: GapWait | undefined): (event: WebhookEvent) => number {
  if (typeof gapWait === "function") return (event) => boundedWait("gapWait", gapWait(event));
  const policy = choiceOption("gapWait", gapWait, "balanced", ["balanced", "strict", "eager"]);
  if (policy === "strict") return () => LAST_RETRY_MS;
  if (policy === "eager") return () => 0;
  return (event) => (event.eventType === "message.failed" ? BEFORE_FAILED_MS : BEFORE_OTHERS_MS);
}

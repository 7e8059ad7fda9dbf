/** How long a missing event is waited for, by policy. The wait only decides whether it comes in its place or late. */
import type { WebhookEvent } from "../events/types.ts";
import { choiceOption } from "../internal/options.ts";
import { boundedWait } from "./backoff.ts";
import { LAST_RETRY_MS } from "./gap.ts";

/** Milliseconds (0 to 24 h) by the event that would have to wait, or a policy by name. */
export type GapWait = "balanced" | "strict" | "eager" | ((event: WebhookEvent) => number);

/** The documented failure carries sequence 4 behind 2 (EVT-9): so short a wait that a normal path is not held up. */
const BEFORE_FAILED_MS = 90_000;
/** Covers three of the service's four retries. */
const BEFORE_OTHERS_MS = 22 * 60_000;

/** @throws SetupError for anything that is no policy; the returned function, when the user's gives no wait */
export function gapWaitPolicy(gapWait: GapWait | undefined): (event: WebhookEvent) => number {
  if (typeof gapWait === "function") return (event) => boundedWait("gapWait", gapWait(event));
  const policy = choiceOption("gapWait", gapWait, "balanced", ["balanced", "strict", "eager"]);
  if (policy === "strict") return () => LAST_RETRY_MS;
  if (policy === "eager") return () => 0;
  return (event) => (event.eventType === "message.failed" ? BEFORE_FAILED_MS : BEFORE_OTHERS_MS);
}

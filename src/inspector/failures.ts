/** What is answered when something throws, and what is told of it: codes, for anything else may hold a number or a text. */
import { SetupError, StoreError } from "../errors.ts";
import { failureCode } from "../inbox/failure.ts";
import type { SampledLog } from "../internal/sampled-log.ts";
import { refused } from "./answers.ts";
import type { InspectorAnswer } from "./http.ts";

export function failureAnswer(error: unknown, log: SampledLog): InspectorAnswer {
  // Of the inbox's filters: it names a filter and its bounds, never what a filter was to match.
  if (error instanceof SetupError && error.code === "invalid_option") return refused("invalid_request", error.message);
  const code = failureCode(error);
  if (error instanceof StoreError) {
    log.warn({ code }, "The inspector could not read the inbox, or write to it.");
    return refused("unavailable", "The inbox does not answer now. Try again in a moment.");
  }
  log.error({ code }, "The inspector failed to answer a request.");
  return refused("internal_error", "The inspector failed. The application's log says more.");
}

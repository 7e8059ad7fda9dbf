/** What is answered when something throws, and what is told of it: codes and texts of ours, for anything else may hold a number or a text. */
import { StoreError } from "../errors.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import type { SampledLog } from "../internal/logger.ts";
import { refused } from "./answers.ts";
import type { InspectorAnswer } from "./http.ts";

export function failureAnswer(error: unknown, log: SampledLog): InspectorAnswer {
  const fields = placeFields(error);
  if (error instanceof StoreError) {
    log.warn(fields, explained("The inspector could not read the inbox, or write to it.", error));
    return refused("unavailable", "The inbox does not answer now. Try again in a moment.");
  }
  log.error(fields, explained("The inspector failed to answer a request.", error));
  return refused("internal_error", "The inspector failed. The application's log says more.");
}

/** What the methods make of a success: the service's own object, and what the client adds to it. */
import { isRecord } from "../internal/type-guards.ts";
import { type CallFacts, RecipientsRejectedError, ResponseValidationError } from "./errors.ts";
import { recordOf } from "./refusal.ts";
import type { PhoneNumber, SendResult, UpdatedWebhookConfig } from "./types.ts";

export type Body = Readonly<Record<string, unknown>>;

/** The numbers of a list; what follows needs an array, whatever `validateResponses` says. */
export function numbersOf(body: Body, facts: CallFacts): readonly PhoneNumber[] {
  const { numbers } = body;
  if (!Array.isArray(numbers)) throw new ResponseValidationError(["numbers: expected array"], facts, body);
  return numbers;
}

/** The updated number; null when the service shows none (UPD-11). */
export function updatedNumberOf(body: Body, facts: CallFacts): PhoneNumber | null {
  const { number } = body;
  if (number === null || number === undefined) return null;
  if (!isRecord(number)) throw new ResponseValidationError(["number: expected object"], facts, body);
  return number as unknown as PhoneNumber;
}

/** A generated secret stays readable by its name, and out of logs and JSON. */
export function updatedConfigOf(body: Body): UpdatedWebhookConfig {
  const { generatedSecret: value, ...shown } = body;
  if (value !== undefined) Object.defineProperty(shown, "generatedSecret", { value, enumerable: false });
  return shown as unknown as UpdatedWebhookConfig;
}

/** Rejected recipients are data (CLI-9), until the caller asks for an error. */
export function sendResultOf(body: Body, facts: CallFacts & { readonly idempotencyKey: string }): SendResult {
  const { results, errors } = body;
  if (!Array.isArray(results)) throw new ResponseValidationError(["results: expected array"], facts, body);
  if (!Array.isArray(errors)) throw new ResponseValidationError(["errors: expected array"], facts, body);
  const result: SendResult = {
    ...body,
    results,
    errors,
    idempotencyKey: facts.idempotencyKey,
    allRejected: results.length === 0,
    throwIfRejected() {
      if (errors.length === 0) return result;
      const codes = errors.map((rejected) => String(recordOf(recordOf(rejected).error).code));
      throw new RecipientsRejectedError({ accepted: results.length, rejected: errors.length, codes }, facts);
    },
  };
  // Logged and compared as the data that it is.
  return Object.defineProperty(result, "throwIfRejected", { enumerable: false });
}

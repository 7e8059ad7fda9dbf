/** Records as the control API shows them: without secrets, which only an export of the state holds. */
import { z } from "zod";
import { redactedHeader, redactedText, withoutCredentials } from "../http/redaction.ts";
import type { JournalEntry } from "../journal.ts";
import type { Attempt, Delivery } from "../state/records.ts";
import { clientSchema, deliverySchema, statusSchema } from "../state/schemas.ts";
import type { ControlledClient } from "./control.ts";

export const clientViewSchema = clientSchema.omit({ clientSecret: true }).extend({ accountStatus: statusSchema });

export const deliveryViewSchema = deliverySchema
  .omit({ target: true, frozen: true })
  .extend({ target: z.strictObject({ url: z.string(), signed: z.boolean() }).nullable() });

export function clientView({ clientSecret, ...client }: ControlledClient): object {
  return client;
}

export function deliveryView({ target, frozen, ...delivery }: Delivery): object {
  return {
    ...delivery,
    attempts: delivery.attempts.map(attemptView),
    target: target === null ? null : { url: withoutCredentials(target.url), signed: target.secrets !== null },
  };
}

/** What a receiver answers is its own, and may hold its credentials. */
function attemptView({ responseHeaders, responseBody, ...attempt }: Attempt): Attempt {
  const headers = Object.entries(responseHeaders).map(([name, value]) => [name, redactedHeader(name, value)]);
  return { ...attempt, responseHeaders: Object.fromEntries(headers), responseBody: redactedText(responseBody) };
}

/** An entry of the event stream. */
export function entryView(entry: JournalEntry): object {
  return entry.type === "delivery" ? { ...entry, delivery: deliveryView(entry.delivery) } : entry;
}

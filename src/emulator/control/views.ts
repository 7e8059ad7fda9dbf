/** Records as the control API shows them: without secrets, which only an export of the state holds. */
import { z } from "zod";
import { withoutCredentials } from "../http/redaction.ts";
import type { JournalEntry } from "../journal.ts";
import type { Delivery } from "../state/records.ts";
import { clientSchema, deliverySchema } from "../state/schemas.ts";
import type { ControlledClient } from "./control.ts";

export const clientViewSchema = clientSchema
  .omit({ clientSecret: true })
  .extend({ accountStatus: z.enum(["ACTIVE", "INACTIVE"]) });

export const deliveryViewSchema = deliverySchema
  .omit({ target: true, frozen: true })
  .extend({ target: z.strictObject({ url: z.string(), signed: z.boolean() }).nullable() });

export function clientView({ clientSecret, ...client }: ControlledClient): object {
  return client;
}

export function deliveryView({ target, frozen, ...delivery }: Delivery): object {
  return {
    ...delivery,
    target: target === null ? null : { url: withoutCredentials(target.url), signed: target.secrets !== null },
  };
}

/** An entry of the event stream. */
export function entryView(entry: JournalEntry): object {
  return entry.type === "delivery" ? { ...entry, delivery: deliveryView(entry.delivery) } : entry;
}

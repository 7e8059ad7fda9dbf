/** What the controls take, once: checked for calls of a program, and as bodies and query parameters of the control API. */
import { z } from "zod";
import { OncehookError, SetupError } from "../../errors.ts";
import { isDeeper, MOST_LEVELS } from "../http/body.ts";
import { E164, isHttpUrl } from "../options.ts";
import { deliverySchema, statusSchema } from "../state/schemas.ts";

const text = z.string().min(1);
const instant = z.int().min(0);
/** Not `__proto__`, which objects lose, and nothing that a path would change. */
const recordId = z
  .string()
  .regex(/^[A-Za-z0-9][\w.-]{0,63}$/, "must be 1 to 64 letters, digits, dots, dashes and underscores");
const override = z.string().refine(isHttpUrl, "must be an http or https URL").nullable();

export const inboundSchema = z.strictObject({
  /** One of our numbers: its E.164 or its number id. */
  to: text,
  from: text,
  body: z.string(),
  media: z.array(z.json()).optional(),
});

export const errorSchema = z.strictObject({ code: text, message: z.string() });

export const triggerSchema = z.strictObject({
  kind: z.enum(["inbound", "delivery"]),
  eventType: text,
  apiClientId: text,
  numberId: text,
  messageId: text,
  sequence: z.int().nullable(),
  data: z.record(z.string(), z.json()),
});

const clientFields = {
  status: statusSchema,
  capabilities: z.array(text),
  clientSecret: text,
  accountStatus: statusSchema,
};

export const clientFieldsSchema = z.strictObject(clientFields).partial();

export const newClientSchema = z
  .strictObject({ apiClientId: recordId, clientId: text, name: z.string(), ...clientFields })
  .partial();

const numberFields = {
  e164: z.string().regex(E164, "must be an E.164 number"),
  status: statusSchema,
  campaignRegId: text.nullable(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: override,
  webhookDeliveryOverride: override,
  apiClientId: text,
};

export const numberFieldsSchema = z.strictObject(numberFields).partial();

export const newNumberSchema = z
  .strictObject({ numberId: recordId, ...numberFields })
  .partial()
  .required({ e164: true });

export const recoverSchema = z.strictObject({ since: instant });

const narrowing = { since: instant.optional(), limit: z.int().min(1).max(10_000).optional() };

/** By what each list can be narrowed. */
export const filters = {
  requests: z.strictObject(narrowing),
  messages: z.strictObject({ messageId: text.optional(), ...narrowing }),
  events: z.strictObject({ messageId: text.optional(), eventType: text.optional(), ...narrowing }),
  deliveries: z.strictObject({
    messageId: text.optional(),
    eventType: text.optional(),
    state: deliverySchema.shape.state.optional(),
    ...narrowing,
  }),
} as const;

/**
 * The value as its schema says, for a call of a program.
 *
 * @throws SetupError when it does not fit; the message names fields and types, none of its values
 */
export function fitted<T>(call: string, schema: z.ZodType<T>, value: unknown): T {
  const unfit = (problem: string) =>
    new SetupError("invalid_option", `control.${call} does not take this: ${problem}.`, { fields: { call } });
  // First: a schema walks through the value, and what it lets pass is written as JSON.
  if (isDeeper(value, MOST_LEVELS)) throw unfit(`it is nested deeper than ${MOST_LEVELS} levels`);
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw unfit(problemOf(parsed.error));
}

/** The fields that have a value: one that is given as undefined changes nothing. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Where a value does not fit, in a few words: `"to": Invalid input: expected string, received number`. */
export function problemOf(error: z.ZodError): string {
  const [issue] = error.issues;
  const path = issue?.path.join(".") ?? "";
  return path === "" ? `${issue?.message}` : `"${path}": ${issue?.message}`;
}

// The error of a call that names something that the emulator does not hold.

export function unknownId(thing: "client" | "delivery" | "fault rule" | "message" | "number"): OncehookError {
  return new OncehookError("unknown_id", `There is no such ${thing}.`, { fields: { thing } });
}

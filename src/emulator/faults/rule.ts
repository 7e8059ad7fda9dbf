/** A fault rule as users write it, in options, on the command line and over the control API: what it matches, what it does, how often. */
import { z } from "zod";
import { SetupError } from "../../errors.ts";
import { suggestion } from "../../internal/options.ts";

/** What goes wrong with an API call. */
const apiActions = [
  z.strictObject({
    type: z.literal("status"),
    status: z.int().min(400).max(599),
    code: z.string().min(1).max(64).optional(),
    retryAfterSeconds: z.int().min(0).max(86_400).optional(),
  }),
  z.strictObject({ type: z.literal("delay"), ms: z.int().min(0).max(600_000) }),
  z.strictObject({ type: z.literal("reset"), when: z.enum(["before", "after"]) }),
  z.strictObject({ type: z.literal("truncate") }),
  z.strictObject({ type: z.literal("badGateway") }),
  z.strictObject({ type: z.literal("revokeToken") }),
] as const;

/** What goes wrong with an event as a whole; decided once, before its first attempt. */
const eventActions = [
  z.strictObject({ type: z.literal("drop") }),
  z.strictObject({ type: z.literal("duplicate") }),
  z.strictObject({ type: z.literal("postpone"), ms: z.int().min(1).max(86_400_000) }),
  z.strictObject({ type: z.literal("reorder") }),
  z.strictObject({ type: z.literal("unknownEventType") }),
  z.strictObject({ type: z.literal("extraFields") }),
  z.strictObject({ type: z.literal("beforeAnswer") }),
] as const;

/** What goes wrong with one attempt; its retry is a new chance. */
const attemptActions = [
  z.strictObject({ type: z.literal("corruptBody") }),
  z.strictObject({ type: z.literal("invalidUtf8") }),
  z.strictObject({ type: z.literal("badSignature") }),
  z.strictObject({ type: z.literal("wrongSecret") }),
  z.strictObject({ type: z.literal("missingHeader"), header: z.enum(["timestamp", "signature"]) }),
  z.strictObject({ type: z.literal("staleTimestamp"), ms: z.int().min(1).max(31_557_600_000).default(86_400_000) }),
  z.strictObject({ type: z.literal("futureTimestamp"), ms: z.int().min(1).max(31_557_600_000).default(86_400_000) }),
  z.strictObject({ type: z.literal("unsigned") }),
  z.strictObject({ type: z.literal("dribble"), ms: z.int().min(1).max(60_000).default(1_000) }),
  z.strictObject({ type: z.literal("contentType"), value: z.string().min(1).max(128) }),
] as const;

const often = {
  /** How many times at most; without it, always. */
  times: z.int().min(1).max(1_000_000).optional(),
  /** The share of what matches, decided by the emulator's seed. */
  probability: z.number().min(0).max(1).optional(),
};

const apiFaultSchema = z.strictObject({
  /** `"POST /api/core/messages/send"`; with `{…}` where the path has a parameter. */
  match: z.strictObject({ route: z.string().min(1).max(200) }),
  action: z.discriminatedUnion("type", apiActions),
  ...often,
});

const webhookFaultSchema = z.strictObject({
  match: z.strictObject({
    webhook: z.literal(true),
    eventType: z.string().min(1).max(512).optional(),
    messageId: z.string().min(1).max(512).optional(),
  }),
  action: z.discriminatedUnion("type", [...eventActions, ...attemptActions]),
  ...often,
});

export const faultRuleSchema = z.union([apiFaultSchema, webhookFaultSchema]);

type Schemas = readonly { readonly shape: { readonly type: z.ZodLiteral<string> } }[];
const typesOf = (schemas: Schemas): readonly string[] => schemas.map(({ shape }) => shape.type.value);
const API_TYPES = typesOf(apiActions);
const EVENT_TYPES = typesOf(eventActions);
const WEBHOOK_TYPES = [...EVENT_TYPES, ...typesOf(attemptActions)];

/** A rule, complete: what parsing gives. */
export type ParsedFaultRule = z.output<typeof faultRuleSchema>;
/** A rule as users write it. */
export type FaultRule = z.input<typeof faultRuleSchema>;
export type ApiAction = z.output<(typeof apiActions)[number]>;
export type EventAction = z.output<(typeof eventActions)[number]>;
export type AttemptAction = z.output<(typeof attemptActions)[number]>;

/** Whether a webhook's action concerns the event as a whole, rather than one attempt. */
export function isEventAction(action: EventAction | AttemptAction): action is EventAction {
  return EVENT_TYPES.includes(action.type);
}

/**
 * Reads a rule.
 *
 * @throws SetupError that names the field at fault
 */
export function faultRuleFrom(value: unknown): ParsedFaultRule {
  const fields = z
    .looseObject({ match: z.looseObject({}), action: z.looseObject({ type: z.string() }) })
    .safeParse(value);
  if (!fields.success) {
    throw badRule(
      'takes { match: { route } or { webhook: true, … }, action: { type, … } }, and "times" or "probability"',
    );
  }
  const { match, action } = fields.data;
  const isForCalls = "route" in match;
  const types = isForCalls ? API_TYPES : WEBHOOK_TYPES;
  if (!types.includes(action.type)) {
    const known = suggestion(action.type, types);
    throw badRule(`has no action "${action.type}" for ${isForCalls ? "API calls" : "webhooks"}. ${known}`);
  }
  const parsed = (isForCalls ? apiFaultSchema : webhookFaultSchema).safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw badRule(`does not fit at "${issue?.path.join(".")}": ${issue?.message}`);
}

function badRule(problem: string): SetupError {
  return new SetupError("invalid_option", `A fault rule ${problem.replace(/\.$/, "")}.`, {
    fields: { option: "faults" },
  });
}

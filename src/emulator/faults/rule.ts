/** A fault rule as users write it, in options, on the command line and over the control API: what it matches, what it does, how often. */
import { z } from "zod";
import { SetupError } from "../../errors.ts";
import { API_ACTIONS, apiActions, attemptActions, eventActions, WEBHOOK_ACTIONS } from "./actions.ts";
import { likely, misfit, quoted, text, unknownField, whole } from "./fields.ts";

export type { ApiAction, AttemptAction, EventAction } from "./actions.ts";

const probabilityError = { error: "must be a number from 0 to 1" };

const often = {
  /** How many times at most; without it, always. */
  times: whole(1, 1_000_000).optional(),
  /** The share of what matches, decided by the emulator's seed. */
  probability: z.number(probabilityError).min(0, probabilityError).max(1, probabilityError).optional(),
};

const SIDES = '"route", for API calls, or, for webhooks, "eventType", "messageId" or "webhook": true';

const apiFaultSchema = z.strictObject({
  /** `"POST /api/core/messages/send"`; with `{…}` where the path has a parameter. */
  match: z.strictObject({ route: text(200) }),
  action: z.discriminatedUnion("type", apiActions),
  ...often,
});

const webhookFaultSchema = z.strictObject({
  /** All that is given must fit. */
  match: z
    .strictObject({
      /** All webhooks. Not needed beside the others. */
      webhook: z.literal(true, { error: "must be true" }).optional(),
      eventType: text(512).optional(),
      messageId: text(512).optional(),
    })
    .refine((match) => Object.values(match).some((value) => value !== undefined), { error: `must have ${SIDES}` }),
  action: z.discriminatedUnion("type", [...eventActions, ...attemptActions]),
  ...often,
});

export const faultRuleSchema = z.union([apiFaultSchema, webhookFaultSchema]);

/** A rule, complete: what parsing gives. */
export type ParsedFaultRule = z.output<typeof faultRuleSchema>;
/** A rule as users write it. */
export type FaultRule = z.input<typeof faultRuleSchema>;

const FIELDS = Object.keys(apiFaultSchema.shape);
const MATCHES = [
  ...Object.keys(apiFaultSchema.shape.match.shape),
  ...Object.keys(webhookFaultSchema.shape.match.shape),
];

const outline = z.looseObject({ match: z.looseObject({}), action: z.looseObject({ type: z.string() }) });

/**
 * Reads a rule.
 *
 * @throws SetupError that names the field at fault
 */
export function faultRuleFrom(value: unknown): ParsedFaultRule {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    refuseIf("", unknownField(value, FIELDS));
  }
  const { data: rule } = outline.safeParse(value);
  if (rule === undefined) {
    throw badRule(
      ' takes { match: { route } or { webhook: true, eventType, messageId }, action: { type, … } }, and "times" or "probability".',
    );
  }
  refuseIf(`'s "match"`, unknownField(rule.match, MATCHES));
  const isForCalls = "route" in rule.match;
  refuseIf(`'s "match"`, isForCalls && Object.keys(rule.match).length > 1 ? `has either ${SIDES}.` : undefined);
  refuseUnknownAction(rule.action, isForCalls);
  const parsed = (isForCalls ? apiFaultSchema : webhookFaultSchema).safeParse(value);
  if (parsed.success) return parsed.data;
  throw badRule(`'s ${misfit(parsed.error, value)}.`);
}

function refuseUnknownAction(action: { readonly type: string }, isForCalls: boolean): void {
  const { type, ...fields } = action;
  const [actions, others] = isForCalls ? [API_ACTIONS, WEBHOOK_ACTIONS] : [WEBHOOK_ACTIONS, API_ACTIONS];
  const known = actions.get(type);
  if (known !== undefined) return refuseIf(`'s action "${type}"`, unknownField(fields, known));
  const problem = ` has no action ${quoted(type)} for ${isForCalls ? "API calls" : "webhooks"}`;
  if (!others.has(type)) throw badRule(`${problem}. ${likely(type, [...actions.keys()])}`);
  throw badRule(`${problem}, only for ${isForCalls ? "webhooks" : 'API calls, which "match.route" names'}.`);
}

function refuseIf(part: string, problem: string | undefined): void {
  if (problem !== undefined) throw badRule(`${part} ${problem}`);
}

function badRule(rest: string): SetupError {
  return new SetupError("invalid_option", `A fault rule${rest}`, { fields: { option: "faults" } });
}

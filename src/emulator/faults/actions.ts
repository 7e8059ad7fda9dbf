/** What can go wrong: with a call of the API, with an event as a whole, with one attempt. */
import { z } from "zod";
import { either, text, whole } from "./fields.ts";

const LONGEST_SHIFT_MS = 31_557_600_000;

/** What goes wrong with an API call. */
export const apiActions = [
  z.strictObject({
    type: z.literal("status"),
    status: whole(400, 599),
    code: text(64).optional(),
    retryAfterSeconds: whole(0, 86_400).optional(),
  }),
  z.strictObject({ type: z.literal("delay"), ms: whole(0, 600_000) }),
  z.strictObject({ type: z.literal("reset"), when: either("before", "after") }),
  z.strictObject({ type: z.literal("truncate") }),
  z.strictObject({ type: z.literal("badGateway") }),
  z.strictObject({ type: z.literal("revokeToken") }),
] as const;

/** What goes wrong with an event as a whole; decided once, before its first attempt. */
export const eventActions = [
  z.strictObject({ type: z.literal("drop") }),
  z.strictObject({ type: z.literal("duplicate") }),
  z.strictObject({ type: z.literal("delay"), ms: whole(1, 86_400_000) }),
  z.strictObject({ type: z.literal("reorder") }),
  z.strictObject({ type: z.literal("unknownEventType") }),
  z.strictObject({ type: z.literal("extraFields") }),
  z.strictObject({ type: z.literal("eventBeforeResponse") }),
] as const;

/** A type that the specification does not have: the one that `unknownEventType` gives. */
export const UNKNOWN_EVENT_TYPE = "message.buffered";

/** Anything that a header can carry; receivers may meet what is no media type. */
const headerValue = text(128).regex(/^[!-~](?:[ -~]*[!-~])?$/, {
  error: "must be printable ASCII without spaces around it",
});

/** What goes wrong with one attempt; its retry is a new chance. */
export const attemptActions = [
  z.strictObject({ type: z.literal("corruptBody") }),
  z.strictObject({ type: z.literal("invalidUtf8") }),
  z.strictObject({ type: z.literal("badSignature") }),
  z.strictObject({ type: z.literal("wrongSecret") }),
  z.strictObject({ type: z.literal("missingHeader"), header: either("timestamp", "signature") }),
  z.strictObject({ type: z.literal("staleTimestamp"), ms: whole(1, LONGEST_SHIFT_MS).default(86_400_000) }),
  z.strictObject({ type: z.literal("futureTimestamp"), ms: whole(1, LONGEST_SHIFT_MS).default(86_400_000) }),
  z.strictObject({ type: z.literal("unsigned") }),
  z.strictObject({ type: z.literal("dribble"), ms: whole(1, 60_000).default(1_000) }),
  z.strictObject({ type: z.literal("contentType"), value: headerValue }),
] as const;

export type ApiAction = z.output<(typeof apiActions)[number]>;
export type EventAction = z.output<(typeof eventActions)[number]>;
export type AttemptAction = z.output<(typeof attemptActions)[number]>;

type Schemas = readonly { readonly shape: { readonly type: z.ZodLiteral<string> } }[];

/** Per action, the fields it takes besides its type. */
const fieldsOf = (schemas: Schemas): ReadonlyMap<string, readonly string[]> =>
  new Map(
    schemas.map(({ shape }) => [shape.type.value, Object.keys(shape).filter((name) => name !== "type")] as const),
  );

export const API_ACTIONS = fieldsOf(apiActions);
export const WEBHOOK_ACTIONS = fieldsOf([...eventActions, ...attemptActions]);

const EVENT_ACTIONS = fieldsOf(eventActions);

/** Whether a webhook's action concerns the event as a whole, rather than one attempt. */
export function isEventAction(action: EventAction | AttemptAction): action is EventAction {
  return EVENT_ACTIONS.has(action.type);
}

/** Whether a call's action answers in the service's place. */
export function standsIn(action: ApiAction): boolean {
  return action.type === "status" || action.type === "badGateway" || leavesNoAnswer(action);
}

/** Whether a call's action leaves nothing of its answer. */
export function leavesNoAnswer(action: ApiAction): boolean {
  return isReset(action, "before");
}

/** Whether a call's action happens to its answer, whoever gives that. */
export function befallsAnswer(action: ApiAction): boolean {
  return action.type === "truncate" || isReset(action, "after");
}

function isReset(action: ApiAction, when: "before" | "after"): boolean {
  return action.type === "reset" && action.when === when;
}

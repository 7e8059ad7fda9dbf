/** What goes wrong on purpose: fault rules as users write them, and which of them is played on a call, an event or an attempt. */
import { z } from "zod";
import { SetupError } from "../../errors.ts";
import type { Logger } from "../../internal/logger.ts";
import { suggestion } from "../../internal/options.ts";
import { isKnownEventType, KNOWN_EVENT_TYPES } from "../../sources/messaging/parse.ts";

// A fault rule as users write it: what it matches, what goes wrong, and what each field takes.

// Fields of fault rules, each with the words that say what it must be, and what is said of a value that is not.

function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

function text(max: number) {
  const error = `must be a text of 1 to ${max} characters`;
  return z.string({ error }).min(1, { error }).max(max, { error });
}

function either<const One extends string, const Other extends string>(one: One, other: Other) {
  return z.enum([one, other], { error: `must be "${one}" or "${other}"` });
}

/** What of a value a schema of these fields refuses: `"action.ms" must be a whole number from 1 to 60000; it is missing`. */
function misfit({ issues: [issue] }: z.ZodError, value: unknown): string {
  if (issue === undefined) return "";
  const rule = `"${issue.path.join(".")}" ${issue.message}`;
  if (issue.code === "custom") return rule;
  const wrong = issue.path.reduce<unknown>((whole, key) => (whole as Record<PropertyKey, unknown>)[key], value);
  if (typeof wrong !== "string") return `${rule}; it is ${kindOf(wrong)}`;
  if (wrong === "") return `${rule}; it is empty`;
  if (issue.code === "too_big") return `${rule}; it has ${wrong.length}`;
  return `${rule}; it is ${issue.code === "invalid_type" ? "a text" : "another text"}`;
}

/** A value in words; of texts, which can be anybody's, nothing is shown. */
function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** What is said of the first field that is none of the known ones: `has no field "time". Did you mean "times"?` */
function unknownField(fields: object, known: readonly string[]): string | undefined {
  const name = Object.keys(fields).find((key) => !known.includes(key));
  if (name === undefined) return undefined;
  return `has no field ${quoted(name)}${known.length === 0 ? "; it takes none." : `. ${likely(name, known)}`}`;
}

/** The suggestion for a name of any length: measuring a long one would take long. */
function likely(name: string, known: readonly string[]): string {
  return suggestion(shortened(name), known);
}

/** A name in quotes, on one line. */
function quoted(name: string): string {
  return JSON.stringify(shortened(name));
}

const LONGEST_NAME = 64;

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

// What can go wrong: with a call of the API, with an event as a whole, with one attempt.

const LONGEST_SHIFT_MS = 31_557_600_000;

/** What goes wrong with an API call. */
const apiActions = [
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
const eventActions = [
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

/** Anything that a header can carry; receivers may meet values that are not media types. */
const headerValue = text(128).regex(/^[!-~](?:[ -~]*[!-~])?$/, {
  error: "must be printable ASCII without spaces around it",
});

/** What goes wrong with one attempt; its retry is a new chance. */
const attemptActions = [
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

// Written by hand, because the types of this entry must not name zod. `faultRuleSchema` is typed by them.

/** What goes wrong with an API call. */
export type ApiAction =
  | {
      readonly type: "status";
      /** 400 to 599. */
      readonly status: number;
      /** The error's `code`, of 1 to 64 characters. */
      readonly code?: string | undefined;
      /** 0 to 86,400, in seconds. */
      readonly retryAfterSeconds?: number | undefined;
    }
  /** `ms`: 0 to 600,000. */
  | { readonly type: "delay"; readonly ms: number }
  /** Resets the connection before or after the call has its effect. */
  | { readonly type: "reset"; readonly when: "before" | "after" }
  | { readonly type: "truncate" | "badGateway" | "revokeToken" };

/** What goes wrong with an event as a whole. */
export type EventAction =
  | { readonly type: "drop" | "duplicate" | "reorder" | "unknownEventType" | "extraFields" | "eventBeforeResponse" }
  /** `ms`: 1 to 86,400,000. */
  | { readonly type: "delay"; readonly ms: number };

type PlainAttemptAction =
  | { readonly type: "corruptBody" | "invalidUtf8" | "badSignature" | "wrongSecret" | "unsigned" }
  | { readonly type: "missingHeader"; readonly header: "timestamp" | "signature" }
  /** `value`: 1 to 128 printable ASCII characters. */
  | { readonly type: "contentType"; readonly value: string };

type TimedAttempt = "staleTimestamp" | "futureTimestamp" | "dribble";

/** What goes wrong with one attempt; complete. */
export type AttemptAction = PlainAttemptAction | { readonly type: TimedAttempt; readonly ms: number };

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
function isEventAction(action: EventAction | AttemptAction): action is EventAction {
  return EVENT_ACTIONS.has(action.type);
}

/** Whether a call's action answers in the service's place. */
function standsIn(action: ApiAction): boolean {
  return action.type === "status" || action.type === "badGateway" || leavesNoAnswer(action);
}

/** Whether a call's action leaves nothing of its answer. */
function leavesNoAnswer(action: ApiAction): boolean {
  return isReset(action, "before");
}

/** Whether a call's action changes its answer, whatever the route answers. */
function befallsAnswer(action: ApiAction): boolean {
  return action.type === "truncate" || isReset(action, "after");
}

function isReset(action: ApiAction, when: "before" | "after"): boolean {
  return action.type === "reset" && action.when === when;
}

// A fault rule as users write it, in options, on the command line and over the control API: what it matches, what it does, how often.

const probabilityError = { error: "must be a number from 0 to 1" };

const often = {
  times: whole(1, 1_000_000).optional(),
  probability: z.number(probabilityError).min(0, probabilityError).max(1, probabilityError).optional(),
};

const SIDES = '"route", for API calls, or, for webhooks, "eventType", "messageId" or "webhook": true';

const apiFaultSchema = z.strictObject({
  match: z.strictObject({ route: text(200) }),
  action: z.discriminatedUnion("type", apiActions),
  ...often,
});

const webhookFaultSchema = z.strictObject({
  match: z
    .strictObject({
      webhook: z.literal(true, { error: "must be true" }).optional(),
      eventType: text(512).optional(),
      messageId: text(512).optional(),
    })
    .refine((match) => Object.values(match).some((value) => value !== undefined), { error: `must have ${SIDES}` }),
  action: z.discriminatedUnion("type", [...eventActions, ...attemptActions]),
  ...often,
});

interface Frequency {
  /** Plays at most this often, 1 to 1,000,000 times. Default: without a limit. */
  readonly times?: number | undefined;
  /** The share of matches that play, from 0 to 1, decided by the emulator's seed. Default: all. */
  readonly probability?: number | undefined;
}

interface ApiFault extends Frequency {
  /** The route: `"POST /api/core/messages/send"`, with `{…}` where the path has a parameter. */
  readonly match: { readonly route: string };
  readonly action: ApiAction;
}

interface WebhookFault<Action> extends Frequency {
  /** Matches a webhook that fits every field given. */
  readonly match: {
    /** Matches every webhook. Not needed besides the other fields. */
    readonly webhook?: true | undefined;
    readonly eventType?: string | undefined;
    readonly messageId?: string | undefined;
  };
  readonly action: Action;
}

/** A rule as users write it. */
export type FaultRule =
  | ApiFault
  | WebhookFault<
      | EventAction
      | PlainAttemptAction
      /** `ms`: 1 to 31,557,600,000 and by default a day; of `dribble` 1 to 60,000 and by default 1,000. */
      | { readonly type: TimedAttempt; readonly ms?: number | undefined }
    >;
/** A rule with its defaults filled in. */
export type ParsedFaultRule = ApiFault | WebhookFault<EventAction | AttemptAction>;

export const faultRuleSchema: z.ZodType<ParsedFaultRule, FaultRule> = z.union([apiFaultSchema, webhookFaultSchema]);

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

// The rules in force: which fault is played on which call, event or attempt.

/** The rules of what goes wrong. */
export interface Faults {
  /** Adds a rule and returns its id: `fault_000001`. */
  add(rule: FaultRule): string;
  remove(id: string): boolean;
  clear(): void;
  list(): readonly { readonly id: string; readonly rule: ParsedFaultRule; readonly played: number }[];
  /** What goes wrong with a call of this route; counts as played. */
  forCall(route: string): readonly ApiAction[];
  /** What goes wrong with an event as a whole. */
  forEvent(event: Subject): readonly EventAction[];
  /** What goes wrong with one attempt, which `attempt` names the same way in every run: `"dlv_4f2a91_000001/2"`. */
  forAttempt(event: Subject, attempt: string): readonly AttemptAction[];
}

interface Entry {
  readonly id: string;
  readonly rule: ParsedFaultRule;
  played: number;
  /** Calls it matched, played or not. */
  calls: number;
}

interface FaultGround {
  readonly settings: { readonly faults: readonly ParsedFaultRule[]; readonly logger: Logger };
  chance(purpose: string): number;
}

/** What of an event rules go by. */
interface Subject {
  readonly eventId: string;
  readonly eventType: string;
  readonly messageId: string;
}

/**
 * The rules of the settings, and those that are added later. They are this process's own: no part of a kept or exported state.
 *
 * @param routes - what a rule's `match.route` may name, such as `"POST /api/core/messages/send"`
 * @throws SetupError for a rule of the settings that names no route
 */
export function createFaults({ settings, chance }: FaultGround, routes: readonly string[]): Faults {
  const entries = new Map<string, Entry>();
  // A counter of its own: a state that is loaded or reset would give out an id again, or go on with another number.
  let added = 0;
  const warned = new Set<string>();

  function add(value: unknown): string {
    const rule = faultRuleFrom(value);
    if ("route" in rule.match) refuseUnknownRoute(rule.match.route, routes);
    else if (rule.match.eventType !== undefined) warnOfUnknownType(rule.match.eventType);
    added += 1;
    const id = `fault_${String(added).padStart(6, "0")}`;
    entries.set(id, { id, rule, played: 0, calls: 0 });
    return id;
  }

  /** Not refused: a call of the control API may trigger an event of any type. */
  function warnOfUnknownType(eventType: string): void {
    if (isKnownEventType(eventType) || eventType === UNKNOWN_EVENT_TYPE || warned.has(eventType)) return;
    warned.add(eventType);
    settings.logger.warn(
      { eventType },
      `A fault rule matches an event type that the service does not send. ${likely(eventType, KNOWN_EVENT_TYPES)}`,
    );
  }

  /** Whether a rule that matches is played; then it counts. Chance falls for rule and subject, so that runs repeat. */
  function play(entry: Entry, subject: string): boolean {
    const { id, rule, played } = entry;
    const { times = Number.POSITIVE_INFINITY, probability = 1 } = rule;
    if (played >= times) return false;
    if (probability < 1 && chance(`${id} on ${subject}`) >= probability) return false;
    entry.played += 1;
    return true;
  }

  function forCall(route: string): readonly ApiAction[] {
    let isAnswered = false;
    let isCut = false;
    return [...entries.values()].flatMap((entry) => {
      const { rule } = entry;
      if (!isForCalls(rule) || rule.match.route !== route) return [];
      entry.calls += 1;
      // Nothing comes before an answer that was given, or befalls one that is not: the rule's turn is a later call.
      if (isCut || (isAnswered && !befallsAnswer(rule.action))) return [];
      if (!play(entry, `call ${entry.calls}`)) return [];
      isAnswered ||= standsIn(rule.action);
      isCut ||= leavesNoAnswer(rule.action);
      return [rule.action];
    });
  }

  function forWebhook<Action extends EventAction | AttemptAction>(
    event: Subject,
    subject: string,
    isWanted: (action: EventAction | AttemptAction) => action is Action,
  ): readonly Action[] {
    return [...entries.values()].flatMap((entry) => {
      const { rule } = entry;
      if (isForCalls(rule) || !isWanted(rule.action) || !matches(rule, event)) return [];
      return play(entry, subject) ? [rule.action] : [];
    });
  }

  for (const rule of settings.faults) add(rule);
  return {
    add,
    remove: (id) => entries.delete(id),
    clear() {
      entries.clear();
      added = 0; // What is added next plays as it would in a new emulator.
    },
    list: () => [...entries.values()].map(({ id, rule, played }) => ({ id, rule, played })),
    forCall,
    forEvent: (event) => forWebhook(event, event.eventId, isEventAction),
    forAttempt: (event, attempt) => forWebhook(event, attempt, isAttemptAction),
  };
}

function refuseUnknownRoute(route: string, routes: readonly string[]): void {
  if (routes.includes(route)) return;
  const message = `A fault rule matches no route ${quoted(route)}. ${suggestion(route, routes)}`;
  throw new SetupError("invalid_option", message, { fields: { option: "faults" } });
}

type CallRule = Extract<ParsedFaultRule, { match: { route: string } }>;
type WebhookRule = Exclude<ParsedFaultRule, CallRule>;

function isForCalls(rule: ParsedFaultRule): rule is CallRule {
  return "route" in rule.match;
}

function isAttemptAction(action: EventAction | AttemptAction): action is AttemptAction {
  return !isEventAction(action);
}

/** Matching by event type and message; what a rule leaves out fits all. */
function matches({ match }: WebhookRule, { eventType, messageId }: Subject): boolean {
  const fitsType = match.eventType === undefined || match.eventType === eventType;
  return fitsType && (match.messageId === undefined || match.messageId === messageId);
}

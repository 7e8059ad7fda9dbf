/** The rules in force: which fault is played on which call, event or attempt. */
import { SetupError } from "../../errors.ts";
import { isKnownEventType, KNOWN_EVENT_TYPES } from "../../events/identity.ts";
import { suggestion } from "../../internal/options.ts";
import type { Faults, Ground } from "../service.ts";
import {
  type ApiAction,
  type AttemptAction,
  befallsAnswer,
  type EventAction,
  faultRuleFrom,
  isEventAction,
  leavesNoAnswer,
  likely,
  type ParsedFaultRule,
  quoted,
  standsIn,
  UNKNOWN_EVENT_TYPE,
} from "./rule.ts";

interface Entry {
  readonly id: string;
  readonly rule: ParsedFaultRule;
  played: number;
  /** Calls it matched, played or not. */
  calls: number;
}

type Subject = Parameters<Faults["forEvent"]>[0];

/**
 * The rules of the settings, and those that are added later. They are this process's own: no part of a kept or exported state.
 *
 * @param routes - what a rule's `match.route` may name, such as `"POST /api/core/messages/send"`
 * @throws SetupError for a rule of the settings that names no route
 */
export function createFaults(
  { settings, chance }: Pick<Ground, "settings" | "chance">,
  routes: readonly string[],
): Faults {
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

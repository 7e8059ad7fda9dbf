/** What `waitFor` is asked for: a message and one of its events, checked, and whether a stored event is that one. */
import { SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import { isKnownEventType, KNOWN_EVENT_TYPES, type KnownEventType, type WebhookEvent } from "../events/types.ts";
import type { EventRecord } from "../inbox/record.ts";
import { editDistance, invalidOption } from "../internal/options.ts";

/** Which message: as `client.messages.send` named it, or an inbound one by its `data.messageId`. */
export interface MessageRef {
  readonly apiClientId: string;
  readonly messageId: string;
}

export type Wanted = KnownEventType | (string & Record<never, never>) | ((event: WebhookEvent) => boolean);

/** Measuring a long text would take long, and it is no misspelt type. */
const LONGEST_COMPARED = 32;

/** @throws SetupError `invalid_option` where something is missing, or a type is a misspelt one */
export function checkWanted(ref: MessageRef, wanted: Wanted): void {
  if (typeof ref !== "object" || ref === null) throw invalidOption("ref", "must be { apiClientId, messageId }", ref);
  for (const name of ["apiClientId", "messageId"] as const) {
    if (!isText(ref[name])) throw invalidOption(`ref.${name}`, "must be a text that is not empty", ref[name]);
  }
  if (typeof wanted === "function") return;
  if (!isText(wanted)) throw invalidOption("wanted", "must be an event type or a function", wanted);
  const meant = misspelt(wanted);
  if (meant === undefined) return;
  const message = `waitFor() knows no event type "${wanted}". Did you mean "${meant}"? If the service has such a type, give a function.`;
  throw new SetupError("invalid_option", message, { fields: { option: "wanted" } });
}

/** The event, if it is the wanted one. One whose body is pruned parses to none: settled long ago, it can no longer be given. */
export function matching(record: EventRecord, wanted: Wanted): WebhookEvent | null {
  if (typeof wanted === "string" && record.eventType !== wanted) return null;
  const parsed = parseEvent(record.raw);
  if (!parsed.ok) return null;
  return typeof wanted === "string" || wanted(parsed.event) ? parsed.event : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * The known type that was meant. Narrower than in `on()`, for a type that the service adds later may be waited for:
 * `message.read` is no misspelt `message.sent`. So no more letters may differ than a third of the type's last word.
 */
function misspelt(type: string): KnownEventType | undefined {
  if (isKnownEventType(type) || type.length > LONGEST_COMPARED) return undefined;
  const given = type.toLowerCase();
  return KNOWN_EVENT_TYPES.find((known) => {
    const word = known.slice(known.indexOf(".") + 1);
    return Math.min(editDistance(given, known), editDistance(given, word)) <= Math.floor(word.length / 3);
  });
}

/** What a body says, without the numbers and texts in it: what may be seen unless somebody asks for more. */
import { MAX_DEPTH } from "../../events/structure.ts";
import { maskNumbers } from "../../internal/mask-numbers.ts";

/** Texts that tell what an event is, as far as they look like an id or a word of a program. */
const IDS = new Set(["apiClientId", "messageId", "conversationId", "numberId", "providerMessageRef"]);
const WORDS = new Set(["eventType", "direction", "status", "code"]);
const PLAIN_ID = /^[\w.:-]+$/;
const PLAIN_WORD = /^[A-Za-z][\w.:-]*$/;
/** Times and places: whatever else has seven digits may be somebody's number. */
const PLAIN_NUMBERS = new Set(["occurredAt", "timestamp", "sequence"]);
const TELEPHONE = /^\+?[\d\s().-]+$/;

/**
 * Its JSON with numbers masked to their last two digits and texts left out; of anything else only the size. What nests deeper than an event may is
 * left out too: a quarantined body may have a hundred thousand levels, for which neither this nor what writes JSON has the stack.
 */
export function maskedBody(raw: Uint8Array): unknown {
  try {
    return masked(JSON.parse(Buffer.from(raw).toString()), "", MAX_DEPTH);
  } catch {
    return `[${raw.length} bytes that are no JSON]`;
  }
}

/** `levels` are those that are still shown. */
function masked(value: unknown, key: string, levels: number): unknown {
  if (typeof value === "string") return maskedText(value, key);
  if (typeof value === "number") return PLAIN_NUMBERS.has(key) ? value : maskedNumber(value);
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return "[nested too deep to be shown]";
  if (Array.isArray(value)) return value.map((item) => masked(item, key, levels - 1));
  const entries = Object.entries(value).map(([name, item]) => [maskNumbers(name), masked(item, name, levels - 1)]);
  return Object.fromEntries(entries);
}

function maskedText(text: string, key: string): string {
  if (text === "" || (IDS.has(key) && PLAIN_ID.test(text)) || (WORDS.has(key) && PLAIN_WORD.test(text))) return text;
  const shown = maskNumbers(text);
  // The application's own reference, which people search by.
  if (key === "externalReference") return shown;
  // Fewer digits are no telephone number, and may be what somebody has to type in.
  return TELEPHONE.test(text) && shown !== text ? shown : "[text]";
}

function maskedNumber(value: number): number | string {
  const written = `${value}`;
  const shown = maskNumbers(written);
  return shown === written ? value : shown;
}

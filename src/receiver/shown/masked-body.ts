/** What a body says, without the numbers and texts in it: what may be seen unless somebody asks for more. */
import { MAX_DEPTH } from "../../events/parse.ts";
import { shownText } from "../../inbox/masking.ts";
import { maskNumbers } from "../../internal/logger.ts";

/** Times and places: whatever else has seven digits may be somebody's number. */
const PLAIN_NUMBERS = new Set(["occurredAt", "timestamp", "sequence"]);

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
  if (typeof value === "string") return shownText(value, key);
  if (typeof value === "number") return PLAIN_NUMBERS.has(key) ? value : maskedNumber(value);
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return "[nested too deep to be shown]";
  if (Array.isArray(value)) return value.map((item) => masked(item, key, levels - 1));
  const entries = Object.entries(value).map(([name, item]) => [maskNumbers(name), masked(item, name, levels - 1)]);
  return Object.fromEntries(entries);
}

function maskedNumber(value: number): number | string {
  const written = `${value}`;
  const shown = maskNumbers(written);
  return shown === written ? value : shown;
}

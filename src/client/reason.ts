/**
 * The service's own reason for a refusal, as far as it can be shown in an error's message and so in logs: up to the first thing that
 * the caller may have sent, or that is not a plain sentence. `serviceMessage` has the whole.
 */
import { maskNumbers } from "../internal/logger.ts";

const LONGEST = 300;
const REDACTED = "[redacted]";
/** A quoted word, such as a field's name, is shown unless it was sent. */
const QUOTED_NAME = /(["'`])[A-Za-z][\w.[\]]{0,39}\1/g;
/** Quotations, JSON, pages, addresses, percent-encoded texts and credentials. */
const NOT_A_SENTENCE =
  /["`“”‘«<{[]|(?<![\p{L}\p{N}])'|\w+:\/\/|\S*%[\da-f]{2}|(?<![\p{L}\p{N}])(?:Bearer|Basic)\s+\S|=\S/iu;
/** Longer than words are: a token, a digest, a text in base64. */
const OPAQUE = /\S{20,}/g;
/** A field's name, which may be long. */
const NAME = /^[("'`]?[A-Za-z][A-Za-z_.]{0,49}[)"'`]?[.,:;]?$/;
const WORD = /[\p{L}\p{N}]+/gu;
/** So many words of a text in a row are that text: a service may cut what it repeats, or write it in another way. */
const TELLING_WORDS = 3;
/** Fields with words of the specification, which no caller wrote. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(["messageType", "mimeType", "sendFrom"]);

/** `: the reason`, to stand after the status; empty when nothing of it can be shown. `sent` is what must not be repeated. */
export function maskedReason(message: string, sent: readonly string[]): string {
  // One line, whatever the service writes: a message must not make a second line of a log.
  const line = message
    .slice(0, 4 * LONGEST)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  const end = Math.min(firstSent(line, sent), firstUnplain(line));
  const shown = maskNumbers(line.slice(0, end)).trim();
  if (shown === "" || !/\p{L}/u.test(shown)) return "";
  const whole = end < line.length ? `${shown} ${REDACTED}` : shown.replace(/[.\s]+$/, "");
  return `: ${whole.length > LONGEST ? `${whole.slice(0, LONGEST - 1)}…` : whole}`.toWellFormed();
}

/** All texts in what was sent, as JSON or as they are. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return Object.entries(value).flatMap(([name, field]) => (PLAIN_FIELDS.has(name) ? [] : textsIn(field)));
}

function firstUnplain(line: string): number {
  const unquoted = line.replace(QUOTED_NAME, (quoted) => "x".repeat(quoted.length));
  const found = NOT_A_SENTENCE.exec(unquoted)?.index ?? line.length;
  for (const { 0: run, index } of line.matchAll(OPAQUE)) if (!NAME.test(run)) return Math.min(found, index);
  return found;
}

/** Where the first of these texts begins, compared word by word: its punctuation, case and end may differ. */
function firstSent(line: string, sent: readonly string[]): number {
  const words = [...line.matchAll(WORD)].map(({ 0: word, index }) => ({ word: word.toLowerCase(), index }));
  // A send may have thousands of recipients; most are nowhere in the line.
  const known = new Set(words.map(({ word }) => word));
  let first = line.length;
  for (const text of sent) {
    const wanted = (text.slice(0, 2 * LONGEST).match(WORD) ?? []).slice(0, TELLING_WORDS).map((w) => w.toLowerCase());
    const [head] = wanted;
    if (head === undefined) {
      const index = text.trim() === "" ? -1 : line.indexOf(text.trim());
      if (index >= 0) first = Math.min(first, index);
      continue;
    }
    if (!known.has(head)) continue;
    const at = words.findIndex((_, i) => wanted.every((word, offset) => words[i + offset]?.word === word));
    first = Math.min(first, words[at]?.index ?? first);
  }
  return first;
}

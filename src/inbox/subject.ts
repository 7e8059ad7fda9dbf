/** The subject of an erasure or an export: a person, by their number, or a message; and which lanes and bodies are about it. */
import type { EventRecord, LaneRecord } from "./record.ts";
import type { Act } from "./store.ts";

/** The person whose data an erasure or an export is about: the other party of messages, or one message. */
export type Subject = Extract<Act, { kind: "erase" }>["subject"];

interface SubjectTest<E> {
  isAbout(lane: Pick<LaneRecord, "key" | "peer"> & { readonly events: readonly E[] }): boolean;
  isEventAbout(event: E): boolean;
  isNamedIn(raw: Uint8Array): boolean;
}

/** @param bodiesOf - all bodies kept of an event; read only if nothing else decides it */
export function createSubjectTest<E extends Pick<EventRecord, "ownId">>(
  subject: Subject,
  bodiesOf: (event: E) => readonly Uint8Array[],
): SubjectTest<E> {
  const byPeer = "peer" in subject;
  const isNamedIn = createMentionTest(byPeer ? subject.peer : subject.id);
  const isEventAbout = (event: E) => (!byPeer && event.ownId === subject.id) || bodiesOf(event).some(isNamedIn);
  return {
    isNamedIn,
    isEventAbout,
    isAbout({ key, peer, events }) {
      if (byPeer && peer !== null) return peer === subject.peer;
      // By sequence a lane is a message. In all others only the events say what they are about.
      if (!byPeer && key.order === "sequence") return key.name === subject.id;
      return events.some(isEventAbout);
    },
  };
}

/**
 * Makes a test for bodies that contain `text`. In a JSON body it must be one whole string or number, however it is escaped, so that
 * `msg_1` is not found in `msg_10`. In any other body, and in the values of a form, it must stand between characters that are not part of a
 * word.
 *
 * @param text - three characters or more
 */
export function createMentionTest(text: string): (raw: Uint8Array) => boolean {
  const bytes = Buffer.from(text);
  return (raw) => {
    const body = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
    // Most bodies end here.
    if (!body.includes(bytes) && !body.includes(BACKSLASH) && !body.includes(PERCENT)) return false;
    const written = body.toString();
    const meant = unescaped(written);
    if (isJson(written)) return written.includes(text) || meant.includes(text) ? hasValue(written, text) : false;
    return standsIn(written, text) || standsIn(meant, text) || hasFormValue(written, text);
  };
}

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
/** A string literal of a JSON document. Not parsed values: a parser keeps only the last of two equal keys. */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(.))/gs;
const CONTROL: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
/** Shorter numbers are amounts and counters more often than a name of somebody. */
const NUMBER = /^\d{7,}$/;
const NUMBERS = /-?\d+(?:\.\d+)?/g;
const FORM = /^[^\s=&]+=[^\s]*$/;
const WORD = /[\p{L}\p{N}_]/u;

function isJson(written: string): boolean {
  try {
    JSON.parse(written);
    return true;
  } catch {
    return false;
  }
}

function hasValue(json: string, text: string): boolean {
  for (const [literal] of json.matchAll(STRING)) if (unescaped(literal.slice(1, -1)) === text) return true;
  // Once its strings are cut out, each number stands between punctuation.
  return NUMBER.test(text) && (json.replace(STRING, '""').match(NUMBERS)?.includes(text) ?? false);
}

/** A form, as some services send it: `To=%2B15550100002&Body=Hi`. */
function hasFormValue(written: string, text: string): boolean {
  if (!FORM.test(written)) return false;
  for (const value of new URLSearchParams(written).values()) if (value === text || standsIn(value, text)) return true;
  return false;
}

function unescaped(written: string): string {
  if (!written.includes("\\")) return written;
  return written.replace(ESCAPE, (_all, hex: string | undefined, character: string) =>
    hex === undefined ? (CONTROL[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Whether `whole` contains `text` without a letter, digit or underscore right before or after it. */
function standsIn(whole: string, text: string): boolean {
  for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + 1)) {
    if (!WORD.test(whole.charAt(at - 1)) && !WORD.test(whole.charAt(at + text.length))) return true;
  }
  return false;
}

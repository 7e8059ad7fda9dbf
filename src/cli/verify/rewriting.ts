/** The same content in other bytes: what parsers, serialisers and character sets make of a body. */
import { Buffer } from "node:buffer";
import { readJson } from "../../events/parse.ts";
import { isRecord } from "../../internal/options.ts";
import type { Change } from "./change.ts";

/** How a serialiser separates. */
interface Style {
  readonly comma: string;
  readonly colon: string;
}

const COMPACT: Style = { comma: ",", colon: ":" };
/** `json.dumps` of Python, unless told otherwise. */
const SPACED: Style = { comma: ", ", colon: ": " };

/** As the specification lists them, which is how the service is likely to write them. */
const FIELDS = [
  ...["eventType", "direction", "occurredAt", "apiClientId", "messageId", "sequence", "data"],
  ...["externalReference", "conversationId", "numberId", "from", "sendFrom", "to", "body", "media", "timestamp"],
  ...["status", "error", "code", "message", "details", "providerMessageRef"],
];

export function rewritten(body: Buffer): Change<Buffer>[] {
  const text = body.toString("utf8");
  return [...respelled(text), ...recoded(body), ...reserialised(text.replace(/^\uFEFF/, ""))];
}

/** Undefined for what is no JSON, or none that a receiver reads: too deep to be written again without overflowing the stack. */
export function jsonOf(text: string): unknown {
  const read = readJson(Buffer.from(text));
  return read.ok ? read.value : undefined;
}

/** Characters written in another way, everything else being as it was. */
function respelled(text: string): Change<Buffer>[] {
  const texts: readonly [string, string][] = [
    ["the body with plain characters for its escapes", unescaped(text)],
    ["the body with escapes for all but ASCII", inAscii(text)],
    ["the body in normal form C", text.normalize("NFC")],
    ["the body in normal form D", text.normalize("NFD")],
  ];
  return texts.map(([told, each]) => ({ value: Buffer.from(each), cause: "body_unicode", told }));
}

function recoded(body: Buffer): Change<Buffer>[] {
  const text = body.toString("utf8");
  const values = [
    Buffer.from(body.toString("latin1")),
    Buffer.from(body.toString("utf16le").replace(/^\uFEFF/, "")),
    // What does not fit into a byte was never decoded as latin1.
    ...(/[^\0-\u00ff]/.test(text) ? [] : [Buffer.from(text, "latin1")]),
  ];
  return values.map((value) => ({ value, cause: "body_charset", told: "the body in another character set" }));
}

function reserialised(json: string): Change<Buffer>[] {
  const value = jsonOf(json);
  if (value === undefined) return [];
  const compact = written(value, COMPACT);
  const spaced = written(value, SPACED);
  const texts: readonly [string, string][] = [
    ["compact JSON", compact],
    ["JSON indented by 2", JSON.stringify(value, null, 2)],
    ["JSON indented by 4", JSON.stringify(value, null, 4)],
    ["JSON indented by tabs", JSON.stringify(value, null, "\t")],
    ["JSON with spaces behind commas and colons", spaced],
    ["JSON with spaces behind commas and colons, in ASCII", inAscii(spaced)],
    ["compact JSON in ASCII", inAscii(compact)],
    ["compact JSON with escaped slashes", compact.replaceAll("/", "\\/")],
    ["compact JSON in ASCII with escaped slashes", inAscii(compact.replaceAll("/", "\\/"))],
    ["compact JSON with escapes for <, > and &", compact.replace(/[<>&]/g, escaped)],
    ["compact JSON with its fields sorted", written(sorted(value, alphabetically), COMPACT)],
    ["compact JSON with its fields as specified", written(sorted(value, asSpecified), COMPACT)],
  ];
  return texts.map(([told, text]) => ({
    value: Buffer.from(text),
    cause: "body_reserialised",
    told: `the body as ${told}`,
  }));
}

/** JSON without numbers' or characters' choices: only the separators differ between styles. */
function written(value: unknown, style: Style): string {
  const { comma, colon } = style;
  if (Array.isArray(value)) return `[${value.map((each) => written(each, style)).join(comma)}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}${colon}${written(each, style)}`);
  return `{${fields.join(comma)}}`;
}

/** In JSON these characters stand in texts only, so that the whole can be gone through. */
function inAscii(text: string): string {
  return text.replace(/[^\0-\x7f]/g, escaped);
}

function escaped(unit: string): string {
  return [...Array(unit.length).keys()].map((at) => `\\u${unit.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
}

/** Not those that JSON needs: quotation marks, backslashes and control characters. */
function unescaped(text: string): string {
  const plain = text.replace(/(?<!\\)((?:\\\\)*)\\u([\da-f]{4})/gi, (whole, before: string, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return character < " " || `"\\`.includes(character) ? whole : `${before}${character}`;
  });
  return plain.replaceAll("\\/", "/");
}

type Order = (a: string, b: string) => number;

const alphabetically: Order = (a, b) => (a < b ? -1 : 1);

const asSpecified: Order = (a, b) => rankOf(a) - rankOf(b);

function rankOf(name: string): number {
  const rank = FIELDS.indexOf(name);
  return rank < 0 ? FIELDS.length : rank;
}

function sorted(value: unknown, order: Order): unknown {
  if (Array.isArray(value)) return value.map((each) => sorted(each, order));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => order(a, b));
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each, order)]));
}

/** A captured request, read from the files that people have: raw HTTP, what `curl -v` printed, lines of headers, JSON. */
import { Buffer } from "node:buffer";
import { isRecord } from "../../../internal/options.ts";
import { CommandError, USAGE_MISTAKE } from "../exit.ts";

/** As it was written. Several of one name are several entries. */
export type Header = readonly [name: string, value: string];

export interface Capture {
  readonly headers: readonly Header[];
  readonly body: Buffer;
}

/** No receiver takes more, whatever its options. */
export const MOST_BODY_BYTES = 1_048_576;

/** No webhook has a larger head. */
const MOST_HEADERS = 200;
const MOST_HEAD_CHARACTERS = 65_536;

/** A name as HTTP allows it. Nothing else is printed. */
const NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
const START_LINE = /^(?:[A-Z]+ \S+(?: HTTP\/[\d.]+)?|HTTP\/[\d.]+ \d{3}.*)$/;

/** The headers of a file. @throws CommandError naming the line that is not a header, or for more headers than a webhook has */
export function headersOf(text: string): Header[] {
  const bare = text.replace(/^\uFEFF/, "");
  const headers = /^\s*[[{]/.test(bare) ? headersOfJson(bare) : headersOfLines(bare);
  if (headers.length === 0) throw mistake("There is no header in it.");
  if (headers.length > MOST_HEADERS) throw mistake(`There are more than ${MOST_HEADERS} headers in it.`);
  const size = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (size <= MOST_HEAD_CHARACTERS) return headers;
  throw mistake("They are larger than 64 KiB.");
}

/** A whole request: its head, an empty line, and a body that goes on to the end of the file. */
export function requestOf(bytes: Buffer): Capture {
  const text = bytes.toString("latin1");
  const end = /\r?\n\r?\n/.exec(text);
  const headers = headersOf(end === null ? text : text.slice(0, end.index));
  const rest = bytes.subarray(end === null ? bytes.length : end.index + end[0].length);
  // Chunks and a declared length belong to HTTP: no receiver sees them as a part of the body.
  const body = /\bchunked\b/i.test(firstValue(headers, "transfer-encoding") ?? "") ? (dechunked(rest) ?? rest) : rest;
  return { headers, body: body.subarray(0, declaredLength(headers) ?? body.length) };
}

/** The value of Content-Length; undefined if it is not a length. */
export function declaredLength(headers: readonly Header[]): number | undefined {
  const text = firstValue(headers, "content-length");
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The values of all headers of a name, in whatever case. */
export function valuesOf(headers: readonly Header[], name: string): string[] {
  return headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

export function firstValue(headers: readonly Header[], name: string): string | undefined {
  return valuesOf(headers, name)[0];
}

/** As `http.IncomingMessage` would hold them. */
export function headerRecord(headers: readonly Header[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(headers.map(([name]) => [name.toLowerCase(), valuesOf(headers, name.toLowerCase())]));
}

/** The content of all chunks of `Transfer-Encoding: chunked`; null when the bytes are not whole chunks. */
function dechunked(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  for (let position = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", position, "latin1");
    const [, digits] =
      /^([\da-f]{1,8})(?:;.*)?$/i.exec(bytes.toString("latin1", position, Math.max(position, lineEnd))) ?? [];
    if (digits === undefined) return null;
    const start = lineEnd + 2;
    const end = start + Number.parseInt(digits, 16);
    if (end === start) return Buffer.concat(parts);
    if (bytes.toString("latin1", end, end + 2) !== "\r\n") return null;
    parts.push(bytes.subarray(start, end));
    position = end + 2;
  }
}

function headersOfLines(text: string): Header[] {
  const lines = text.split(/\r?\n/);
  // What curl sent; `<` is the answer, `*` its own remarks.
  const sent = lines.filter((line) => /^> ?/.test(line));
  if (sent.length > 0) return linesToHeaders(sent.map((line) => line.replace(/^> ?/, "")));
  return linesToHeaders(lines);
}

function linesToHeaders(lines: readonly string[]): Header[] {
  const headers: { readonly name: string; readonly values: string[] }[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") {
      if (headers.length > 0) break;
      continue;
    }
    const last = headers.at(-1);
    if (/^[ \t]/.test(line) && last !== undefined) {
      last.values.push(withoutBlanks(line));
    } else if (!line.startsWith(":") && !(headers.length === 0 && START_LINE.test(line))) {
      const [name, value] = headerOfLine(line, index + 1);
      headers.push({ name, values: [value] });
    }
  }
  return headers.map(({ name, values }) => [name, withoutBlanks(values.join(" "))]);
}

function headerOfLine(line: string, number: number): Header {
  const colon = line.indexOf(":");
  if (colon > 0) return checked(line.slice(0, colon).trim(), line.slice(colon + 1), `Line ${number}`);
  throw mistake(`Line ${number} is not a header: write "Name: value", or give a whole request as --request.`);
}

/** An object, pairs, a flat list as `rawHeaders` has it, or `{ name, value }` each; alone or in a field "headers". */
function headersOfJson(text: string): Header[] {
  const value = parsed(text);
  const found = isRecord(value) && (isRecord(value.headers) || Array.isArray(value.headers)) ? value.headers : value;
  if (isRecord(found)) return Object.entries(found).flatMap(([name, each]) => entriesOf(name, each));
  if (!Array.isArray(found)) throw mistake("Its JSON must be an object of headers, or a list of them.");
  if (found.every((each) => typeof each === "string")) return pairsOf(found);
  return found.flatMap((each: unknown) => {
    if (Array.isArray(each)) return entriesOf(each[0], each[1]);
    return isRecord(each) ? entriesOf(each.name, each.value) : entriesOf(undefined, undefined);
  });
}

function pairsOf(flat: readonly string[]): Header[] {
  return flat.flatMap((name, index) => (index % 2 === 0 ? entriesOf(name, flat[index + 1]) : []));
}

function entriesOf(name: unknown, value: unknown): Header[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values
    .filter((each) => each !== null)
    .map((each) => {
      const isValue = typeof each === "string" || typeof each === "number";
      if (typeof name === "string" && isValue) return checked(name, `${each}`, "A header of the JSON");
      throw mistake("A header of its JSON has no name, or a value that is not text.");
    });
}

function checked(name: string, value: string, where: string): Header {
  if (NAME.test(name)) return [name, withoutBlanks(value)];
  throw mistake(`${where} has a name that HTTP does not allow.`);
}

/** Without HTTP's blanks around it. A regular expression would take quadratic time on blanks inside of a value. */
function withoutBlanks(value: string): string {
  const isBlank = (index: number) => value[index] === " " || value[index] === "\t";
  let [start, end] = [0, value.length];
  while (start < end && isBlank(start)) start += 1;
  while (start < end && isBlank(end - 1)) end -= 1;
  return value.slice(start, end);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw mistake("It begins like JSON, but is not JSON.");
  }
}

function mistake(what: string): CommandError {
  return new CommandError(`The headers cannot be read. ${what}`, USAGE_MISTAKE);
}

/** The bodies that may have been signed, given the one that was captured: each undoes what something on the way can do. */
import { Buffer } from "node:buffer";
import { brotliDecompressSync, gunzipSync, inflateSync, type ZlibOptions } from "node:zlib";
import { isRecord } from "../../internal/options.ts";
import { MOST_BODY_BYTES } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import { type Change, distinct } from "./change.ts";
import { dechunked } from "./chunks.ts";
import { jsonOf, rewritten } from "./rewriting.ts";

type BodyChange = Change<Buffer>;

const BOM = "\uFEFF";

/** First the body as it is. */
export function bodyChanges(body: Buffer, declaredLength: number | undefined): readonly BodyChange[] {
  const changes: BodyChange[] = [
    { value: body, cause: null, told: "the body" },
    ...lineBreaks(body),
    ...cut(body, declaredLength),
    ...unpacked(body),
    ...rewritten(body),
  ];
  return distinct(changes, (bytes) => bytes.toString("latin1"));
}

function change(cause: CauseCode, told: string, value: Buffer | string): BodyChange {
  return { value: Buffer.from(value), cause, told };
}

/** What editors, shells and text modes do to a file. As latin1, so that each byte stays what it is. */
function lineBreaks(body: Buffer): BodyChange[] {
  const text = body.toString("latin1");
  const bytes = (value: string) => Buffer.from(value, "latin1");
  const bom = Buffer.from(BOM);
  const hasBom = body.subarray(0, bom.length).equals(bom);
  return [
    change("body_line_break", "the body without the line break at its end", bytes(text.replace(/\r?\n$/, ""))),
    change("body_line_break", "the body and a line break", bytes(`${text}\n`)),
    change("body_line_break", "the body and a line break (CRLF)", bytes(`${text}\r\n`)),
    change("body_bom", "the body without its byte order mark", hasBom ? body.subarray(bom.length) : body),
    change("body_bom", "a byte order mark and the body", Buffer.concat([bom, body])),
    change("body_space", "the trimmed body", bytes(text.trim())),
    change("body_line_endings", "the body with LF for CRLF", bytes(text.replaceAll("\r\n", "\n"))),
    change("body_line_endings", "the body with CRLF for LF", bytes(text.replace(/\r?\n/g, "\r\n"))),
    change(
      "body_line_endings",
      "the body with LF for CRLF, and none at its end",
      bytes(text.replaceAll("\r\n", "\n").trimEnd()),
    ),
  ];
}

function cut(body: Buffer, length: number | undefined): BodyChange[] {
  const json = /^[\s\S]*[}\]]/.exec(body.toString("latin1"))?.[0].length ?? body.length;
  const lengths = [...(length === undefined ? [] : [length]), json].filter((each) => each < body.length);
  return lengths.map((each) => change("body_extended", `the first ${each} bytes of the body`, body.subarray(0, each)));
}

/** What a proxy or a gateway may have packed it into. */
function unpacked(body: Buffer): BodyChange[] {
  const text = body.toString("utf8").trim();
  const inner = innerTexts(text).flatMap((each) => [each, ...base64Decoded(each)]);
  return [
    ...decompressed(body).map((each) => change("body_compressed", "the decompressed body", each)),
    ...[dechunked(body)].flatMap((each) =>
      each === null ? [] : change("body_chunked", "the body without its chunks", each),
    ),
    ...[...inner, ...base64Decoded(text)].map((each) => change("body_wrapped", "what is in the body", each)),
  ];
}

function decompressed(body: Buffer): Buffer[] {
  // A bomb must not fill the memory.
  const bounds: ZlibOptions = { maxOutputLength: MOST_BODY_BYTES };
  return [gunzipSync, inflateSync, brotliDecompressSync].flatMap((decompress) => {
    try {
      return [decompress(body, bounds)];
    } catch {
      return [];
    }
  });
}

/** A JSON text, or an object with such a field. */
function innerTexts(text: string): string[] {
  const value = jsonOf(text);
  if (typeof value === "string") return [value];
  if (!isRecord(value)) return [];
  const { body, rawBody, payload } = value;
  return [body, rawBody, payload].filter((each) => typeof each === "string");
}

function base64Decoded(text: string): Buffer[] {
  return text.length > 1 && /^[\w+/-]+=*$/.test(text) ? [Buffer.from(text, "base64")] : [];
}

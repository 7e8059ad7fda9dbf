/** Turns the signature header's text into 32-byte candidates, strictly: one text per signature and encoding. */
import { Buffer } from "node:buffer";
import { choiceOption } from "../internal/options.ts";

/** How a signature is written. `"auto"` decides by length: 64 hex digits, 44 base64 or 43 base64url characters. */
export type SignatureEncoding = "auto" | "hex" | "base64" | "base64url";

/** More signatures than this in one delivery are refused: each costs a comparison. */
const MAX_CANDIDATES = 5;

const SIGNATURE_BYTES = 32;
/** Five of the longest form (`sha256=` and 64 digits) with room for separators. */
const LONGEST_HEADER = 512;
const HEX = /^[0-9A-Fa-f]{64}$/;
/** One signature with its optional prefix. `v1,` belongs to the prefix, so it is taken before a comma can separate. */
const ENTRY = /(?:sha256=|v1[=,])?([A-Za-z0-9+/_-]{43,64}=?)/y;
const SEPARATOR = / *, *| +/y;

/** Checks an `encoding` option. @throws SetupError */
export function signatureEncodingOption(value: unknown): SignatureEncoding {
  return choiceOption<SignatureEncoding>("encoding", value, "auto", ["auto", "hex", "base64", "base64url"]);
}

/**
 * The signatures in a header, separated by comma or space; null when any of them is malformed or there are more than five.
 * A list in which one entry is junk is refused as a whole: the service never writes one.
 */
export function parseCandidates(text: string, encoding: SignatureEncoding): readonly Uint8Array[] | null {
  if (text.length === 64 && HEX.test(text)) {
    return encoding === "auto" || encoding === "hex" ? [Buffer.from(text, "hex")] : null;
  }
  return text.length > LONGEST_HEADER ? null : parseList(text, encoding);
}

function parseList(text: string, encoding: SignatureEncoding): readonly Uint8Array[] | null {
  const candidates: Uint8Array[] = [];
  let position = 0;
  while (candidates.length < MAX_CANDIDATES) {
    ENTRY.lastIndex = position;
    const candidate = decode(ENTRY.exec(text)?.[1], encoding);
    if (candidate === null) return null;
    candidates.push(candidate);
    if (ENTRY.lastIndex === text.length) return candidates;
    SEPARATOR.lastIndex = ENTRY.lastIndex;
    if (!SEPARATOR.test(text)) return null;
    position = SEPARATOR.lastIndex;
  }
  return null;
}

/** Length decides the encoding; re-encoding must give the same text, so that no signature has a second spelling. */
function decode(text: string | undefined, pinned: SignatureEncoding): Uint8Array | null {
  if (text === undefined) return null;
  const encoding = encodingByLength(text.length);
  if (encoding === null || (pinned !== "auto" && pinned !== encoding)) return null;
  if (encoding === "hex") return HEX.test(text) ? Buffer.from(text, "hex") : null;
  const bytes = Buffer.from(text, encoding);
  return bytes.length === SIGNATURE_BYTES && bytes.toString(encoding) === text ? bytes : null;
}

function encodingByLength(length: number): "hex" | "base64" | "base64url" | null {
  if (length === 64) return "hex";
  if (length === 44) return "base64";
  return length === 43 ? "base64url" : null;
}

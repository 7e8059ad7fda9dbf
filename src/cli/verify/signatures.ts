/** Where a signature may stand, and whether a text writes a digest, in any of the ways that people write one. */
import { Buffer } from "node:buffer";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/sign.ts";
import { parseCandidates } from "../../signature/verify.ts";
import { type Header, valuesOf } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import { type Change, distinct } from "./change.ts";

/** A header's value. */
export interface SignatureText {
  readonly text: string;
  /** What in it can be a signature. */
  readonly tokens: readonly string[];
  /** As a receiver reads it: hex, base64 or base64url, with the prefixes that it knows. */
  readonly isWellFormed: boolean;
}

/** How a digest is written. */
export interface Spelling {
  readonly encoding: "hex" | "base64" | "base64url" | null;
  readonly cause: CauseCode | null;
  /** `hex`, `base64 of the hex digits` */
  readonly told: string;
}

const OTHER_NAME = /sign|hmac|digest|sha-?(?:1|256|512)/i;
/** Nothing shorter: 16 characters of a digest are no accident. */
const TOKEN = /[A-Za-z\d+/_-]{16,}={0,2}|(?:[A-Fa-f\d]{2}[: -]){15,}[A-Fa-f\d]{2}/g;

/** First the header's own value, if it is there. */
export function signatureChanges(headers: readonly Header[]): readonly Change<SignatureText>[] {
  const own = valuesOf(headers, SIGNATURE_HEADER);
  const changes: Change<SignatureText>[] = [
    ...(own.length === 0 ? [] : [change(own.join(", "), null, "X-Service-Signature")]),
    ...valuesOf(headers, TIMESTAMP_HEADER).map((value) => change(value, "headers_swapped", "X-Service-Timestamp")),
    ...headers
      .filter(([name]) => OTHER_NAME.test(name) && name.toLowerCase() !== SIGNATURE_HEADER)
      .map(([name, value]) => change(value, "header_renamed", name)),
  ];
  return distinct(changes, ({ text }) => text);
}

function change(text: string, cause: CauseCode | null, told: string): Change<SignatureText> {
  // "v1,…" and "t=…": what stands before a sign is a word of its own.
  const tokens = [...text.matchAll(TOKEN), ...text.replace(/\b\w{1,10}[=,:]/g, " ").matchAll(TOKEN)].map(
    ([each]) => each,
  );
  const isWellFormed = parseCandidates(text, "auto") !== null;
  return { value: { text, tokens: [...new Set(tokens)], isWellFormed }, cause, told };
}

/** How the text writes the digest; null when it writes another one. */
export function spellingOf(digest: Buffer, { text, tokens, isWellFormed }: SignatureText): Spelling | null {
  for (const token of tokens) {
    const spelling = tokenSpelling(digest, token);
    if (spelling === null) continue;
    const isBare = isWellFormed || text === token || spelling.cause !== null;
    return isBare ? spelling : { ...spelling, cause: "signature_prefix" };
  }
  return null;
}

function tokenSpelling(digest: Buffer, token: string): Spelling | null {
  const hex = digest.toString("hex");
  const low = token.toLowerCase();
  if (low === hex) return { encoding: "hex", cause: null, told: token === low ? "hex" : "upper-case hex" };
  const base64 = digest.toString("base64");
  const base64url = digest.toString("base64url");
  if (token === base64) return { encoding: "base64", cause: null, told: "base64" };
  if (token === base64url) return { encoding: "base64url", cause: null, told: "base64url" };
  const bare = base64.replace(/=+$/, "");
  const misspelt = (told: string, cause: CauseCode = "signature_encoding") => ({ encoding: null, cause, told });
  if (token === bare) return misspelt("base64 without padding");
  if (token.replace(/=+$/, "") === base64url) return misspelt("base64url with padding");
  if (low === bare.toLowerCase() || low === base64.toLowerCase())
    return misspelt("base64 in one case", "signature_case");
  if (low === base64url.toLowerCase()) return misspelt("base64url in one case", "signature_case");
  if (low.replace(/[: -]/g, "") === hex) return misspelt("hex with separators");
  return ofDigits(hex, token) ?? beginning([hex, bare, base64url], token);
}

/** Digits that were taken for a text, and encoded once more. */
function ofDigits(hex: string, token: string): Spelling | null {
  const texts = [hex, hex.toUpperCase()].map((digits) => Buffer.from(digits).toString("base64"));
  const isThat = texts.some((text) => text.replace(/=+$/, "") === token.replace(/=+$/, ""));
  return isThat ? { encoding: null, cause: "signature_encoding", told: "base64 of the hex digits" } : null;
}

function beginning(texts: readonly string[], token: string): Spelling | null {
  const isPart = texts.some((text) => token.length < text.length && text.startsWith(token));
  return isPart ? { encoding: null, cause: "signature_truncated", told: "the beginning of it" } : null;
}

/** What a request fails for: a code for programs, and for people what happened and how to mend it. */

/** In the order in which a request is looked at; each with what happened, and the fix. */
export const CAUSES = {
  headers_missing: [
    "Neither X-Service-Timestamp nor X-Service-Signature arrived.",
    "Switch signing on for this webhook (signingEnabled: true), and let proxies pass both headers on.",
  ],
  timestamp_missing: ["X-Service-Timestamp did not arrive.", "Let whatever stands in front of you pass it on."],
  signature_missing: ["X-Service-Signature did not arrive.", "Let whatever stands in front of you pass it on."],
  header_renamed: [
    "A header arrived under another name.",
    "Let the proxy pass X-Service-Timestamp and X-Service-Signature on under these names.",
  ],
  headers_swapped: [
    "Each of the two headers holds the other one's value.",
    "Put them back where they are set: in a proxy, or in a test's own code.",
  ],
  header_duplicated: [
    "X-Service-Timestamp arrived more than once, or was joined with itself by a comma.",
    "Let the proxy pass it on without setting it again.",
  ],
  timestamp_form: [
    "The timestamp is not 10 or 13 digits.",
    "Pass the header on as it came. If the service writes it so, set timestampFormat to a function that reads it.",
  ],
  timestamp_unit: [
    "The timestamp is of another unit than the one expected or signed.",
    'Leave timestampFormat at "auto", and pass the text on exactly as received: never a number that was parsed and printed again.',
  ],
  signature_prefix: [
    "Something stands around the signature that is no part of it.",
    "Pass the bare signature on; sha256=, v1= and v1, are taken as well.",
  ],
  signature_encoding: [
    "The signature is written in another encoding than the one expected.",
    'Leave encoding at "auto": 64 hex digits, 44 characters of base64 or 43 of base64url.',
  ],
  signature_case: [
    "The case of the signature's letters was changed, and base64 does not survive that.",
    "Find what lower-cases header values, a proxy or a test's own code, and make it stop.",
  ],
  signature_truncated: ["Only a part of the signature arrived.", "Find what cuts it: a column, a proxy, a log."],
  signature_form: [
    "The signature is no text of 32 bytes in hex, base64 or base64url.",
    "Compare it with what the service sends; --guess looks for other schemes.",
  ],
  too_old: [
    "It was signed longer ago than the tolerance when it arrived.",
    "Look at the receiver's clock. If it is right, this was a late retry or a replay; see toleranceMs.",
  ],
  clock_skew: [
    "Its timestamp lies in the future: the signer's clock and the receiver's differ.",
    "Synchronise the receiver's clock (NTP), and the time given as --at.",
  ],
  secret_form: [
    "The secret is none that a receiver takes.",
    "It has at least 16 bytes, in the encoding that was given: let the client make one (rotateSecret), or see what cut it.",
  ],
  previous_secret: [
    "It is signed with the previous secret.",
    "List that as previous: { secret, validUntil } until the service has stopped to use it.",
  ],
  secret_line_break: [
    "The secret here and at the service differ by a line break at the end.",
    "Trim what you read from the file (printf, not echo, writes one without), or set the secret at the service again.",
  ],
  secret_whitespace: ["The secret has white space at an end that the service's has not.", "Trim it where it is read."],
  secret_quotes: [
    "The secret here and at the service differ by quotation marks around it.",
    "Take them away where it is set: docker --env-file and systemd keep them, a shell does not.",
  ],
  secret_encoding: [
    "The signer's key and the secret's text are the same, but one of them in another encoding.",
    'Give the secret with its encoding: { secret, encoding: "base64" } or "hex".',
  ],
  secret_prefix: [
    "The signer leaves out the prefix of the secret, such as whsec_.",
    'Leave it out too, and give { secret, encoding: "base64" } if the rest is base64.',
  ],
  secret_escaped: [
    "The secret holds escapes (%2B, \\n) that the service's has resolved, or the other way round.",
    "Give the plain text where it is set.",
  ],
  secret_case: ["The secret differs in the case of its letters.", "Copy it again, exactly."],
  secret_undefined: [
    "It is signed with no secret at all, or with a word such as undefined in its place.",
    "Set the secret where it is signed: a variable is empty there.",
  ],
  body_empty: [
    "The body is empty.",
    "Read the bytes before any body parser does: mount the webhook first, or keep the raw bytes (captureRawBody).",
  ],
  body_line_break: [
    "The body has a line break at its end too many, or lacks one.",
    "Keep the bytes as they came; editors, echo and templates add one.",
  ],
  body_line_endings: [
    "The body's line ends were converted.",
    "Keep the bytes as they came: no text mode, no git autocrlf.",
  ],
  body_bom: [
    "A byte order mark stands before the body, or was taken away.",
    "Keep the bytes as they came; save as plain UTF-8.",
  ],
  body_space: ["White space around the body was added or taken away.", "Keep the bytes as they came: no trim()."],
  body_reserialised: [
    "The body was parsed and written again: the same content, other bytes.",
    "Verify the raw bytes before any body parser; never JSON.stringify(request.body).",
  ],
  body_unicode: [
    "Characters of the body were written in another way: as escapes, or in another normal form.",
    "Verify the raw bytes before any parser; they must never be decoded and encoded again.",
  ],
  body_charset: [
    "The body was decoded in another character set than UTF-8, and encoded again.",
    "Keep the bytes: no latin1, and no text, between the socket and the check.",
  ],
  body_compressed: [
    "The body is compressed, and the signature is of what is in it.",
    "Nothing may compress it on its way (the receiver answers 415); decompress it before the check if a proxy must.",
  ],
  body_chunked: [
    "The body still has the framing of Transfer-Encoding: chunked.",
    "Capture it behind the HTTP server, or give the whole request as --request.",
  ],
  body_wrapped: [
    "The body lies inside another one: as base64, as a JSON text, or in a field of a gateway's event.",
    "Take it out before the check; with isBase64Encoded, decode it first.",
  ],
  body_truncated: [
    "The body ends too early.",
    "Look for a limit in front of the check: a proxy's, a logger's, a database column's.",
  ],
  body_extended: ["Something stands behind the body's end.", "Cut it at Content-Length."],
  body_of_another_request: [
    "Body and headers do not belong to one request.",
    "Capture both in one place, and look for a variable that several requests share.",
  ],
  signed_text: [
    "The signer does not sign <timestamp>.<body>, but something else.",
    "The signer has to sign the timestamp's text, a dot and the raw body; --guess shows what it signs.",
  ],
  algorithm: ["The signer does not use SHA-256.", "The signer has to use HMAC-SHA256; --guess shows what it uses."],
  wrong_secret: [
    "Headers and body look whole, so the secret is another one than the signer's.",
    "Copy the secret of this webhook kind and this environment again; inbound and delivery have one each.",
  ],
} as const satisfies Readonly<Record<string, readonly [what: string, fix: string]>>;

export type CauseCode = keyof typeof CAUSES;

/** What a request fails for. */
export interface Cause {
  readonly code: CauseCode;
  /** The signature matched once this was mended; else it is the likeliest of what can be seen. */
  readonly proven: boolean;
  readonly what: string;
  readonly fix: string;
}

export function causeOf(code: CauseCode, proven: boolean): Cause {
  const [what, fix] = CAUSES[code];
  return { code, proven, what, fix };
}

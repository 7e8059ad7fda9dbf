/** Why a request failed: a code for programs, and for people what happened and how to fix it. */

/** In the order in which a request is checked; each with what happened, and the fix. */
export const CAUSES = {
  headers_missing: [
    "Neither X-Service-Timestamp nor X-Service-Signature arrived.",
    "Turn signing on for this webhook (signingEnabled: true), and let proxies pass both headers on.",
  ],
  timestamp_missing: ["X-Service-Timestamp did not arrive.", "Let the proxy in front of your application pass it on."],
  signature_missing: ["X-Service-Signature did not arrive.", "Let the proxy in front of your application pass it on."],
  header_renamed: [
    "A header arrived under another name.",
    "Let the proxy pass X-Service-Timestamp and X-Service-Signature on under these names.",
  ],
  headers_swapped: [
    "Each of the two headers has the value of the other.",
    "Correct the code that sets them: a proxy, or a test.",
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
    "The timestamp has another unit than the expected or the signed one.",
    'Leave timestampFormat at "auto", and pass the text on exactly as received: never parse and print the number.',
  ],
  signature_encoding: [
    "The signature has another encoding than the expected one.",
    'Leave encoding at "auto": 64 hex digits, 44 characters of base64 or 43 of base64url.',
  ],
  signature_form: [
    "The signature is not 32 bytes in hex, base64 or base64url.",
    "Compare it with what the service sends. A proxy, a log or a column may have cut or changed it.",
  ],
  too_old: [
    "When the request arrived, its signature was older than the tolerance.",
    "Check the receiver's clock. If it is right, this was a late retry or a replay; see toleranceMs.",
  ],
  clock_skew: [
    "The timestamp is in the future: the clocks of the signer and of the receiver differ.",
    "Synchronise the receiver's clock (NTP), and check the time given as --at.",
  ],
  secret_form: [
    "A receiver refuses this secret.",
    "It needs at least 16 bytes, in the encoding that was given. Let the client create one (rotateSecret), or find what cut it.",
  ],
  previous_secret: [
    "The request is signed with the previous secret.",
    "List that as previous: { secret, validUntil } until the service no longer uses it.",
  ],
  secret_line_break: [
    "The secret has a line break or white space at an end, here or at the service, and the other side has none.",
    "Trim what you read from the file (printf writes no line break, echo does), or set the secret at the service again.",
  ],
  secret_quotes: [
    "The secret has quotation marks around it here, and none at the service.",
    "Remove them where it is set: docker --env-file and systemd keep them, a shell does not.",
  ],
  secret_encoding: [
    "The secret is right, but it is read in another encoding than the signer's.",
    'Give the secret with its encoding: { secret, encoding: "base64" } or "hex".',
  ],
  body_empty: [
    "The body is empty.",
    "Read the bytes before any body parser does: mount the webhook first, or keep the raw bytes (captureRawBody).",
  ],
  body_line_break: [
    "The body has one line break too many or too few at its end.",
    "Keep the bytes as they came; editors, echo and templates add one.",
  ],
  body_reserialised: [
    "The body was parsed and written again: the same content, other bytes.",
    "Verify the raw bytes before any body parser; never JSON.stringify(request.body).",
  ],
  body_compressed: [
    "The body is compressed, and the signature is of the uncompressed one.",
    "No proxy may compress it (the receiver answers 415). If one must, decompress the body before the check.",
  ],
  body_truncated: [
    "The body ends too early.",
    "Look for a limit before the check: of a proxy, a logger, a database column.",
  ],
  body_of_another_request: [
    "Body and headers do not belong to one request.",
    "Capture both in one place, and look for a variable that several requests share.",
  ],
  wrong_secret: [
    "Headers and body look right, so the signer has another secret.",
    "Copy the secret of this webhook kind and this environment again; inbound and delivery have one each.",
  ],
} as const satisfies Readonly<Record<string, readonly [what: string, fix: string]>>;

export type CauseCode = keyof typeof CAUSES;

/** Why a request failed. */
export interface Cause {
  readonly code: CauseCode;
  /** The signature matched once this was undone. Otherwise it is the likeliest of what can be seen. */
  readonly proven: boolean;
  readonly what: string;
  readonly fix: string;
}

export function causeOf(code: CauseCode, proven: boolean): Cause {
  const [what, fix] = CAUSES[code];
  return { code, proven, what, fix };
}

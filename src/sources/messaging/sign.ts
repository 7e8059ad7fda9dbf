/** HMAC-SHA256 over a timestamp and a body: signs as the service does. */
import type { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { SetupError } from "../../errors.ts";
import { systemClock } from "../../internal/clock.ts";
import { choiceOption, invalidOption } from "../../internal/options.ts";
import { type Secret, type SecretEncoding, secretBytes } from "../secret.ts";

/** The header with the timestamp text, which is part of what is signed (DLV-5). `X-Service-Timestamp` on the wire. */
export const TIMESTAMP_HEADER = "x-service-timestamp";
/** The header with the signature. `X-Service-Signature` on the wire. */
export const SIGNATURE_HEADER = "x-service-signature";

/** The forms in which the service may write a signature (DLV-12). */
export type WrittenEncoding = "hex" | "HEX" | "base64" | "base64url" | "sha256=hex" | "v1=hex";

/** The two headers of a signed delivery. A type, not an interface, so that it is assignable to a record of headers. */
export type SignatureHeaders = {
  "x-service-timestamp": string;
  "x-service-signature": string;
};

export interface SignOptions {
  /** The exact bytes to send; a string means its UTF-8 bytes. */
  body: Uint8Array | string;
  /** Not empty. There is no other length rule, because the service has none; a receiver requires 16 bytes. Scopes are ignored. */
  secret: Secret;
  /** Epoch milliseconds (default: now), or the literal header text. */
  timestamp?: number | string;
  /** How a numeric timestamp is written. Default `"ms"` (DLV-13). */
  unit?: "ms" | "s";
  /** Default `"hex"`. */
  encoding?: WrittenEncoding;
}

const ENCODINGS: readonly WrittenEncoding[] = ["hex", "HEX", "base64", "base64url", "sha256=hex", "v1=hex"];

/**
 * HMAC-SHA256 over `<timestamp text>.<body bytes>` (DLV-5), as the two headers of a delivery.
 *
 * @throws SetupError for an empty secret or an unknown encoding
 * @example
 * const body = JSON.stringify({ eventType: "message.inbound" });
 * const headers = signPayload({ body, secret: "a secret of 16 bytes or more" });
 * await fetch(url, { method: "POST", headers, body });
 */
export function signPayload(options: SignOptions): SignatureHeaders {
  const encoding = choiceOption("encoding", options.encoding, "hex", ENCODINGS);
  const timestamp = timestampText(options);
  const digest = createHmac("sha256", keyBytes(options.secret)).update(`${timestamp}.`).update(options.body).digest();
  return { [TIMESTAMP_HEADER]: timestamp, [SIGNATURE_HEADER]: write(digest, encoding) };
}

function timestampText({ timestamp = systemClock.now(), unit }: SignOptions): string {
  const divisor = choiceOption("unit", unit, "ms", ["ms", "s"]) === "s" ? 1000 : 1;
  if (typeof timestamp === "string") return timestamp;
  if (!Number.isFinite(timestamp)) throw invalidOption("timestamp", "must be epoch milliseconds or a text", timestamp);
  return String(Math.floor(timestamp / divisor));
}

function keyBytes(secret: Secret): Uint8Array {
  const { secret: text, encoding }: { secret: string; encoding?: SecretEncoding } =
    typeof secret === "string" ? { secret } : secret;
  const checked = choiceOption<SecretEncoding>("secret.encoding", encoding, "utf8", ["utf8", "base64", "hex"]);
  if (typeof text === "string" && text !== "") return secretBytes("secret", text, checked);
  throw new SetupError("invalid_secret", 'Option "secret" must be a text that is not empty.', {
    fields: { option: "secret" },
  });
}

function write(digest: Buffer, encoding: WrittenEncoding): string {
  switch (encoding) {
    case "hex":
      return digest.toString("hex");
    case "HEX":
      return digest.toString("hex").toUpperCase();
    case "base64":
    case "base64url":
      return digest.toString(encoding);
    case "sha256=hex":
      return `sha256=${digest.toString("hex")}`;
    case "v1=hex":
      return `v1=${digest.toString("hex")}`;
    default:
      return encoding satisfies never;
  }
}

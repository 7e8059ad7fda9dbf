/** HMAC-SHA256 over a timestamp and a body: for verifying, and for signing as the service does. */
import { Buffer } from "node:buffer";
import { createHmac, hash } from "node:crypto";
import { SetupError } from "../errors.ts";
import { systemClock } from "../internal/clock.ts";
import { choiceOption, invalidOption } from "../internal/options.ts";
import { type Secret, type SecretEncoding, secretBytes } from "./secret.ts";

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

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/** Scratch space to assemble messages that fit. Hashing is synchronous, so all keys share it; it is never read again. */
const scratch = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * HMAC-SHA256 under one key (RFC 2104) as two one-shot hashes. Creating and collecting an object of `createHmac` costs more than hashing
 * such a message: under load a delivery takes a tenth less processor time this way. `signPayload()` stays with `createHmac`, so every
 * test that signs and verifies compares the two. The pads are private fields, so that an accidental log line never shows the key.
 */
export class HmacKey {
  readonly #inner: Buffer;
  readonly #outer: Buffer;

  constructor(key: Uint8Array) {
    const block = key.length > BLOCK_BYTES ? hash("sha256", key, "buffer") : key;
    this.#inner = Buffer.alloc(BLOCK_BYTES, INNER_PAD);
    this.#outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, OUTER_PAD);
    block.forEach((byte, index) => {
      this.#inner[index] = byte ^ INNER_PAD;
      this.#outer[index] = byte ^ OUTER_PAD;
    });
  }

  /** The 32-byte HMAC of `text` as UTF-8, followed by `body`. */
  digest(text: string, body: Uint8Array): Buffer {
    const textBytes = Buffer.byteLength(text);
    const size = BLOCK_BYTES + textBytes + body.length;
    const message = size <= scratch.length ? scratch.subarray(0, size) : Buffer.allocUnsafeSlow(size);
    message.set(this.#inner);
    message.write(text, BLOCK_BYTES);
    message.set(body, BLOCK_BYTES + textBytes);
    // A binary string is faster than a Buffer that the native side allocates.
    this.#outer.write(hash("sha256", message, "binary"), BLOCK_BYTES, "binary");
    return Buffer.from(hash("sha256", this.#outer, "binary"), "binary");
  }
}

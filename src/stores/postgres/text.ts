/** Texts of the service as bytes: `text` of Postgres takes no NUL, and UTF-8 no half of a surrogate pair. */
import { Buffer } from "node:buffer";

/** Never begins UTF-8. */
const NOT_UTF8 = 0xff;

export function textBytes(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, "utf8");
  return Buffer.concat([Buffer.of(NOT_UTF8), Buffer.from(text, "utf16le")]);
}

export function bytesText(bytes: Buffer): string {
  return bytes[0] === NOT_UTF8 ? bytes.toString("utf16le", 1) : bytes.toString("utf8");
}

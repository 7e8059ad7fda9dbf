/** Files that a command is given: read whole, but never without end, and taken for text only if they are text. */
import { Buffer } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";
import type { Readable } from "node:stream";
import { CommandError, FAILURE, isSystemError, USAGE_MISTAKE } from "./failure.ts";

/** How much is read at most of what a person writes: a secret, a text. */
export const WRITTEN_BYTES = 65_536;

/** What is read, and how much of it. */
export interface Reading {
  /** In messages: `the file of --text-file, text.txt`. */
  readonly name: string;
  readonly mostBytes: number;
}

/** The bytes of a file, pipe or device. @throws CommandError when it cannot be read, or holds more; then no more is read of it */
export function bytesOfFile(file: string, reading: Reading): Buffer {
  // By a byte more than is allowed, so that a file of just as many is none too large.
  const bytes = Buffer.alloc(reading.mostBytes + 1);
  const length = attempt(reading.name, () => fill(bytes, file));
  if (length === bytes.length) throw tooLarge(reading);
  return bytes.subarray(0, length);
}

/** The same of a stream. */
export async function bytesOfStream(stream: Readable, reading: Reading): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > reading.mostBytes) throw tooLarge(reading);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The text of UTF-8, to the byte; null for other bytes, which decoding with substitutes would make alike. */
export function textOfBytes(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** How many bytes were read: as many as fit, or all. A size is not asked for: pipes and devices have none. */
function fill(bytes: Buffer, file: string): number {
  const descriptor = openSync(file, "r");
  try {
    let length = 0;
    let read: number;
    do {
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
      length += read;
    } while (read > 0 && length < bytes.length);
    return length;
  } finally {
    closeSync(descriptor);
  }
}

function attempt<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    throw new CommandError(`Cannot read ${name}: ${cause.code}.`, FAILURE, { cause });
  }
}

function tooLarge({ name, mostBytes }: Reading): CommandError {
  return new CommandError(`Cannot read ${name}: it is larger than ${mostBytes / 1024} KiB.`, USAGE_MISTAKE);
}

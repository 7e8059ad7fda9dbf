/** What a command is given to read: files, and secrets from a file, the environment or a prompt. */
import { Buffer } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { type Command, Option } from "commander";
import { CommandError, FAILURE, isSystemError, USAGE_MISTAKE } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

// Files that a command is given: read whole, but never without end, and taken for text only if they are text.

/** How much is read at most of what a person writes: a secret, a text. */
export const WRITTEN_BYTES = 65_536;

/** What is read, and how much of it. */
interface Reading {
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

// Secrets of a command: from a file, the environment or a prompt; never from an argument, which process lists show.

/** A secret that a command takes. */
export interface SecretSource {
  /** `secret-file`, without dashes. */
  readonly flag: string;
  /** Read when the flag is absent. */
  readonly environment: string;
  /** For help, prompt and messages: `the webhook signing secret`. */
  readonly what: string;
}

export const WEBHOOK_SECRET: SecretSource = {
  flag: "secret-file",
  environment: "ONCEHOOK_WEBHOOK_SECRET",
  what: "the webhook signing secret",
};
export const PREVIOUS_SECRET: SecretSource = {
  flag: "previous-secret-file",
  environment: "ONCEHOOK_WEBHOOK_PREVIOUS_SECRET",
  what: "the signing secret before it, during a rotation",
};
export const CLIENT_SECRET: SecretSource = {
  flag: "client-secret-file",
  environment: "ONCEHOOK_CLIENT_SECRET",
  what: "the API client's secret",
};
export const FORWARD_SECRET: SecretSource = {
  flag: "forward-secret-file",
  environment: "ONCEHOOK_FORWARD_SECRET",
  what: "the secret that forwarded events are signed with",
};

/** Gives a command the flag of a secret. */
export function addSecretFlag(command: Command, { flag, environment, what }: SecretSource): Command {
  return command.addOption(new Option(`--${flag} <path>`, `file with ${what} (or ${environment} in the environment)`));
}

/** The secret, or undefined when it was given nowhere. @throws CommandError for a file that cannot be read, or is empty */
export function givenSecret(source: SecretSource, file: string | undefined, terminal: Terminal): string | undefined {
  if (file !== undefined) return secretOfFile(source, file, terminal);
  const given = process.env[source.environment];
  if (given === "") throw new CommandError(`${source.environment} is empty.`, USAGE_MISTAKE);
  return given;
}

/** The secret; asked for where it was given nowhere and somebody is there to type it. */
export async function neededSecret(
  source: SecretSource,
  file: string | undefined,
  terminal: Terminal,
): Promise<string> {
  const given = givenSecret(source, file, terminal);
  if (given !== undefined) return given;
  const advice = `Give ${source.what}: --${source.flag} FILE, or ${source.environment} in the environment.`;
  if (!process.stdin.isTTY) throw new CommandError(advice, USAGE_MISTAKE);
  const typed = await ask(`Type ${source.what}: `);
  if (typed === "") throw new CommandError(advice, USAGE_MISTAKE);
  return typed;
}

function secretOfFile(source: SecretSource, file: string, terminal: Terminal): string {
  const { flag, what } = source;
  const text = textOfSecretFile(source, file);
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "") throw new CommandError(`The file of --${flag} is empty: write ${what} into it.`, USAGE_MISTAKE);
  if (secret !== text) terminal.note(`The line break at the end of ${file} is not taken for a part of the secret.`);
  return secret;
}

/** All of it, the line break at its end too. @throws CommandError when it cannot be read, or its text cannot be a secret */
export function textOfSecretFile({ flag }: SecretSource, file: string): string {
  const bytes = bytesOfFile(file, { name: `the file of --${flag}, ${file}`, mostBytes: WRITTEN_BYTES });
  const text = textOfBytes(bytes);
  if (text !== null) return text;
  const advice = "make one with openssl rand -hex 32";
  throw new CommandError(`The file of --${flag}, ${file}, is not UTF-8 text: ${advice}.`, USAGE_MISTAKE);
}

/** A line from the terminal, which does not show it. */
async function ask(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  process.stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("SIGINT", () => reject(new CommandError("", 130)));
      lines.once("close", () => resolve(""));
      lines.question("", resolve);
    });
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}

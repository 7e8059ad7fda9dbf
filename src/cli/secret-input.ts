/** Secrets of a command: from a file, the environment or a prompt; never from an argument, which process lists show. */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { type Command, Option } from "commander";
import { CommandError, USAGE_MISTAKE } from "./failure.ts";
import { bytesOfFile, textOfBytes, WRITTEN_BYTES } from "./input-file.ts";
import type { Terminal } from "./terminal.ts";

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

/** All of it, the line break at its end too. @throws CommandError when it cannot be read, or holds what is no secret's text */
export function textOfSecretFile({ flag }: SecretSource, file: string): string {
  const bytes = bytesOfFile(file, { name: `the file of --${flag}, ${file}`, mostBytes: WRITTEN_BYTES });
  const text = textOfBytes(bytes);
  if (text !== null) return text;
  const advice = "make one with openssl rand -hex 32";
  throw new CommandError(`The file of --${flag}, ${file}, is no UTF-8 text: ${advice}.`, USAGE_MISTAKE);
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

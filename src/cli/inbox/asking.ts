/** Asks before something is done to many rows, or for good. */
import { createInterface } from "node:readline";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "../failure.ts";

export interface AskFlags {
  readonly yes?: boolean;
}

/** Where somebody may sit. */
export interface Asked {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

const here = (): Asked => ({ input: process.stdin, output: process.stderr });

/** @throws CommandError where nobody can be asked and `--yes` was not given, for a caller to know before it prepares the question */
export function checkAskable({ yes }: AskFlags, { input }: Asked = here()): void {
  if (yes || input.isTTY) return;
  throw new CommandError("This asks before it begins, and nobody is there to answer: add --yes.", USAGE_MISTAKE);
}

/** Resolves once `question` was answered with yes. @throws CommandError for any other answer */
export async function confirm(question: string, { yes }: AskFlags, asked: Asked = here()): Promise<void> {
  if (yes) return;
  checkAskable({}, asked);
  const lines = createInterface(asked);
  const answer = await new Promise<string>((resolve, reject) => {
    lines.once("SIGINT", () => reject(new CommandError("", 130)));
    lines.once("close", () => resolve(""));
    lines.question(`${question} [y/N] `, resolve);
  }).finally(() => lines.close());
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("Nothing was done.", NEGATIVE);
}

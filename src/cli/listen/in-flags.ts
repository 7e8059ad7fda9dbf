/** Mistakes in options of the receiver and the publisher, in the words of the command line. */
import { SetupError } from "../../errors.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";

const NAMES: Readonly<Record<string, string>> = {
  secrets: "The webhook secret",
  "secrets.current": "The webhook secret",
  "secrets.previous.secret": "The previous secret",
  "secrets.previous.validUntil": "--previous-valid-until",
  secret: "The forward secret",
  url: "--forward-to",
  name: "--name",
};

/** The same error; or, about an option that a flag stands for, one that names the flag. It never shows what was given. */
export function inFlags(error: unknown): unknown {
  if (!(error instanceof SetupError)) return error;
  const { option } = error.fields;
  const name = typeof option === "string" ? NAMES[option] : undefined;
  if (name === undefined) return error;
  const message = error.message.replace(`Option "${option}"`, name).replace(/; it is [^;]*\.$/, ".");
  return new CommandError(message, USAGE_MISTAKE, { cause: error });
}

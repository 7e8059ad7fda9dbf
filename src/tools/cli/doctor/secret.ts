/** Whether a secret is one: not forgotten, not a placeholder, long enough, as it was meant, and readable by nobody else. */
import { statSync } from "node:fs";
import { OncehookError } from "../../../errors.ts";
import { ownerProblem } from "../../../internal/file-owner.ts";
import { checkSecret } from "../../../sources/secret.ts";
import { CommandError, isSystemError } from "../exit.ts";
import { type SecretSource, textOfSecretFile } from "../input.ts";
import { type Finding, ok, problem, sentence, skipped, warning } from "./finding.ts";

/** A secret as it was given, with what is wrong with it. */
export interface LookedAt {
  /** Without the line break at the end of its file; null where there is none to work with. */
  readonly secret: string | null;
  readonly findings: readonly Finding[];
}

const PLACEHOLDER =
  /change.?(?:me|this)|placeholder|your.?(?:webhook|signing|client)?.?secret|example|replace.?(?:me|this)|secret.?here|dummy|for.?tests|xxxx|^<.*>$|^\$\{?\w+\}?$/i;
/** 16 random hexadecimal digits are estimated at some 50; repeated patterns lie far below. Words are not known here. */
export const LEAST_BITS = 45;

/** @param file - as given to the source's flag; without it, the environment is looked at */
export function lookAtSecret(source: SecretSource, file: string | undefined, env: NodeJS.ProcessEnv): LookedAt {
  const where = file === undefined ? source.environment : file;
  try {
    const text = file === undefined ? env[source.environment] : textOfSecretFile(source, file);
    if (text === undefined) return { secret: null, findings: [notGiven(source)] };
    const secret = text.replace(/\r?\n$/, "");
    const mode = file === undefined ? [] : modeFindings(file);
    const findings = [...textFindings(source, where, { text, secret }), ...mode];
    const isFine = findings.length === 0 ? [ok("secret", `${sentence(source.what)} has the form of one.`)] : findings;
    return { secret: secret.trim() === "" ? null : secret, findings: isFine };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { secret: null, findings: [unreadable(source, error)] };
  }
}

function notGiven({ what, flag, environment }: SecretSource): Finding {
  return skipped("secret", `${sentence(what)} was not looked at.`, `--${flag} FILE, or ${environment}`);
}

function unreadable({ flag }: SecretSource, { message, cause }: CommandError): Finding {
  const path = `Check the path of --${flag}, and that this user may read the file.`;
  return problem("secret_unreadable", message, isSystemError(cause) ? path : NEW_SECRET);
}

const NEW_SECRET = "Make one: openssl rand -hex 32. Register the same at the service.";

function textFindings(
  { what }: SecretSource,
  where: string,
  { text, secret }: { readonly text: string; readonly secret: string },
): Finding[] {
  if (secret.trim() === "")
    return [problem("secret_empty", `${where} is empty: ${what} is missing.`, "Write it there.")];
  const findings: Finding[] = [];
  const subject = sentence(what);
  if (secret !== secret.trim()) {
    const fix = "Remove it, unless the service has it too.";
    findings.push(problem("secret_white_space", `${subject} begins or ends with white space.`, fix));
  } else if (secret !== text) {
    const fix = "Write it with printf '%s', or let the application trim it. This command does.";
    findings.push(
      warning("secret_line_break", `${where} ends with a line break, which is not a part of the secret.`, fix),
    );
  }
  const unusable = refusal(secret);
  if (PLACEHOLDER.test(secret)) {
    findings.push(problem("secret_placeholder", `${subject} looks like a placeholder.`, NEW_SECRET));
  } else if (unusable !== null) {
    findings.push(problem("secret_unusable", `${subject} ${unusable}`, NEW_SECRET));
  } else if (bitsOf(secret) < LEAST_BITS) {
    findings.push(
      problem("secret_weak", `${subject} can be guessed: it has too few different characters.`, NEW_SECRET),
    );
  }
  return findings;
}

/** The receiver's own rule, in words that follow a subject. */
function refusal(secret: string): string | null {
  try {
    checkSecret("secret", secret);
    return null;
  } catch (error) {
    if (error instanceof OncehookError) return error.message.replace(/^Option "secret" /, "");
    throw error;
  }
}

function modeFindings(file: string): Finding[] {
  const stat = statSync(file);
  if (process.platform === "win32" || !stat.isFile()) return [];
  const problem = ownerProblem("The secret's file", file, stat);
  if (problem !== null) {
    const at = problem.lastIndexOf(": ");
    return [warning("secret_file_owner", `${problem.slice(0, at)}.`, sentence(problem.slice(at + 2)))];
  }
  if ((stat.mode & (stat.uid === 0 ? 0o007 : 0o077)) === 0) return [];
  return [warning("secret_file_mode", `Others than its owner may read ${file}.`, `chmod 600 ${file}`)];
}

/** Shannon's estimate from how often each character stands in the text. */
export function bitsOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  const { length } = [...text];
  return [...counts.values()].reduce((bits, count) => bits + count * Math.log2(length / count), 0);
}

/** `oncehook verify`: why a captured request is not verified, and what to do about it. */
import type { Buffer } from "node:buffer";
import { Command, Option } from "commander";
import { systemClock } from "../../internal/clock.ts";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "../exit.ts";
import { duration, instant } from "../flags.ts";
import { addSecretFlag, bytesOfFile, givenSecret, neededSecret, PREVIOUS_SECRET, WEBHOOK_SECRET } from "../input.ts";
import { addOutputFlags, type OutputFlags, Terminal } from "../terminal.ts";
import type { Capture } from "./capture.ts";
import type { GivenSecret } from "./keys.ts";
import type { Circumstances } from "./steps.ts";

interface Flags extends OutputFlags {
  readonly headers?: string;
  readonly body?: string;
  readonly request?: string;
  readonly secretFile?: string;
  readonly previousSecretFile?: string;
  readonly secretEncoding: GivenSecret["encoding"];
  readonly timestampFormat: "auto" | "s" | "ms";
  readonly encoding: Circumstances["encoding"];
  readonly at?: number;
  readonly tolerance?: number;
  readonly guess?: boolean;
}

const MINUTE_MS = 60_000;
/** As a receiver with an inbox has it. */
const TOLERANCE = { pastMs: 90 * MINUTE_MS, futureMs: 5 * MINUTE_MS };

/** The largest body that is taken, in chunks of a byte, with room for its head. */
const MOST_FILE_BYTES = 8 * 1_048_576;

const HELP = `
Headers can be lines of "Name: value", what "curl -v" printed, or JSON (an object, a list of pairs, rawHeaders, HAR).
Capture the body's bytes as they came, without an editor. The age of a capture is judged only with --at.

Examples:
  $ oncehook verify --headers headers.txt --body body.json --secret-file webhook.secret
  $ oncehook verify --request request.http --secret-file webhook.secret --at 2026-01-01T12:00:00Z
  $ oncehook verify --request request.http --secret-file webhook.secret --guess

Exit codes: 0 verified (with --guess: or options were found that take it), 3 not verified, 1 a file cannot be read, 2 usage.`;

/** The command, for the program. */
export function verifyCommand(): Command {
  const command = new Command("verify")
    .description("explain why a captured request is not verified")
    .option("--headers <file>", "its headers")
    .option("--body <file>", "its body, byte for byte")
    .option("--request <file>", "instead of both: the whole request as HTTP writes it");
  addSecretFlag(addSecretFlag(command, WEBHOOK_SECRET), PREVIOUS_SECRET)
    .addOption(choice("--secret-encoding <encoding>", "how the secret's text is read", ["utf8", "base64", "hex"]))
    .addOption(choice("--timestamp-format <format>", "as the receiver has it", ["auto", "s", "ms"]))
    .addOption(choice("--encoding <encoding>", "as the receiver has it", ["auto", "hex", "base64", "base64url"]))
    .option("--at <time>", "when it arrived: then its age is judged too", instant)
    .option("--tolerance <duration>", "how old it may be then (default: 90m)", duration)
    .option("--guess", "try every encoding, unit, prefix and scheme, and print the options to set")
    .addHelpText("after", HELP);
  return addOutputFlags(command).action(async (flags: Flags) => {
    process.exitCode = await run(flags);
  });
}

/** The first choice is the default. */
function choice(flags: string, description: string, choices: readonly string[]): Option {
  return new Option(flags, description).choices(choices).default(choices[0]);
}

/** Resolves with the exit code. */
async function run(flags: Flags): Promise<number> {
  const terminal = new Terminal(flags);
  const capture = await captureOf(flags);
  const secret: GivenSecret = {
    secret: await neededSecret(WEBHOOK_SECRET, flags.secretFile, terminal),
    previous: givenSecret(PREVIOUS_SECRET, flags.previousSecretFile, terminal),
    encoding: flags.secretEncoding,
  };
  const [{ diagnose }, { guess }, { diagnosisText, guessText }] = await Promise.all([
    import("./diagnosis.ts"),
    import("./guess.ts"),
    import("./report.ts"),
  ]);
  const { at, timestampFormat, encoding, tolerance: pastMs = TOLERANCE.pastMs } = flags;
  const tolerance = { ...TOLERANCE, pastMs };
  const diagnosis = diagnose(capture, secret, { at, now: systemClock.now(), timestampFormat, encoding, tolerance });
  const paint = terminal.style.bind(terminal);
  if (!flags.guess) {
    await terminal.result(diagnosis, () => diagnosisText(diagnosis, paint));
    return diagnosis.verified ? 0 : NEGATIVE;
  }
  const found = guess(capture, secret);
  const text = () => `${diagnosisText(diagnosis, paint)}${guessText(found, paint)}`;
  await terminal.result({ ...diagnosis, guess: found }, text);
  return diagnosis.verified || found?.options ? 0 : NEGATIVE;
}

async function captureOf(flags: Flags): Promise<Capture> {
  const { headersOf, MOST_BODY_BYTES, requestOf } = await import("./capture.ts");
  const { headers, body } = filesOf(flags);
  const capture = body === null ? requestOf(headers) : { headers: headersOf(headers.toString("utf8")), body };
  if (capture.body.length <= MOST_BODY_BYTES) return capture;
  throw new CommandError("The body is larger than any receiver takes: 1 MiB.", USAGE_MISTAKE);
}

/** The headers and the body; null for a body that is in the same file. */
function filesOf({ headers, body, request }: Flags): { readonly headers: Buffer; readonly body: Buffer | null } {
  if (request !== undefined && headers === undefined && body === undefined) {
    return { headers: bytesOf(request), body: null };
  }
  if (request === undefined && headers !== undefined && body !== undefined) {
    return { headers: bytesOf(headers), body: bytesOf(body) };
  }
  throw new CommandError("Give the request: --headers FILE and --body FILE, or --request FILE alone.", USAGE_MISTAKE);
}

function bytesOf(file: string): Buffer {
  return bytesOfFile(file, { name: file, mostBytes: MOST_FILE_BYTES });
}

/** `oncehook verify`: explains why a captured request is not verified, and how to fix that. */
import type { Buffer } from "node:buffer";
import { Command, Option } from "commander";
import { systemClock } from "../../../internal/clock.ts";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "../exit.ts";
import { duration, instant } from "../flags.ts";
import { addSecretFlag, bytesOfFile, givenSecret, neededSecret, PREVIOUS_SECRET, WEBHOOK_SECRET } from "../input.ts";
import { addOutputFlags, type OutputFlags, Terminal } from "../terminal.ts";
import type { Capture } from "./capture.ts";
import type { Cause } from "./causes.ts";
import type { Diagnosis } from "./diagnosis.ts";
import type { CapturedWith, GivenSecret } from "./steps.ts";

interface Flags extends OutputFlags {
  readonly headers?: string;
  readonly body?: string;
  readonly request?: string;
  readonly secretFile?: string;
  readonly previousSecretFile?: string;
  readonly secretEncoding: GivenSecret["encoding"];
  readonly timestampFormat: "auto" | "s" | "ms";
  readonly encoding: CapturedWith["encoding"];
  readonly at?: number;
  readonly tolerance?: number;
}

const MINUTE_MS = 60_000;
/** The defaults of a receiver with an inbox. */
const TOLERANCE = { past: 90 * MINUTE_MS, future: 5 * MINUTE_MS };

/** Room for the largest body in chunks of one byte, and its head. */
const MOST_FILE_BYTES = 8 * 1_048_576;

const HELP = `
Headers can be lines of "Name: value", what "curl -v" printed, or JSON (an object, a list of pairs, rawHeaders, HAR).
Capture the body's bytes as they came, without an editor. The age of a capture is checked only with --at.

Examples:
  $ oncehook verify --headers headers.txt --body body.json --secret-file webhook.secret
  $ oncehook verify --request request.http --secret-file webhook.secret --at 2026-01-01T12:00:00Z

Exit codes: 0 verified, 3 not verified, 1 a file cannot be read, 2 usage.`;

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
    .option("--at <time>", "when it arrived: then its age is checked too", instant)
    .option("--tolerance <duration>", "how old it may be then (default: 90m)", duration)
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
  const { diagnose } = await import("./diagnosis.ts");
  const { at, timestampFormat, encoding, tolerance: past = TOLERANCE.past } = flags;
  const tolerance = { ...TOLERANCE, past };
  const diagnosis = diagnose(capture, secret, { at, now: systemClock.now(), timestampFormat, encoding, tolerance });
  await terminal.result(diagnosis, () => diagnosisText(diagnosis, terminal.style.bind(terminal)));
  return diagnosis.verified ? 0 : NEGATIVE;
}

/** Colours a text, if the terminal shows colours. */
type Paint = (style: "green" | "red" | "dim", text: string) => string;

/** What people read. */
export function diagnosisText({ verified, code, steps, causes }: Diagnosis, paint: Paint): string {
  const end = verified
    ? paint("green", "Verified: a receiver with this secret accepts it.")
    : paint("red", `Not verified${code === null ? "" : `: ${code}`}.`);
  return `${steps.map((step) => stepLine(step, paint)).join("")}\n${end}\n${causes.map(causeText).join("")}`;
}

function stepLine({ name, ok, text }: Diagnosis["steps"][number], paint: Paint): string {
  const mark = ok === null ? paint("dim", "-") : ok ? paint("green", "✓") : paint("red", "✗");
  return `${mark} ${name.padEnd(15)} ${text}\n`;
}

function causeText({ code, proven, what, fix }: Cause): string {
  return `\n${proven ? "Cause" : "Likely cause"} (${code}): ${what}\nFix: ${fix}\n`;
}

async function captureOf(flags: Flags): Promise<Capture> {
  const { headersOf, MOST_BODY_BYTES, requestOf } = await import("./capture.ts");
  const { headers, body } = filesOf(flags);
  const capture = body === null ? requestOf(headers) : { headers: headersOf(headers.toString("utf8")), body };
  if (capture.body.length <= MOST_BODY_BYTES) return capture;
  throw new CommandError("The body is larger than any receiver accepts: 1 MiB.", USAGE_MISTAKE);
}

/** The headers and the body. The body is null if it is in the same file. */
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

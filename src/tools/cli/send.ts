/** `oncehook send`: an SMS through the service's API, with a key under which a repeat sends nothing twice. */
import { randomUUID } from "node:crypto";
import { Command } from "commander";
import type { Client, SendRequest, SendResult } from "../../messaging/client/index.ts";
import { CommandError, FAILURE, NEGATIVE, USAGE_MISTAKE } from "./exit.ts";
import { addServiceFlags, clientOf, inFlags, repeated, type ServiceFlags } from "./flags.ts";
import { bytesOfFile, bytesOfStream, textOfBytes, WRITTEN_BYTES } from "./input.ts";
import { addOutputFlags, type OutputFlags, printable, Terminal } from "./terminal.ts";

interface Flags extends OutputFlags, ServiceFlags {
  readonly from: string;
  readonly to: readonly string[];
  readonly textFile: string;
  readonly reference?: string;
  readonly idempotencyKey?: string;
}

const HELP = `
Accepted means queued: what becomes of a message comes by webhook. A send that got no answer, or one that cannot be read,
is repeated with the same flags and the --idempotency-key that was printed: then nothing is sent twice.

Examples:
  $ oncehook send --base-url https://api.example.com --client-id cli_1 --client-secret-file client.secret \\
    --from num_000001 --to +14155550101 --text-file text.txt
  $ echo "On its way." | oncehook send … --to +14155550101 --to +14155550102 --text-file - --reference order-7

Exit codes: 0 every recipient was accepted, 3 some were rejected, 1 the service refused, or gave no
answer that can be read, 2 usage.`;

/** Options of a send, by the flags that give them. */
const FLAGS: Readonly<Record<string, string>> = {
  sendFrom: "--from",
  to: "--to",
  externalReference: "--reference",
  "options.idempotencyKey": "--idempotency-key",
};

/** The command, for the program. */
export function sendCommand(): Command {
  const command = new Command("send").description("send an SMS through the service's API");
  addServiceFlags(command, "sends")
    .requiredOption("--from <numberId>", "the number to send from: its id, as the service lists it")
    .requiredOption("--to <number>", "a recipient, such as +14155550101; can be repeated", repeated)
    .requiredOption("--text-file <file>", "file with the text, or - for standard input")
    .option("--reference <text>", "your own key, which events carry (default: the idempotency key)")
    .option("--idempotency-key <key>", "of an earlier try of the same send (default: a new one)")
    .addHelpText("after", HELP);
  return addOutputFlags(command).action(async (flags: Flags) => {
    process.exitCode = await run(flags);
  });
}

/** Resolves with the exit code. */
async function run(flags: Flags): Promise<number> {
  const terminal = new Terminal(flags);
  const { idempotencyKey = randomUUID() } = flags;
  const request: SendRequest = {
    sendFrom: flags.from,
    to: flags.to,
    messageType: "SMS",
    text: await textOf(flags.textFile, terminal),
    // A repeat with the same key is then the same request.
    externalReference: flags.reference ?? idempotencyKey,
  };
  let isKeySaid = false;
  // Before the first request, but not where the client refuses to make one.
  const onRequest = () => {
    if (!isKeySaid) sayKey(idempotencyKey, flags, terminal);
    isKeySaid = true;
  };
  const client = await clientOf(flags, terminal, { onRequest });
  const sent = await answerTo(client, request, idempotencyKey);
  const { results, errors, allRejected } = sent;
  const { externalReference } = request;
  await terminal.result({ idempotencyKey, externalReference, allRejected, results, errors }, () => sentText(sent));
  return errors.length > 0 ? NEGATIVE : 0;
}

/** Told before it is needed: after a crash nobody could ask for one that was made here. */
function sayKey(key: string, { idempotencyKey: given }: Flags, terminal: Terminal): void {
  const text = `The idempotency key is ${printable(key)}.`;
  if (given === undefined) terminal.tell(text);
  else terminal.note(text);
}

async function answerTo(client: Client, request: SendRequest, idempotencyKey: string): Promise<SendResult> {
  const { ApiError, ConnectionError, InvalidArgumentError, ResponseValidationError, ServerError } = await import(
    "../../messaging/client/index.ts"
  );
  try {
    return await client.messages.send(request, { idempotencyKey });
  } catch (error) {
    if (error instanceof InvalidArgumentError) {
      throw new CommandError(error.issues.map((issue) => inFlags(issue, FLAGS)).join("; "), USAGE_MISTAKE, {
        cause: error,
      });
    }
    // A success that cannot be read, also one without its lists.
    const isAccepted = error instanceof ResponseValidationError;
    // Whether it was sent, or to whom, is not known: a repeat under the same key finds out, and sends only what was not.
    const isOpen = isAccepted || error instanceof ConnectionError || error instanceof ServerError;
    const accepted = isAccepted ? " By its status the send was accepted." : "";
    const advice = isOpen
      ? `${accepted} Repeat it with --idempotency-key ${idempotencyKey}: nothing is sent twice.`
      : "";
    if (!isOpen && !(error instanceof ApiError)) throw error;
    throw new CommandError(`${error.message}${unsaid(error)}${unreached(error)}${advice}`, FAILURE, { cause: error });
  }
}

/** The service's own words, for the person who typed the command, where the error's message has not all of them. */
function unsaid(error: Error): string {
  const words = "serviceMessage" in error && typeof error.serviceMessage === "string" ? error.serviceMessage : "";
  const isSaid = error.message.includes(words.replace(/[.\s]+$/, ""));
  return isSaid ? "" : ` The service's words: ${printable(words)}`;
}

/** Where the system or TLS says why no connection came about: its code, such as ECONNREFUSED or ENOTFOUND. */
function unreached(error: Error): string {
  const { cause: failed } = error;
  const cause = failed instanceof Error ? failed.cause : undefined;
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return "";
  return ` It failed with ${cause.code}: check --base-url, and that the service runs there.`;
}

/** The client lets an answer pass that is not quite as specified, and so does this: the message was accepted all the same. */
function sentText({ results, errors }: SendResult): string {
  const accepted = results.map((result) => [result?.status, result?.messageId, result?.to]);
  const rejected = errors.map((refusal) => [refusal?.error?.code, null, refusal?.to, refusal?.error?.message]);
  return [...accepted, ...rejected].map((cells) => `${cells.map(cellText).join("  ")}\n`).join("");
}

function cellText(value: unknown = null): string {
  if (value === null) return "-";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

async function textOf(file: string, terminal: Terminal): Promise<string> {
  const reading = { name: `the file of --text-file, ${file}`, mostBytes: WRITTEN_BYTES };
  const bytes = file === "-" ? await bytesOfStream(process.stdin, reading) : bytesOfFile(file, reading);
  const whole = textOfBytes(bytes);
  if (whole === null) throw new CommandError(`The file of --text-file, ${file}, is not UTF-8 text.`, USAGE_MISTAKE);
  // A byte order mark is the editor's, or the shell's: in an SMS it would halve what fits.
  const text = whole.replace(/^\uFEFF/, "").replace(/\r?\n$/, "");
  if (text === "")
    throw new CommandError("The text is empty: write something into the file of --text-file.", USAGE_MISTAKE);
  if (whole.endsWith("\n")) terminal.note("The line break at the end of the text is not sent.");
  return text;
}

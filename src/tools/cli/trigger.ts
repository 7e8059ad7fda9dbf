/** `oncehook trigger`: signed events for a receiver, as the service would deliver them. */
import { randomUUID } from "node:crypto";
import { Command } from "commander";
import { systemRandom } from "../../internal/clock.ts";
import { hasCredentials } from "../../internal/network.ts";
import { CommandError, NEGATIVE, USAGE_MISTAKE } from "./exit.ts";
import { repeated, wholeNumber } from "./flags.ts";
import { addSecretFlag, neededSecret, WEBHOOK_SECRET } from "./input.ts";
import { addOutputFlags, type OutputFlags, printable, Terminal } from "./terminal.ts";
import type { Delivered } from "./trigger-events.ts";

interface Flags extends OutputFlags {
  readonly to: string;
  readonly secretFile?: string;
  readonly message?: string;
  readonly sequence?: number;
  readonly set?: readonly string[];
  readonly count: number;
  readonly order?: string;
  readonly shuffle?: boolean | number;
  readonly duplicate?: boolean;
}

const MOST_SEQUENCE = 10_000;
const MOST_MESSAGES = 100_000;
const MOST_SEED = 2 ** 32 - 1;

const HELP = `
TYPE is queued, sent, delivery, failed or inbound; lifecycle for the three events of a message; or any other type
of the form a.b, which a receiver does not know. Each event is delivered once: nothing is retried.

Examples:
  $ oncehook trigger inbound --to http://127.0.0.1:3000/webhooks --secret-file webhook.secret
  $ oncehook trigger lifecycle --order delivery,queued,sent --to http://127.0.0.1:3000/webhooks
  $ oncehook trigger lifecycle --count 100 --shuffle --duplicate --to http://127.0.0.1:3000/webhooks
  $ oncehook trigger failed --message msg_7 --sequence 4 --set data.error.code=BLOCKED --to http://127.0.0.1:3000/

Exit codes: 0 every answer was 2xx, 3 some were not, 1 no answer came, 2 usage.`;

/** The command, for the program. */
export function triggerCommand(): Command {
  const command = new Command("trigger")
    .description("send signed events to a receiver, as the service would")
    .argument("<type>", "queued, sent, delivery, failed, inbound, or lifecycle")
    .requiredOption("--to <url>", "the receiver's URL");
  addSecretFlag(command, WEBHOOK_SECRET)
    .option("--message <id>", "the message's id (default: a new one)")
    .option("--sequence <number>", "the event's place in its message", wholeNumber(0, MOST_SEQUENCE))
    .option("--set <path=value>", "another value of a field, as JSON or text; can be repeated", repeated)
    .option("--count <number>", "so many messages", wholeNumber(1, MOST_MESSAGES), 1)
    .option("--order <types>", "of a lifecycle: delivery,queued,sent")
    .option("--shuffle [seed]", "in any order; the same seed gives the same one", wholeNumber(0, MOST_SEED))
    .option("--duplicate", "each twice")
    .addHelpText("after", HELP);
  return addOutputFlags(command).action(async (type: string, flags: Flags) => {
    process.exitCode = await run(type, flags);
  });
}

/** Resolves with the exit code. */
async function run(type: string, flags: Flags): Promise<number> {
  const terminal = new Terminal(flags);
  const url = urlOf(flags.to);
  const [{ plan }, { deliverTo }, { seededRandom }] = await Promise.all([
    import("./trigger-events.ts"),
    import("./trigger-events.ts"),
    import("../testing/scenarios.ts"),
  ]);
  const {
    message = `msg_${randomUUID().slice(0, 8)}`,
    sequence,
    set,
    count,
    shuffle = false,
    duplicate = false,
  } = flags;
  const seed = typeof shuffle === "number" ? shuffle : Math.floor(systemRandom() * MOST_SEED);
  const order = flags.order?.split(",");
  const wish = { type, message, sequence, set, count, order, shuffle: shuffle !== false, duplicate };
  const events = plan(wish, seededRandom(seed));
  const secret = await neededSecret(WEBHOOK_SECRET, flags.secretFile, terminal);
  if (shuffle !== false) terminal.note(`The order is that of --shuffle ${seed}.`);
  let refused = 0;
  for (const event of events) {
    const delivered = await deliverTo({ url, secret }, event);
    if (delivered.status < 200 || delivered.status > 299) refused += 1;
    await terminal.result(delivered, () => deliveredLine(delivered));
  }
  if (refused > 0) terminal.note(`${refused} of ${events.length} were not taken.`);
  return refused > 0 ? NEGATIVE : 0;
}

function deliveredLine({ status, durationMs, eventType, messageId, sequence, outcome }: Delivered): string {
  const place = printable([eventType, messageId ?? "-", sequence ?? "-"].join("  "));
  return `${status}  ${`${durationMs} ms`.padStart(8)}  ${place}${outcome === null ? "" : `  ${outcome}`}`;
}

function urlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  if (url !== undefined && isWeb && !hasCredentials(url)) return url.href;
  const example = "http://127.0.0.1:3000/webhooks";
  throw new CommandError(`--to takes an http or https URL without credentials, such as ${example}.`, USAGE_MISTAKE);
}

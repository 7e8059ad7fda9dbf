/** `oncehook listen`: a receiver without code, which prints what it handles or posts it to an application in any language. */
import { Command, InvalidArgumentError, Option } from "commander";
import { leaveUntaken } from "./exit.ts";
import { addStoreFlags, duration, instant, inWords, wholeNumber, withExamples } from "./flags.ts";
import { addSecretFlag, FORWARD_SECRET, PREVIOUS_SECRET, WEBHOOK_SECRET } from "./input.ts";
import type { ListenFlags, ListenSource } from "./listen-run.ts";
import { addOutputFlags } from "./terminal.ts";

const EXAMPLES = [
  "oncehook listen --store inbox.db --secret-file webhook.secret",
  "oncehook listen --store inbox.db --secret-file webhook.secret --json | jq .eventType",
  "oncehook listen --store inbox.db --forward-to http://127.0.0.1:8000/events",
  "oncehook listen --store inbox.db --source stripe --secret-file stripe.secret",
];

/** A record, so that none can be forgotten. */
const SOURCES: Readonly<Record<ListenSource, true>> = {
  "standard-webhooks": true,
  stripe: true,
  github: true,
  shopify: true,
  slack: true,
  twilio: true,
};

/** The command, for the program. */
export function listenCommand(): Command {
  const command = new Command("listen")
    .description("receive webhooks without writing code; print them, or post them to an application")
    .addOption(port())
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--path <path>", "where webhooks are received", webhookPath, "/webhooks");
  command
    .addOption(source())
    .option("--public-url <url>", "the URL that Twilio was given, without its query: it is signed");
  addSecretFlag(addSecretFlag(command, WEBHOOK_SECRET), PREVIOUS_SECRET).addOption(previousValidUntil());
  addStoreFlags(command)
    .option("--name <name>", "the application that the inbox belongs to (default: default)")
    .addOption(gapWait())
    .option("--show-content", "print numbers and texts, which are masked otherwise")
    .option("--forward-to <url>", "post each event to an application, in order and signed: a sidecar");
  addSecretFlag(command, FORWARD_SECRET)
    .option("--concurrency <number>", "events posted at once, of as many messages (default: 8)", wholeNumber(1, 1_000))
    .option("--timeout <duration>", "how long the application may take to answer (default: 30s)", timeout);
  return withExamples(addOutputFlags(command), EXAMPLES).action(async (flags: ListenFlags) => {
    try {
      process.exitCode = await run(flags);
    } finally {
      leaveUntaken();
    }
  });
}

async function run(flags: ListenFlags): Promise<number> {
  // Loaded here: "--help" needs none of it.
  const { inFlags, listen } = await import("./listen-run.ts");
  try {
    return await listen(flags);
  } catch (error) {
    throw inWords(inFlags(error));
  }
}

function port(): Option {
  return new Option("--port <number>", "TCP port; 0 picks a free one").default(3000).argParser(wholeNumber(0, 65_535));
}

function source(): Option {
  const about = "whose webhooks are received, unless it is the messaging service";
  return new Option("--source <preset>", about).choices(Object.keys(SOURCES));
}

function previousValidUntil(): Option {
  const until = new Option("--previous-valid-until <time>", "when that ends: epoch ms, or 2026-01-01T00:00:00Z");
  return until.env("ONCEHOOK_WEBHOOK_PREVIOUS_VALID_UNTIL").argParser(instant);
}

function gapWait(): Option {
  const waits = "how long a missing event is waited for: balanced (90 s or 22 min), strict (85 min) or eager (not)";
  return new Option("--gap-wait <policy>", waits).choices(["balanced", "strict", "eager"]);
}

function webhookPath(text: string): string {
  if (/^\/[\w.~/-]*$/.test(text) && text !== "/healthz" && text !== "/readyz") return text;
  throw new InvalidArgumentError("Write a path such as /webhooks; /healthz and /readyz are taken.");
}

function timeout(text: string): number {
  const ms = duration(text);
  if (ms >= 10 && ms <= 3_600_000) return ms;
  throw new InvalidArgumentError("Write 10ms to 1h.");
}

/** What `oncehook listen` does from its flags to its end. */
import { forward, httpPublisher } from "../../forward/index.ts";
import { createReceiver, type Receiver, type WebhookEvent } from "../../index.ts";
import { systemClock } from "../../internal/clock.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import { storeAt } from "../inbox-address.ts";
import { endingSignal } from "../signals.ts";
import { jsonText, Terminal, unwritten } from "../terminal.ts";
import { handledShape, handledText, type PrintContext } from "./event-line.ts";
import { EventPrinter } from "./event-printer.ts";
import type { ListenFlags } from "./flags.ts";
import { forwardSecret, type WebhookSecrets, webhookSecrets } from "./secrets.ts";
import { serve } from "./server.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest there is: a handler that prints does nothing else than wait for the reader. */
const PRINTING_TIMEOUT_MS = 3_600_000;

/** Resolves with the exit code once it has ended. @throws what `inWords` tells */
export async function listen(flags: ListenFlags): Promise<number> {
  const terminal = new Terminal(flags);
  const printer = new EventPrinter(process.stdout);
  const receiver = await receiverFor(flags, terminal, printer);
  let closed: Promise<void> | undefined;
  try {
    // An inbox that cannot be opened is told before it listens, and nothing is handled before it does.
    receiver.pause();
    await receiver.start();
    const serving = await serve(receiver, flags);
    try {
      await handleUntilEnd(receiver, { flags, terminal, printer, url: serving.url });
      return 0;
    } finally {
      closed = serving.close();
    }
  } finally {
    // What is being handled ends, and the inbox closes behind the last delivery.
    const { timeout: timeoutMs = DEFAULT_TIMEOUT_MS } = flags;
    await receiver.stop({ timeoutMs, ...(closed && { until: closed }) });
  }
}

interface Listening {
  readonly flags: ListenFlags;
  readonly terminal: Terminal;
  readonly printer: EventPrinter;
  /** Where it listens. */
  readonly url: string;
}

/** Says where it listens, and lets events be handled behind that until a signal comes. @throws when nobody reads what must be read */
async function handleUntilEnd(
  receiver: Receiver<never>,
  { flags: { forwardTo }, terminal, printer, url }: Listening,
): Promise<void> {
  // Heard from before the first line is out: whoever reads it may send one.
  const signal = endingSignal();
  const announced = terminal.result({ listening: url }, () => `Webhooks are received at ${url}`);
  if (forwardTo !== undefined) {
    // An application gets its events also when what is printed beside them, this line included, is not read or cannot be written.
    announced.catch(() => {});
    receiver.resume();
    await signal;
    return;
  }
  const handling = announced.then(() => {
    receiver.resume();
    return signal;
  });
  const heard = await Promise.race([signal, handling, printer.broken]);
  if (heard instanceof Error) throw unwritten(heard);
}

/** A receiver with its handlers, not started. What can be refused at once is, before somebody is asked for a secret. */
async function receiverFor(flags: ListenFlags, terminal: Terminal, printer: EventPrinter): Promise<Receiver<never>> {
  const { name, concurrency, gapWait, forwardTo, timeout } = flags;
  const handlerTimeoutMs = forwardTo === undefined ? PRINTING_TIMEOUT_MS : timeout;
  refuseSidecarFlagsAlone(flags);
  const store = await storeAt(flags);
  const secrets = await webhookSecrets(flags, terminal);
  const post = await forwarding(flags, secrets, terminal);
  const chosen = Object.entries({ name, concurrency, gapWait, handlerTimeoutMs }).filter(
    ([, value]) => value !== undefined,
  );
  // It prints each event itself.
  const receiver = createReceiver<never>({ secrets, store, logEvents: false, ...Object.fromEntries(chosen) });
  if (post !== null) receiver.onAny(post).onLate(post);
  const say = printing(flags, terminal, printer);
  return receiver.onAny(say).onLate(say);
}

function refuseSidecarFlagsAlone({ forwardTo, forwardSecretFile, timeout, concurrency }: ListenFlags): void {
  if (forwardTo !== undefined) return;
  if ([forwardSecretFile, timeout, concurrency].every((flag) => flag === undefined)) return;
  const advice = "--forward-secret-file, --timeout and --concurrency go with --forward-to.";
  throw new CommandError(advice, USAGE_MISTAKE);
}

/** Null when nothing is forwarded. */
async function forwarding(
  flags: ListenFlags,
  secrets: WebhookSecrets,
  terminal: Terminal,
): Promise<ReturnType<typeof forward> | null> {
  const { forwardTo: url } = flags;
  if (url === undefined) return null;
  return forward(httpPublisher({ url, secret: await forwardSecret(flags, secrets, terminal) }));
}

/** The handler that prints: the whole result of the command, or a remark about what was posted. */
function printing({ forwardTo, showContent = false, quiet }: ListenFlags, terminal: Terminal, printer: EventPrinter) {
  const lineOf = (event: WebhookEvent, ctx: PrintContext): string => {
    const shape = handledShape(event, ctx, showContent);
    return terminal.json ? jsonText(shape) : handledText(shape, systemClock.now());
  };
  if (forwardTo === undefined) return (event: WebhookEvent, ctx: PrintContext) => printer.result(lineOf(event, ctx));
  return (event: WebhookEvent, ctx: PrintContext) => (quiet ? undefined : printer.remark(lineOf(event, ctx)));
}

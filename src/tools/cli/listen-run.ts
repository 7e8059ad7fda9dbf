/** What `oncehook listen` does from its flags to its end. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Writable } from "node:stream";
import { nodeWebhook } from "../../../adapters/node.ts";
import { SetupError } from "../../errors.ts";
import { publicId } from "../../inbox/lane-key.ts";
import {
  createReceiver,
  type HandlerContext,
  type HealthReason,
  type Receiver,
  type SourceEvents,
  type WebhookSource,
} from "../../index.ts";
import { systemClock } from "../../internal/clock.ts";
import { isRecord } from "../../internal/options.ts";
import { isSameSecret } from "../../internal/same-secret.ts";
import { urlHostOf } from "../../messaging/emulator/options.ts";
import { type BodyView, maskedBody } from "../../receiver/shown.ts";
import { forward, httpPublisher } from "../forward/index.ts";
import { CommandError, cannotListen, closeServer, endingSignal, isListenError, USAGE_MISTAKE } from "./exit.ts";
import { type StoreFlags, storeAt } from "./flags.ts";
import { FORWARD_SECRET, givenSecret, neededSecret, PREVIOUS_SECRET, WEBHOOK_SECRET } from "./input.ts";
import { jsonText, type OutputFlags, printable, Terminal, timeText, unwritten } from "./terminal.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest there is: a handler that prints does nothing else than wait for the reader. */
const PRINTING_TIMEOUT_MS = 3_600_000;

/** Resolves with the exit code once it has ended. @throws what `inWords` tells */
export async function listen(flags: ListenFlags): Promise<number> {
  refuseSidecarFlagsAlone(flags);
  await refusePublicUrl(flags);
  const terminal = new Terminal(flags);
  const printer = new EventPrinter(process.stdout);
  const receiver = await receiverFor(flags, terminal, printer);
  let closed: Promise<void> | undefined;
  try {
    // An inbox that cannot be opened is reported before it listens, and nothing is handled before it listens.
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

/** Of the messaging service, or of another source. */
type ListeningReceiver = Pick<Receiver<never>, "start" | "stop" | "pause" | "resume" | "handle" | "health" | "logger">;

interface Listening {
  readonly flags: ListenFlags;
  readonly terminal: Terminal;
  readonly printer: EventPrinter;
  /** Where it listens. */
  readonly url: string;
}

/** Says where it listens, and lets events be handled behind that until a signal comes. @throws when nobody reads what must be read */
async function handleUntilEnd(
  receiver: ListeningReceiver,
  { flags: { forwardTo }, terminal, printer, url }: Listening,
): Promise<void> {
  // Listened to before the first line is printed: its reader may send one.
  const signal = endingSignal();
  const announced = terminal.result({ listening: url }, () => `Webhooks are received at ${url}`);
  if (forwardTo !== undefined) {
    // An application gets its events also when what is printed next to them, this line included, is not read or cannot be written.
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
async function receiverFor(flags: ListenFlags, terminal: Terminal, printer: EventPrinter): Promise<ListeningReceiver> {
  const { name, concurrency, gapWait, forwardTo, timeout } = flags;
  const handlerTimeoutMs = forwardTo === undefined ? PRINTING_TIMEOUT_MS : timeout;
  const store = await storeAt(flags);
  const secrets = await webhookSecrets(flags, terminal);
  const post = await forwarding(flags, secrets, terminal);
  const chosen = Object.entries({ name, concurrency, gapWait, handlerTimeoutMs }).filter(
    ([, value]) => value !== undefined,
  );
  // It prints each event itself.
  const common = { store, logEvents: false, ...Object.fromEntries(chosen) };
  const sayOf = ({ inbox }: Pick<Receiver<never>, "inbox">) => printing(flags, { terminal, printer, inbox });
  if (flags.source !== undefined) {
    const source = await connectedSource(flags.source, secrets, flags.publicUrl);
    const receiver = createReceiver<never, SourceEvents>({ source, ...common });
    if (post !== null) receiver.onAny(post);
    return receiver.onAny(sayOf(receiver));
  }
  const receiver = createReceiver<never>({ secrets, ...common });
  if (post !== null) receiver.onAny(post).onLate(post);
  const say = sayOf(receiver);
  return receiver.onAny(say).onLate(say);
}

/** The presets of oncehook/sources. */
export type ListenSource = "standard-webhooks" | "stripe" | "github" | "shopify" | "slack" | "twilio";

async function connectedSource(
  name: ListenSource,
  secrets: WebhookSecrets,
  url = "",
): Promise<WebhookSource<SourceEvents>> {
  // Loaded here: the messaging service needs none of it.
  const { github, shopify, slack, standardWebhooks, stripe, twilio } = await import("../../sources/index.ts");
  const make: Readonly<Record<ListenSource, () => WebhookSource<SourceEvents>>> = {
    github: () => github({ secrets }),
    shopify: () => shopify({ secrets, lane: null }),
    slack: () => slack({ secrets }),
    stripe: () => stripe({ secrets, lane: null }),
    twilio: () => twilio({ secrets, url, lane: null }),
    "standard-webhooks": () => standardWebhooks({ secrets }),
  };
  return make[name]();
}

async function refusePublicUrl({ source, publicUrl }: ListenFlags): Promise<void> {
  if ((source === "twilio") !== (publicUrl !== undefined))
    throw new CommandError("--source twilio and --public-url go together: Twilio signs the URL.", USAGE_MISTAKE);
  if (publicUrl === undefined) return;
  const { isTwilioUrl } = await import("../../sources/twilio.ts");
  if (isTwilioUrl(publicUrl)) return;
  const advice = "--public-url must be a URL such as https://example.com/webhooks, without its query.";
  throw new CommandError(advice, USAGE_MISTAKE);
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
function printing(
  { forwardTo, showContent = false, quiet }: ListenFlags,
  { terminal, printer, inbox }: Pick<Listening, "terminal" | "printer"> & Pick<Receiver<never>, "inbox">,
) {
  const lineOf = async (event: object, ctx: PrintContext): Promise<string> => {
    const shows = await inbox.shows(ctx.meta.source);
    const shape = handledShape(event, ctx, { reveal: showContent, shows });
    return terminal.json ? jsonText(shape) : handledText(shape, systemClock.now());
  };
  if (forwardTo === undefined)
    return async (event: object, ctx: PrintContext) => printer.result(await lineOf(event, ctx));
  return async (event: object, ctx: PrintContext) => (quiet ? undefined : printer.remark(await lineOf(event, ctx)));
}

// What the flags of `oncehook listen` say.

export interface ListenFlags extends StoreFlags, SecretFlags, OutputFlags {
  readonly port: number;
  readonly host: string;
  readonly path: string;
  /** Default: the messaging service. */
  readonly source?: ListenSource;
  readonly publicUrl?: string;
  readonly name?: string;
  readonly gapWait?: "balanced" | "strict" | "eager";
  readonly showContent?: boolean;
  readonly forwardTo?: string;
  readonly concurrency?: number;
  /** Milliseconds. */
  readonly timeout?: number;
}

// What `oncehook listen` verifies with, and what it signs with as a sidecar.

export interface SecretFlags {
  readonly secretFile?: string;
  readonly previousSecretFile?: string;
  /** Epoch ms. */
  readonly previousValidUntil?: number;
  readonly forwardSecretFile?: string;
}

/** A keyring, as `createReceiver` takes it. */
export interface WebhookSecrets {
  readonly current: string;
  readonly previous?: { readonly secret: string; readonly validUntil: number };
}

/** The secrets of the service, asked for where none was given. @throws CommandError for half of a previous one */
async function webhookSecrets(flags: SecretFlags, terminal: Terminal): Promise<WebhookSecrets> {
  const current = await neededSecret(WEBHOOK_SECRET, flags.secretFile, terminal);
  const secret = givenSecret(PREVIOUS_SECRET, flags.previousSecretFile, terminal);
  const { previousValidUntil: validUntil } = flags;
  if (secret === undefined && validUntil === undefined) return { current };
  if (secret === undefined || validUntil === undefined) {
    const advice = `--${PREVIOUS_SECRET.flag} and --previous-valid-until go together: a secret that is replaced has an end.`;
    throw new CommandError(advice, USAGE_MISTAKE);
  }
  return { current, previous: { secret, validUntil } };
}

/** The sidecar's own secret. @throws CommandError for one of the service's: its holders could invent events */
async function forwardSecret(
  flags: SecretFlags,
  { current, previous }: WebhookSecrets,
  terminal: Terminal,
): Promise<string> {
  const secret = await neededSecret(FORWARD_SECRET, flags.forwardSecretFile, terminal);
  if (![current, previous?.secret].some((taken) => taken !== undefined && isSameSecret(secret, taken))) return secret;
  throw new CommandError(
    `The secret of --${FORWARD_SECRET.flag} is the webhook's: give the application one of its own.`,
    USAGE_MISTAKE,
  );
}

// What `oncehook listen` prints for a handled event: an object for programs, a line for people.

/** The context of the handler that prints. */
export type PrintContext = Pick<
  HandlerContext,
  "identity" | "attempt" | "missing" | "replay" | "outOfOrder" | "meta" | "rawBody"
>;

/** One line with `--json`. */
export interface HandledShape {
  /** The event's identity. */
  readonly handled: string;
  readonly eventType: string;
  readonly source: string;
  readonly tenant: string | null;
  /** The name of its lane. Null for an event by itself. */
  readonly lane: string | null;
  /** The id that its source gives it. Null by sequence, and for the digest of a body. */
  readonly id: string | null;
  /** 0 for events that have no place in a sequence. */
  readonly sequence: number;
  readonly attempt: number;
  readonly late: boolean;
  readonly replay: boolean;
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** The fields of the body that may be shown, or all of it with `--show-content`. */
  readonly event: unknown;
}

export function handledShape(event: object, ctx: PrintContext, { reveal, shows }: BodyView): HandledShape {
  const { source, tenant, lane, id, eventType, sequence } = ctx.meta;
  return {
    handled: ctx.identity,
    ...{ eventType, source, tenant, lane, id: publicId(id), sequence },
    attempt: ctx.attempt,
    late: ctx.outOfOrder,
    replay: ctx.replay,
    missing: ctx.missing,
    event: reveal ? event : maskedBody(ctx.rawBody, shows),
  };
}

/** `2026-01-01 12:00:00Z  message.sent  msg_1 #2  (attempt 2)  {"status":"sent"}` */
export function handledText(shape: HandledShape, at: number): string {
  const { eventType, lane, id, sequence, attempt, late, replay, missing, event } = shape;
  const remarks = [
    attempt > 1 && `attempt ${attempt}`,
    late && "late",
    replay && "replay",
    missing !== null && `${missing.from}-${missing.to} missing`,
  ].filter((remark) => remark !== false);
  const place = lane === null ? (id ?? "-") : `${lane} ${id ?? `#${sequence}`}`;
  const told = remarks.length === 0 ? [] : [`(${remarks.join(", ")})`];
  const content = isRecord(event) && "data" in event ? event.data : event;
  return printable([timeText(at), eventType, place, ...told, JSON.stringify(content)].join("  "));
}

// Prints what was handled, as fast as it is read and no faster.

export class EventPrinter {
  readonly #output: Writable;
  #failure: Error | null = null;
  /** Resolves with the error once nothing can be printed any more: nobody reads it, or there is no room for it. */
  readonly broken: Promise<Error>;

  constructor(output: Writable) {
    this.#output = output;
    this.broken = new Promise((resolve) => {
      output.once("error", (error) => {
        this.#failure = error;
        resolve(error);
      });
    });
  }

  /**
   * Prints a line that must be seen, and resolves when it has left the process: what only lies in its buffer is lost when it is killed,
   * so the handler waits. Rejects when nobody reads any more.
   */
  async result(line: string): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    const cause = await new Promise((resolve) => this.#output.write(`${line}\n`, resolve));
    if (cause) throw cause;
  }

  /** Prints a line, unless the reader is behind or gone: nothing waits for it. */
  remark(line: string): undefined {
    if (this.#failure === null && !this.#output.writableNeedDrain) this.#output.write(`${line}\n`);
  }
}

// The HTTP server of `oncehook listen`: the webhooks, and what a supervisor asks.

export interface ListenPlace {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Where webhooks are received. */
  readonly path: string;
}

export interface Serving {
  /** Where webhooks are received. */
  readonly url: string;
  /** Takes no new connection, answers what is under way, and resolves when the last connection has ended, in 15 s at most. */
  close(): Promise<void>;
}

/** A body may take 10 s, and its answer a moment. */
const CLOSE_LIMIT_MS = 15_000;

/** Says that the process answers, and checks nothing: a restart repairs no disk and no database. */
const HEALTH = "/healthz";
/** Says whether deliveries are accepted. */
const READINESS = "/readyz";
/** Reasons for which they are not. All others wait for a person, and sending deliveries elsewhere would not help. */
const UNREADY: readonly HealthReason[] = ["stopped", "store_unavailable"];

/** @throws CommandError when it cannot listen there */
export async function serve(receiver: ListeningReceiver, { host, port, path }: ListenPlace): Promise<Serving> {
  let isClosing = false;
  const webhook = nodeWebhook(receiver);
  const server = createServer((request, response) => {
    // A sender that always has more to say would hold up the end, and so would a connection that is kept for more.
    if (isClosing) response.setHeader("connection", "close");
    else response.once("finish", () => isClosing && setImmediate(() => server.closeIdleConnections()));
    const asked = pathOf(request);
    if (asked === path) webhook(request, response);
    else if (asked === HEALTH) answerTo(request, response, () => send(response, 200, { status: "ok" }));
    else if (asked === READINESS) answerTo(request, response, () => void sendReadiness(response, receiver, isClosing));
    else send(response, 404, { error: "not_found" });
  });
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    if (!isListenError(error)) throw error;
    const isPort = error.code === "EADDRINUSE" || error.code === "EACCES";
    throw cannotListen({ host, port, option: isPort ? "port" : "host" }, error);
  }
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${urlHostOf(host)}:${bound}${path}`,
    close() {
      isClosing = true;
      return closeServer(server, CLOSE_LIMIT_MS);
    },
  };
}

function pathOf({ url = "" }: IncomingMessage): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

function answerTo({ method }: IncomingMessage, response: ServerResponse, answer: () => void): void {
  if (method === "GET" || method === "HEAD") answer();
  else send(response, 405, { error: "method_not_allowed" }, { allow: "GET, HEAD" });
}

async function sendReadiness(response: ServerResponse, receiver: ListeningReceiver, isClosing: boolean): Promise<void> {
  const health = await receiver.health();
  const isReady = !isClosing && !health.reasons.some((reason) => UNREADY.includes(reason));
  send(response, isReady ? 200 : 503, health);
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  const bytes = Buffer.from(JSON.stringify(body));
  const own = { "content-type": "application/json", "content-length": bytes.length, "cache-control": "no-store" };
  response.writeHead(status, { ...own, ...headers }).end(bytes);
}

// Mistakes in options of the receiver and the publisher, in the words of the command line.

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

/** `oncehook/jetstream`: a publisher for NATS JetStream. */
import type { JetStreamClient, StreamConfig, StreamInfo } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { SetupError } from "../../errors.ts";
import {
  functionOption,
  invalidOption,
  isPromise,
  numberOption,
  refuseUnknownOptions,
  textOption,
} from "../../internal/options.ts";
import { ALL_ATTEMPTS_MS, type ForwardedMessage, type Publisher } from "./publisher.ts";

/** What is used of a JetStream client. */
type Client = Pick<JetStreamClient, "publish" | "jetstreamManager">;

export interface JetStreamPublisherOptions {
  /**
   * `jetstream(connection)` of @nats-io/jetstream, or a promise of it, with which the application starts while the server is
   * down. Connect with `maxReconnectAttempts: -1`, for the default gives up after ten, and with `waitOnFirstConnect: true`.
   */
  readonly js: Client | PromiseLike<Client>;
  /** The stream that must acknowledge. It is not made here: its limits are yours. */
  readonly stream: string;
  /**
   * The subject, or a function that gives it. `message.key` is safe as a token; ids from an event are not, as they may hold
   * dots and spaces.
   */
  readonly subject: string | ((message: ForwardedMessage) => string);
  /**
   * How long the stream must know an id again: its `duplicate_window` is refused if shorter. Milliseconds, 1,000 to
   * 2,592,000,000 (30 days). Default 86,400,000 (24 h), which is what the inbox's twelve attempts take.
   */
  readonly rememberIdsMs?: number;
}

/** A publisher that knows its engine. */
export interface JetStreamPublisher extends Required<Publisher> {}

const OPTIONS = ["js", "stream", "subject", "rememberIdsMs"];
const NANOS_PER_MS = 1_000_000;
/** Non-empty tokens between dots, without wildcards, spaces and control characters. */
const SUBJECT = /^[^\s\p{Cc}.*>]+(?:\.[^\s\p{Cc}.*>]+)*$/u;

/**
 * Makes a publisher for `forward` and `passthrough`: `Nats-Msg-Id` is the event's identity, and the publication counts when
 * the named stream has acknowledged it. Its `check` refuses a stream that does not exist, keeps its messages in memory or only
 * for consumers that it does not have, does not acknowledge, or forgets ids too early. What it cannot see: the server acknowledges before the disk has the message,
 * unless its configuration says `sync_interval: always`.
 *
 * @throws SetupError `invalid_option`; from `publish`, `missing_peer` without @nats-io/transport-node
 * @example
 * const publisher = jetstreamPublisher({ js: jetstream(connection), stream: "SMS", subject: ({ key }) => `sms.${key}` });
 * receiver.onAny(forward(publisher));
 */
export function jetstreamPublisher(options: JetStreamPublisherOptions): JetStreamPublisher {
  refuseUnknownOptions("jetstreamPublisher()", options, OPTIONS);
  const { subject } = options;
  const js = clientOption(options.js);
  const stream = textOption("stream", options.stream);
  if (stream === undefined) throw invalidOption("stream", "must name the stream", stream);
  const subjectOf = typeof subject === "string" ? fixedSubject(subject) : checkedSubject(subject);
  const bounds = { min: 1_000, max: 2_592_000_000, unit: "ms" };
  const remembersIdsMs = numberOption("rememberIdsMs", options.rememberIdsMs, ALL_ATTEMPTS_MS, bounds);
  return {
    remembersIdsMs,
    check: async () => checkStream(await infoOf(await js, stream), stream, remembersIdsMs),
    async publish(message) {
      const headers = await natsHeaders(message.headers);
      const expect = { streamName: stream };
      return (await js).publish(subjectOf(message), message.body, { msgID: message.id, headers, expect });
    },
  };
}

function clientOption(js: JetStreamPublisherOptions["js"]): Promise<Client> {
  if (!isPromise(js) && typeof (js as Client | undefined)?.publish !== "function") {
    throw invalidOption("js", "must be jetstream(connection), or a promise of it", js);
  }
  const client = Promise.resolve(js);
  // Its waiters get the error; an unhandled rejection before the first event would end the process.
  client.catch(() => {});
  return client;
}

function fixedSubject(subject: string): () => string {
  const checked = subjectOption(subject);
  return () => checked;
}

function checkedSubject(subject: JetStreamPublisherOptions["subject"]): (message: ForwardedMessage) => string {
  if (typeof subject !== "function") throw invalidOption("subject", "must be a subject or a function", subject);
  const give = functionOption("subject", subject);
  return (message) => subjectOption(give(message));
}

function subjectOption(subject: unknown): string {
  if (typeof subject === "string" && SUBJECT.test(subject)) return subject;
  throw invalidOption("subject", "must be tokens with dots between them, without wildcards and spaces", subject);
}

/** Any error but that of a missing stream means that the server does not answer, which passes. */
async function infoOf(js: Client, stream: string): Promise<StreamInfo> {
  try {
    const manager = await js.jetstreamManager();
    return await manager.streams.info(stream);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "StreamNotFoundError") throw error;
    throw setupError(`There is no stream "${stream}": make it, with --storage file.`, error);
  }
}

function checkStream({ config, state }: StreamInfo, stream: string, rememberIdsMs: number): readonly string[] {
  if (config.storage !== "file") {
    throw setupError(
      `The stream "${stream}" is kept in memory: make it with --storage file.`,
      undefined,
      "not_durable",
    );
  }
  if (config.no_ack === true) throw setupError(`The stream "${stream}" does not acknowledge: make it without no_ack.`);
  const windowMs = config.duplicate_window / NANOS_PER_MS;
  if (windowMs < rememberIdsMs) {
    throw setupError(
      `The stream "${stream}" knows an id again for ${windowMs} ms, but an event may be tried again for ${rememberIdsMs} ms: ` +
        `nats stream edit ${stream} --dupe-window ${rememberIdsMs / 1000}s`,
    );
  }
  if (config.retention === "interest" && state.consumer_count === 0) {
    throw setupError(
      `The stream "${stream}" keeps only what a consumer waits for (--retention interest), and has no consumer: make one first.`,
      undefined,
      "not_durable",
    );
  }
  return weaknessesOf(config);
}

/** What works, and may lose what was acknowledged. */
function weaknessesOf(config: StreamConfig): string[] {
  const { name, retention, discard } = config;
  const weaknesses: string[] = [];
  const isBounded = config.max_bytes > 0 || config.max_msgs > 0;
  if (config.max_msgs_per_subject > 0 && !(discard === "new" && config.discard_new_per_subject)) {
    const flags = "--discard new --discard-per-subject";
    weaknesses.push(
      `The stream "${name}" drops the oldest messages of a full subject: with ${flags} the inbox waits instead.`,
    );
  } else if (isBounded && discard !== "new") {
    weaknesses.push(`The full stream "${name}" drops its oldest messages: with --discard new the inbox waits instead.`);
  }
  if (retention === "interest") {
    weaknesses.push(
      `The stream "${name}" keeps only what its consumers wait for (--retention interest): what comes for none is acknowledged and lost.`,
    );
  }
  return weaknesses;
}

function setupError(message: string, cause?: Error, code: "invalid_option" | "not_durable" = "invalid_option") {
  return new SetupError(code, message, { fields: { option: "stream" }, ...(cause === undefined ? {} : { cause }) });
}

async function natsHeaders(named: ForwardedMessage["headers"]): Promise<MsgHdrs> {
  const made = (await loadTransport()).headers();
  for (const [name, text] of Object.entries(named)) made.set(name, text);
  return made;
}

async function loadTransport(): Promise<typeof import("@nats-io/transport-node")> {
  try {
    return await import("@nats-io/transport-node");
  } catch (cause) {
    const fix = `run "npm install @nats-io/transport-node @nats-io/jetstream"`;
    throw new SetupError("missing_peer", `JetStream needs the package @nats-io/transport-node: ${fix}.`, { cause });
  }
}

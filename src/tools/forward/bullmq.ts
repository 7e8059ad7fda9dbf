/** `oncehook/bullmq`: a publisher for BullMQ, whose queue is declared here by the few methods that are used. */
import { SetupError } from "../../errors.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { ALL_ATTEMPTS_MS, type ForwardedMessage, type Publisher } from "./publisher.ts";

/** Jobs kept after their end: all or none, that many, or those of an age (seconds). */
type Removal = boolean | number | { readonly age?: number; readonly count?: number };

/** What is used of a BullMQ `Queue`. */
export interface BullmqQueue {
  readonly name: string;
  readonly defaultJobOptions: object;
  readonly backend: object;
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: ForwardedJob, options: BullmqJobOptions): Promise<unknown>;
}

/** The options that every job is added with; all others are the queue's `defaultJobOptions`. */
export interface BullmqJobOptions {
  /** The identity of the event. */
  readonly jobId: string;
  /** Whether a finished job goes at once, or after `age` seconds. */
  readonly removeOnComplete: boolean | { readonly age: number };
  /** Whether a failed job goes at once, or after `age` seconds. */
  readonly removeOnFail: boolean | { readonly age: number };
}

/** A job's data. Its name is the event type, its id the event's identity. */
export interface ForwardedJob {
  /** The same for all events of a lane. */
  readonly key: string;
  /** The event's place among its lane's; 0 for events that have none. */
  readonly sequence: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body exactly as it was received: `Buffer.from(body)` gives its bytes, `parseEvent(body)` the event. */
  readonly body: string;
}

export interface BullmqPublisherOptions {
  /** `new Queue(name, { connection })` of bullmq. */
  readonly queue: BullmqQueue;
  /**
   * How long a job stays in Redis after its end, for only as long is its id known again. Milliseconds, 1,000 to 2,592,000,000
   * (30 days). Default 86,400,000 (24 h), which is what the inbox's twelve attempts take.
   */
  readonly rememberIdsMs?: number;
}

/** A publisher that knows its engine. */
export interface BullmqPublisher extends Required<Publisher> {}

/**
 * Makes a publisher for `forward` and `passthrough` that adds a job for each event, with the event's identity as the job's id:
 * while Redis has the job, the same event is not added again. Jobs are added in the order of their lane, but BullMQ does
 * not keep it: workers with a concurrency above one, several workers, and every retry overtake. `sequence` in the job's data
 * says where an event belongs.
 *
 * Jobs stay for `rememberIdsMs` after they completed, and failed ones until somebody removes them. Give them a queue of their own:
 * any other job that ends in it can remove them too, by its own options or its worker's. Default job options that remove them
 * earlier are refused. Its `check` refuses a Redis that evicts keys, and warns of one that does not append to a file what it
 * acknowledged.
 *
 * @throws SetupError `invalid_option`
 * @example
 * const publisher = bullmqPublisher({ queue: new Queue("sms", { connection }) });
 * receiver.onAny(forward(publisher));
 */
export function bullmqPublisher(options: BullmqPublisherOptions): BullmqPublisher {
  refuseUnknownOptions("bullmqPublisher()", options, ["queue", "rememberIdsMs"]);
  const { queue } = options;
  if (typeof queue?.add !== "function") throw invalidOption("queue", "must be a Queue of bullmq", queue);
  const bounds = { min: 1_000, max: 2_592_000_000, unit: "ms" };
  const remembersIdsMs = numberOption("rememberIdsMs", options.rememberIdsMs, ALL_ATTEMPTS_MS, bounds);
  const age = Math.ceil(remembersIdsMs / 1000);
  const { removeOnComplete, removeOnFail } = queue.defaultJobOptions as Record<string, Removal | undefined>;
  const kept = {
    removeOnComplete: removalOption("removeOnComplete", removeOnComplete, age) ?? { age },
    removeOnFail: removalOption("removeOnFail", removeOnFail, age) ?? false,
  };
  return {
    remembersIdsMs,
    check: () => checkRedis(queue),
    publish: (message) => queue.add(message.event.eventType, jobOf(message), { jobId: message.id, ...kept }),
  };
}

function jobOf({ key, sequence, headers, body }: ForwardedMessage): ForwardedJob {
  // The body was parsed as strict UTF-8: as text it loses nothing.
  return { key, sequence, headers, body: new TextDecoder().decode(body) };
}

/** A count alone keeps a job for no certain time, and an age with a count for no longer than that count lasts. */
function removalOption(name: string, value: Removal | undefined, age: number): false | { age: number } | undefined {
  if (value === undefined || value === false) return value;
  if (typeof value === "object" && value.count === undefined && value.age !== undefined && value.age >= age) {
    return { age: value.age };
  }
  throw new SetupError(
    "invalid_option",
    `The queue's defaultJobOptions.${name} removes jobs before their id may be forgotten, so an event could be added twice: ` +
      `leave it out, or write { age: ${age} } without a count.`,
    { fields: { option: name } },
  );
}

/** A right that the user has not cannot be waited for, as a server that is down can. */
function nullWithoutRight(error: unknown): null {
  if (error instanceof Error && error.message.startsWith("NOPERM")) return null;
  throw error;
}

/** Only a Redis has a client with `info`; BullMQ's other backends evict nothing. */
async function checkRedis(queue: BullmqQueue): Promise<readonly string[]> {
  await queue.waitUntilReady();
  const client = await (queue.backend as { client?: Promise<{ info?: () => Promise<string> }> }).client;
  const info = client?.info === undefined ? "" : await client.info().catch(nullWithoutRight);
  if (info === null) {
    return [
      "The queue's user may not ask Redis for INFO, so nobody has looked: set maxmemory-policy noeviction and appendonly yes there.",
    ];
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? "noeviction";
  if (policy !== "noeviction") {
    throw new SetupError(
      "not_durable",
      `Redis may evict the jobs of the queue "${queue.name}" (maxmemory-policy ${policy}): set it to noeviction.`,
      { fields: { option: "queue" } },
    );
  }
  if (!/^aof_enabled:0/m.test(info)) return [];
  return [
    "Redis does not append to a file (appendonly no): jobs that it acknowledged are lost when it ends unexpectedly. Set appendonly yes.",
  ];
}

/** Forwarding to BullMQ on a real Redis: one job per event, whatever becomes of acknowledgements and servers. */
import { type DefaultJobOptions, Queue, type QueueOptions, Worker } from "bullmq";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { parseEvent } from "../../../src/index.ts";
import { type BullmqPublisherOptions, bullmqPublisher, type ForwardedJob } from "../../../src/tools/forward/bullmq.ts";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { newInbox, startForwarding } from "./bench.ts";
import { FAULTLESS, faultsOf, type Held, heldOf, messages } from "./held.ts";
import { atEnd, needs } from "./needs.ts";
import { REDIS, uniqueName } from "./services.ts";

type JobQueue = Queue<ForwardedJob>;

function newQueue(port = REDIS.port, options: Partial<QueueOptions> = {}, name = uniqueName("oncehook")): JobQueue {
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: 1, retryStrategy: () => 20 };
  const queue: JobQueue = new Queue(name, { connection, ...options });
  queue.on("error", () => {});
  atEnd(() => queue.close());
  return queue;
}

/** A queue of the test's own, removed with it. */
function ownQueue(options: Partial<QueueOptions> = {}): JobQueue {
  const queue = newQueue(REDIS.port, options);
  atEnd(() => queue.obliterate({ force: true }));
  return queue;
}

/** In the order in which they were added. */
async function held(queue: JobQueue): Promise<Held[]> {
  const jobs = await queue.getJobs(["waiting", "active", "completed", "failed"], 0, -1, true);
  return jobs.map(({ id = "", data }) => heldOf(id, data.body));
}

describe("bullmqPublisher() with a receiver", () => {
  beforeEach(needs(REDIS));

  it("adds one job per event, in the order of its message (RCV-6, RCV-7)", async () => {
    const queue = ownQueue();
    const { accept, settled } = await startForwarding(bullmqPublisher({ queue }));
    const sent = [...messages(20), fixtures.inbound({ occurredAt: Date.now() })];
    await accept([...sent, ...sent]);
    await settled();
    expect(faultsOf(await held(queue), sent)).toEqual(FAULTLESS);
  });

  it("gives a job the event's name, place and text as it was received", async () => {
    const queue = ownQueue();
    const { accept, settled } = await startForwarding(bullmqPublisher({ queue }));
    const event = fixtures.queued({ occurredAt: Date.now(), data: { note: "ü 😀 \u2028" } });
    await accept([event]);
    await settled();
    const [job] = await queue.getJobs(["waiting"]);
    expect(job).toMatchObject({ name: "message.queued", data: { sequence: 1, body: JSON.stringify(event) } });
    expect(job?.data.headers["oncehook-attempt"]).toBe("1");
    expect(parseEvent(Buffer.from(job!.data.body))).toMatchObject({ ok: true, event });
    expect(job?.id).toMatch(/^[0-9a-f]{64}$/);
  });

  it("adds nothing again after a crash between Redis's answer and the inbox's, not even when the job is done", async () => {
    const queue = ownQueue();
    const publisher = bullmqPublisher({ queue });
    const inbox = await newInbox();
    // It has Redis's answer, and ends before its inbox knows.
    const dying: typeof publisher = {
      ...publisher,
      publish: (message) => Promise.resolve(publisher.publish(message)).then(() => new Promise(() => {})),
    };
    const first = await startForwarding(dying, inbox);
    const sent = messages(5);
    await first.accept(sent);
    await expect.poll(async () => (await held(queue)).length).toBe(5);
    await first.stop();
    let worked = 0;
    // Its worker's own wish to remove jobs at once counts for less than the job's options.
    const connection = { host: REDIS.host, port: REDIS.port };
    const work = async () => {
      worked += 1;
    };
    const worker = new Worker(queue.name, work, { connection, removeOnComplete: { count: 0 } });
    atEnd(() => worker.close());
    await expect.poll(() => worked).toBe(5);
    const second = await startForwarding(publisher, inbox);
    await second.settled();
    await expect.poll(() => worked).toBe(15);
    await expect.poll(async () => (await queue.getJobCounts("completed")).completed).toBe(15);
    expect(faultsOf(await held(queue), sent)).toMatchObject({ lost: 0, twice: 0 });
  });

  it("is made to forget by the queue's other jobs, where the worker keeps a number of them", async () => {
    const queue = ownQueue();
    const { accept, settled } = await startForwarding(bullmqPublisher({ queue }));
    await accept([fixtures.queued({ occurredAt: Date.now() })]);
    await settled();
    const connection = { host: REDIS.host, port: REDIS.port };
    const worker = new Worker(queue.name, async () => {}, { connection, removeOnComplete: { count: 1 } });
    atEnd(() => worker.close());
    const completed = async () => (await queue.getJobs("completed")).map(({ name }) => name);
    await expect.poll(completed).toEqual(["message.queued"]);
    const other = { key: "", sequence: 0, headers: {}, body: "" };
    await queue.add("another", other);
    // By the options of the job that ended, or its worker's; ours say what becomes of them when they end themselves.
    await expect.poll(completed).toEqual(["another"]);
  });
});

describe("bullmqPublisher().check()", () => {
  it("asks a Redis for its eviction and its file", async () => {
    const answering = (info: string) =>
      bullmqPublisher({ queue: queueOf({ backend: { client: Promise.resolve({ info: async () => info }) } }) }).check();
    expect(await answering("maxmemory_policy:noeviction\r\naof_enabled:1\r\n")).toEqual([]);
    expect(await answering("maxmemory_policy:noeviction\r\naof_enabled:0\r\n")).toEqual([
      expect.stringMatching(/appendonly yes/),
    ]);
    await expect(answering("aof_enabled:1\r\nmaxmemory_policy:allkeys-lru\r\n")).rejects.toThrow(/allkeys-lru/);
  });

  it("waits for a Redis that fails in another way, and has no complaint about a backend that is none", async () => {
    const info = async () => Promise.reject(new Error("READONLY"));
    const { check } = bullmqPublisher({ queue: queueOf({ backend: { client: Promise.resolve({ info }) } }) });
    await expect(check()).rejects.toThrow("READONLY");
    expect(await bullmqPublisher({ queue: queueOf({}) }).check()).toEqual([]);
  });

  it("reads a real Redis", async (context) => {
    await needs(REDIS)(context);
    const queue = ownQueue();
    const redis = new Redis(REDIS.url);
    const info = await redis.info();
    redis.disconnect();
    const warnings = /aof_enabled:0/.test(info) ? [expect.stringMatching(/appendonly/)] : [];
    expect(await bullmqPublisher({ queue }).check()).toEqual(warnings);
  });
});

describe("bullmqPublisher() as a Redis user without INFO", () => {
  beforeEach(needs(REDIS));

  it("adds all the same, and says that nobody has looked", async () => {
    const name = uniqueName("user");
    const admin = new Redis(REDIS.url);
    atEnd(async () => {
      await admin.acl("DELUSER", name);
      admin.disconnect();
    });
    await admin.acl("SETUSER", name, "on", ">word", "~*", "&*", "+@all", "-info");
    const own = ownQueue();
    const connection = { host: "127.0.0.1", port: REDIS.port, username: name, password: "word" };
    const queue = newQueue(REDIS.port, { connection, skipVersionCheck: true }, own.name);
    const publisher = bullmqPublisher({ queue });
    expect(await publisher.check()).toEqual([expect.stringContaining("may not ask Redis for INFO")]);
    const { accept, settled } = await startForwarding(publisher);
    const sent = messages(2);
    await accept(sent);
    await settled();
    expect(faultsOf(await held(own), sent)).toEqual(FAULTLESS);
  });
});

describe("bullmqPublisher() options", () => {
  it.each([
    ["at once", { removeOnComplete: true }, /removeOnComplete.*\{ age: 86400 \}/],
    ["by their number", { removeOnComplete: 1_000 }, /removeOnComplete/],
    ["after an hour", { removeOnComplete: { age: 3_600 } }, /removeOnComplete/],
    ["by number and age", { removeOnComplete: { age: 86_400, count: 10 } }, /removeOnComplete/],
    ["when they failed", { removeOnFail: true }, /removeOnFail/],
  ] satisfies [string, DefaultJobOptions, RegExp][])("refuses a queue that removes jobs %s", (_, options, message) => {
    expect(() => bullmqPublisher({ queue: queueOf({ defaultJobOptions: options }) })).toThrow(message);
  });

  it.each([
    [{}, { removeOnComplete: { age: 86_400 }, removeOnFail: false }],
    [{ removeOnComplete: false }, { removeOnComplete: false, removeOnFail: false }],
    [
      { removeOnComplete: { age: 90_000 }, removeOnFail: { age: 86_400 } },
      { removeOnComplete: { age: 90_000 }, removeOnFail: { age: 86_400 } },
    ],
  ])("adds jobs to a queue with %j so that their ids stay", async (defaultJobOptions, kept) => {
    const added: unknown[] = [];
    const add: BullmqPublisherOptions["queue"]["add"] = async (_name, _data, options) => added.push(options);
    const { publish } = bullmqPublisher({ queue: queueOf({ defaultJobOptions, add }) });
    const message = { id: "a", event: fixtures.queued(), body: Buffer.from("{}"), key: "k", sequence: 1, headers: {} };
    await publish(message as unknown as Parameters<typeof publish>[0]);
    expect(added).toEqual([{ jobId: "a", ...kept }]);
  });

  it.each([
    [{ queue: {} }, /"queue"/],
    [{ rememberIdsMs: 1 }, /"rememberIdsMs"/],
    [{ jobs: 1 }, /no option "jobs"/],
  ])("refuses %j", (wrong, message) => {
    expect(() => bullmqPublisher({ queue: queueOf({}), ...wrong } as unknown as BullmqPublisherOptions)).toThrow(
      message,
    );
  });
});

function queueOf(parts: object): BullmqPublisherOptions["queue"] {
  const waitUntilReady = async () => {};
  return { name: "sms", defaultJobOptions: {}, backend: {}, waitUntilReady, add: async () => {}, ...parts };
}

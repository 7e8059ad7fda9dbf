/**
 * The example with BullMQ as two real processes: one receives and forwards, one takes the jobs.
 *
 * @module-tag full
 */
import { fileURLToPath } from "node:url";
import { Queue } from "bullmq";
import { beforeEach, describe, expect, it } from "vitest";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { RunningExample } from "../../examples/running.ts";
import { messages } from "./held.ts";
import { atEnd, needs, startProxyDown } from "./needs.ts";
import { at, REDIS, uniqueName } from "./services.ts";

const WORKER = fileURLToPath(new URL("../../../.build/examples/servers/express-bullmq/worker.js", import.meta.url));
/** As long as a busy machine may need. */
const eventually = (read: () => unknown) => expect.poll(read, { timeout: 15_000 });

/** Names a queue that is removed with the test, together with what the worker keeps. */
function ownQueue(): { QUEUE: string; REDIS_URL: string; queue: Queue } {
  const name = uniqueName("example");
  const queue = new Queue(name, { connection: { host: REDIS.host, port: REDIS.port } });
  atEnd(async () => {
    await queue.obliterate({ force: true });
    const redis = (await queue.backend.client) as unknown as { del(key: string): Promise<unknown> };
    await redis.del(`${name}:state`);
    await queue.close();
  });
  return { QUEUE: name, REDIS_URL: REDIS.url, queue };
}

describe("examples/servers/express-bullmq", () => {
  beforeEach(needs(REDIS));

  it("hands each event to the worker once, which keeps the newest state of a message (RCV-6, RCV-7)", async () => {
    const { queue: _, ...environment } = ownQueue();
    const server = await RunningExample.start("express-bullmq", environment);
    const worker = await RunningExample.start("express-bullmq", environment, [process.execPath, WORKER]);
    const sent = [...messages(4), fixtures.inbound({ occurredAt: Date.now() })];
    for (const event of [...sent, ...sent]) expect((await server.deliver(event)).status).toBe(200);
    await eventually(() => worker.lines.length).toBe(sent.length);
    const lines = worker.lines.map((line) => JSON.parse(line));
    expect(new Set(lines.map(({ worked }) => worked)).size).toBe(sent.length);
    expect(lines.filter(({ sequence, newer }) => sequence === 3 && newer)).toHaveLength(4);
    expect(worker.lines.join()).not.toMatch(/\+1415|Hello/);
    expect([await server.terminate(), await worker.terminate()]).toEqual([0, 0]);
  });

  it("accepts webhooks while Redis is down, and forwards them when it is back", async () => {
    const { queue, ...environment } = ownQueue();
    const proxy = await startProxyDown(REDIS);
    const server = await RunningExample.start("express-bullmq", { ...environment, REDIS_URL: at(REDIS, proxy.port) });
    expect((await server.deliver(fixtures.queued({ occurredAt: Date.now() }))).status).toBe(200);
    expect(await (await fetch(`${server.url}/readyz`)).json()).toMatchObject({ status: "ok" });
    await proxy.up();
    await eventually(() => queue.getWaitingCount()).toBe(1);
    expect(await server.terminate()).toBe(0);
  });
});

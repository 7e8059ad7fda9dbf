/** The Express and the Fastify example, as real processes that are spoken to over HTTP. */
import { renameSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fixtures, lifecycle, seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import { PREVIOUS_SECRET, RunningExample, runToEnd, SECRET } from "./running.ts";

/** As long as a busy machine may need. */
const eventually = (read: () => number) => expect.poll(read, { timeout: 15_000 });
const event = () => fixtures.queued({ occurredAt: Date.now() });

it("ends with 0 although it is told twice, and has a request that is never finished", { tags: "full" }, async () => {
  // At once, because each waits some seconds for that request.
  const names = ["express", "fastify", "express-bullmq"] as const;
  const codes = names.map(async (name) => {
    const example = await RunningExample.start(name);
    await example.beginRequest();
    example.signal("SIGTERM");
    await expect.poll(() => example.isListening(), { timeout: 15_000 }).toBe(false);
    return example.terminate();
  });
  expect(await Promise.all(codes)).toEqual([0, 0, 0]);
});

describe.each(["express", "fastify"] as const)("examples/servers/%s", (name) => {
  it("keeps an ordinary JSON route beside the webhooks", async () => {
    const example = await RunningExample.start(name);
    const echoed = await example.post("/api/echo", JSON.stringify({ hello: ["wörld"] }));
    expect([echoed.status, await echoed.json()]).toEqual([200, { hello: ["wörld"] }]);
    expect((await example.post("/api/echo", "{")).status).toBe(400);
    expect((await example.post("/webhooks", "{}")).status).toBe(401);
    const got = await fetch(`${example.url}/webhooks`);
    expect([got.status, got.headers.get("allow")]).toEqual([405, "POST, PUT"]);
  });

  it("tells a supervisor that it lives, and a balancer whether it can store deliveries", { tags: "full" }, async () => {
    const example = await RunningExample.start(name);
    const answers = async () => {
      const [alive, ready] = await Promise.all(["/healthz", "/readyz"].map((path) => fetch(`${example.url}${path}`)));
      return [alive?.status, await alive?.json(), ready?.status, await ready?.json()];
    };
    expect(await answers()).toEqual([200, { status: "ok" }, 200, { status: "ok", reasons: [], details: { late: 0 } }]);
    // As a careless clean-up does: what the open connection writes now, no restart would find.
    renameSync(example.inboxPath, `${example.inboxPath}.moved`);
    const answer = () => example.deliver(event()).then(({ status }) => status);
    await expect.poll(answer, { timeout: 15_000 }).toBe(503);
    const unready = { status: "degraded", reasons: ["store_unavailable"], details: { late: 0 } };
    expect(await answers()).toEqual([200, { status: "ok" }, 503, unready]);
  });

  it("records and prints each event once, in order, whatever the arrival (RCV-6, RCV-7, RCV-10, RCV-11)", async () => {
    const example = await RunningExample.start(name, {
      WEBHOOK_PREVIOUS_SECRET: PREVIOUS_SECRET,
      WEBHOOK_PREVIOUS_VALID_UNTIL: String(Date.now() + 60_000),
    });
    const [queued, sent, delivery] = lifecycle({ occurredAt: Date.now() });
    for (const content of [delivery, queued, delivery, sent])
      expect((await example.deliver(content!)).status).toBe(200);
    await eventually(() => example.handled().length).toBe(3);
    expect((await example.deliver(fixtures.inbound(), PREVIOUS_SECRET)).status).toBe(200);
    await eventually(() => example.handled().length).toBe(4);
    expect((await example.deliver(fixtures.unknown({ eventType: "message.read" }))).status).toBe(200);
    await eventually(() => example.handled().length).toBe(5);
    expect(example.handled()).toEqual([
      { message_id: "msg_000001", sequence: 1, event_type: "message.queued" },
      { message_id: "msg_000001", sequence: 2, event_type: "message.sent" },
      { message_id: "msg_000001", sequence: 3, event_type: "message.delivery" },
      { message_id: "msg_in_000001", sequence: 0, event_type: "message.inbound" },
      { message_id: null, sequence: 0, event_type: "message.read" },
    ]);
    await eventually(() => example.lines.length).toBe(5);
    const lines = example.lines.map((line) => JSON.parse(line));
    expect(lines.map(({ sequence, eventType, attempt }) => [sequence, eventType, attempt])).toEqual([
      [1, "message.queued", 1],
      [2, "message.sent", 1],
      [3, "message.delivery", 1],
      [0, "message.inbound", 1],
      [0, "message.read", 1],
    ]);
    expect(example.lines.join()).not.toMatch(/\+1415|Hello/);
  });

  it("prints a late event, and leaves it out of the table (RCV-7)", { tags: "full" }, async () => {
    const example = await RunningExample.start(name);
    for (const content of lifecycle({ occurredAt: Date.now() })) await example.deliver(content);
    await eventually(() => example.handled().length).toBe(3);
    const late = await example.deliver(fixtures.failed({ occurredAt: Date.now(), sequence: 2 }));
    expect([late.status, await late.json()]).toEqual([200, { outcome: "late" }]);
    await eventually(() => example.lines.length).toBe(4);
    expect(JSON.parse(example.lines.at(-1)!)).toMatchObject({ eventType: "message.failed", sequence: 2, late: true });
    expect(example.handled()).toHaveLength(3);
  });

  it("on SIGTERM handles what is ready, and ends with 0", async () => {
    const example = await RunningExample.start(name);
    const random = seededRandom(3);
    const events = Array.from({ length: 20 }, (_, index) =>
      lifecycle({ messageId: `msg_${index}`, occurredAt: Date.now() }),
    ).flat();
    const answers = await Promise.all(shuffled(events, random).map((content) => example.deliver(content)));
    expect(answers.map(({ status }) => status)).toEqual(events.map(() => 200));
    expect(await example.terminate()).toBe(0);
    const handled = example.handled();
    expect(handled).toHaveLength(events.length);
    for (let index = 0; index < 20; index++) {
      const own = handled.filter((row) => row.message_id === `msg_${index}`);
      expect(own.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    }
  });

  it(`is stopped through npm run example:${name}`, { tags: "full", timeout: 60_000 }, async () => {
    // The script replaces its shell: npm would signal that one alone, and leave the server behind.
    const example = await RunningExample.start(name, {}, ["npm", "run", "--silent", `example:${name}`]);
    expect((await example.deliver(event())).status).toBe(200);
    expect(await example.terminate()).toBe(0);
    expect(example.handled()).toHaveLength(1);
    await expect(fetch(example.url)).rejects.toThrow();
  });

  it.each([
    ["no secret", {}, /^WEBHOOK_SECRET is not set: put .* in it\.\n$/],
    ["an empty secret", { WEBHOOK_SECRET: "" }, /^WEBHOOK_SECRET is not set/],
    ["a short secret", { WEBHOOK_SECRET: "short" }, /^[^\n]*at least 16[^\n]*\n$/],
    [
      "a previous secret without end",
      { WEBHOOK_SECRET: SECRET, WEBHOOK_PREVIOUS_SECRET: PREVIOUS_SECRET },
      /^WEBHOOK_PREVIOUS_VALID_UNTIL is not set/,
    ],
    ["a port that is none", { WEBHOOK_SECRET: SECRET, PORT: "http" }, /^PORT must be a whole number/],
  ])("ends with 1 and one line that names the fix: %s", { tags: "full" }, async (_case, environment, line) => {
    const { code, output, errors } = await runToEnd(name, environment);
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toMatch(line);
    expect(errors.trim().split("\n")).toHaveLength(1);
    expect(errors).not.toContain(SECRET);
  });

  it("ends with 1 when its port is taken", { tags: "full" }, async () => {
    const first = await RunningExample.start(name);
    const { code, errors } = await runToEnd(name, { WEBHOOK_SECRET: SECRET, PORT: new URL(first.url).port });
    expect(code).toBe(1);
    expect(errors).toContain("EADDRINUSE");
  });
});

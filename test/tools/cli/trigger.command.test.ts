/** `oncehook trigger` against a receiver. */
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { triggerCommand } from "../../../src/tools/cli/trigger.ts";
import { deliverTo } from "../../../src/tools/cli/trigger-events.ts";
import { createFakeClock, fixtures, TEST_SECRET } from "../../../src/tools/testing/index.ts";
import { rowsOf, runHere } from "./here.ts";
import { newFolder, newServer, startHanging } from "./place.ts";
import { runToEnd } from "./running.ts";

/** Its URL, and the events that it handled. */
async function startReceiver() {
  const store = sqliteStore(join(newFolder(), "inbox.db"));
  const receiver = createReceiver({ secrets: TEST_SECRET, store, logger: silentLogger });
  const handled: string[] = [];
  receiver.onAny((event, { meta }) => void handled.push(`${meta.lane ?? meta.id} ${event.eventType}`));
  await receiver.start();
  onTestFinished(() => receiver.stop());
  return { url: await newServer(nodeWebhook(receiver)), handled };
}

const environment = { ONCEHOOK_WEBHOOK_SECRET: TEST_SECRET };

describe("oncehook trigger", () => {
  it("delivers a lifecycle out of order and twice, and prints what was answered", async () => {
    const { url, handled } = await startReceiver();
    const args = ["--to", url, "--message=msg_7", "--order=delivery,queued,sent", "--duplicate", "--json"];
    const { code, output, errors } = await runToEnd(["trigger", "lifecycle", ...args], environment);
    expect([code, errors]).toEqual([0, ""]);
    const lines = rowsOf({ output });
    expect(lines).toHaveLength(6);
    expect(lines[0]).toEqual({
      ...{ eventType: "message.delivery", messageId: "msg_7", sequence: 3 },
      ...{ status: 200, durationMs: expect.any(Number), outcome: "accepted" },
    });
    expect(lines.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(3);
    await expect.poll(() => handled).toEqual(["msg_7 message.queued", "msg_7 message.sent", "msg_7 message.delivery"]);
  });

  it("ends with 3 where the receiver refuses", async () => {
    const { url } = await startReceiver();
    const { code, output, errors } = await runHere(triggerCommand(), ["inbound", "--to", url, "--message=msg_8"], {
      ONCEHOOK_WEBHOOK_SECRET: "another-signing-secret-of-32-byt",
    });
    expect([code, errors]).toEqual([3, "1 of 1 were not taken.\n"]);
    expect(output).toMatch(/^401 +\d+ ms {2}message\.inbound {2}msg_8 {2}- {2}unauthorized\n$/);
  });

  it("sends in the same order for the same seed, and prints of a foreign answer no more than its status", async () => {
    const url = await newServer((_request, response) => response.writeHead(204).end());
    const shuffle = async (seed: number) => {
      const args = ["lifecycle", "--to", url, "--message=msg_9", "--count=4", `--shuffle=${seed}`];
      const { code, output, errors } = await runHere(triggerCommand(), args, environment);
      expect([code, errors]).toEqual([0, `The order is that of --shuffle ${seed}.\n`]);
      expect(output).toMatch(/^(?:204 +\d+ ms {2}message\.[a-z]+ {2}msg_9-\d {2}\d\n){12}$/);
      return output.replaceAll(/ +\d+ ms/g, "");
    };
    const first = await shuffle(7);
    expect(await shuffle(7)).toBe(first);
    expect(await shuffle(8)).not.toBe(first);
  });

  it("prints a dash for a message that an event does not name", async () => {
    const url = await newServer((_request, response) => response.end());
    const args = ["account.closed", "--to", url, "--set=messageId=null"];
    const { output } = await runHere(triggerCommand(), args, environment);
    expect(output).toMatch(/^200 +\d+ ms {2}account\.closed {2}- {2}/);
  });

  it("prints no id that a terminal would obey", async () => {
    const { url } = await startReceiver();
    const args = ["queued", "--to", url, "--message=a\u001b[2J\u202eb"];
    const { output } = await runHere(triggerCommand(), args, environment);
    expect(output).toMatch(/ message\.queued {2}a\\u001b\[2J\\u202eb {2}1 /);
  });

  it.each([
    [["queued"], 2, /^error: required option '--to <url>' not specified\n$/],
    [["queud", "--to=http://127.0.0.1:1/"], 2, /^error: There is no event "queud"\. Did you mean "queued"\?\n$/],
    [["queued", "--to=here"], 2, /^error: --to takes an http or https URL/],
    [["queued", "--to=ftp://a"], 2, /^error: --to takes an http or https URL/],
    [["queued", "--to=http://a:b@127.0.0.1/"], 2, /^error: --to takes an http or https URL without credentials/],
    [
      ["queued", "--to=http://127.0.0.1:2/"],
      1,
      /^error: No answer came: nothing listens there; is the receiver running\?\n$/,
    ],
    [
      ["queued", "--to=http://127.0.0.1:6000/"],
      1,
      /^error: No answer came: fetch connects to no such port, .*one\.\n$/,
    ],
  ])("says of %j what is wrong with it", async (args, expected, message) => {
    const { code, output, errors } = await runHere(triggerCommand(), args, environment);
    expect([code, output]).toEqual([expected, ""]);
    expect(errors).toMatch(message);
  });
});

describe("deliverTo()", () => {
  async function delivered(status: number, body: string, headers: Record<string, string> = {}) {
    const url = await newServer((_request, response) => response.writeHead(status, headers).end(body));
    return deliverTo({ url, secret: TEST_SECRET }, fixtures.queued());
  }

  it.each([
    ["an object without one", 200, "{}", null],
    ["a text", 200, '"accepted"', null],
    ["a page", 200, "<html>", null],
    ["an error", 503, '{"error":"unavailable"}', "unavailable"],
    ["codes for a terminal", 200, '{"outcome":"\\u001b[31m"}', null],
    ["a long text", 200, "x".repeat(100_000), null],
  ])("takes a word of the answer, and nothing else: %s", async (_, status, body, outcome) => {
    expect(await delivered(status, body)).toMatchObject({ status, outcome });
  });

  it("waits ten seconds for an answer", async () => {
    const { url, asked } = await startHanging();
    const clock = createFakeClock();
    const delivered = deliverTo({ url, secret: TEST_SECRET }, fixtures.queued(), clock);
    const failure = expect(delivered).rejects.toMatchObject({ exitCode: 1, message: "No answer came within 10 s." });
    await asked;
    await clock.advance(10_000);
    await failure;
  });

  it.each<[RequestListener, string]>([
    [({ socket }) => void socket.destroy(), "the connection failed"],
    [({ socket }) => void socket.resetAndDestroy(), "ECONNRESET"],
  ])("says why no answer came: %#", async (answer, reason) => {
    const delivering = deliverTo({ url: await newServer(answer), secret: TEST_SECRET }, fixtures.queued());
    await expect(delivering).rejects.toMatchObject({ exitCode: 1, message: `No answer came: ${reason}.` });
  });

  it("names what it sent as far as it has names", async () => {
    const url = await newServer((_request, response) => response.writeHead(204).end());
    const target = { url, secret: TEST_SECRET };
    const nothing = { messageId: null, sequence: null, outcome: null };
    expect(await deliverTo(target, { eventType: "a.b" })).toMatchObject({ eventType: "a.b", ...nothing });
    expect(await deliverTo(target, { eventType: "a.b", messageId: 7, data: {} })).toMatchObject(nothing);
  });

  it("follows no redirect", async () => {
    expect(await delivered(302, "", { location: "http://127.0.0.1:2/" })).toMatchObject({ status: 302, outcome: null });
  });
});

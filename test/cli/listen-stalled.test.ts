/** `oncehook listen` while nobody reads what it prints: a real pipe that is full, or a device that is. */
import { closeSync, existsSync, openSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { openInbox, signPayload } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures } from "../../src/testing/index.ts";
import { startApplication } from "../forward/http-application.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { leavePending, outboundEvent } from "./inbox-place.ts";
import { Running } from "./running.ts";
import { openStalledPipe } from "./stalled-pipe.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";
const SECRETS = {
  ONCEHOOK_WEBHOOK_SECRET: SECRET,
  ONCEHOOK_FORWARD_SECRET: "a-forwarding-secret-of-32-bytes-",
};

const WAITING = { interval: 20, timeout: 10_000 };

/** Listens, and stalls as soon as its first line was read. */
async function startStalled(store: string, ...flags: readonly string[]) {
  const pipe = openStalledPipe();
  const args = ["listen", "--port=0", `--store=${store}`, "--json", ...flags];
  const running = new Running(args, SECRETS, pipe.fd);
  let first = "";
  await expect.poll(() => (first += pipe.read()), WAITING).toContain("\n");
  pipe.fill();
  const { listening }: { listening: string } = JSON.parse(first);
  return { running, listening };
}

async function deliver(url: string, messageId: string): Promise<void> {
  const body = JSON.stringify(fixtures.queued({ messageId }));
  const response = await fetch(url, { method: "POST", body, headers: signPayload({ body, secret: SECRET }) });
  expect(response.status).toBe(200);
}

describe("oncehook listen, with a reader that has stalled", { tags: "full" }, () => {
  it("marks no event as handled whose line is still its own, and prints it after a SIGKILL", async () => {
    const store = newInboxFile();
    const { running, listening } = await startStalled(store);
    const inbox = await openInbox({ store: sqliteStore(store) });
    onTestFinished(() => inbox.close());
    const begun = async (messageId: string) => {
      const { items } = await inbox.find({ messageId });
      return items.some(({ startedAt }) => startedAt !== null);
    };
    // When the second has begun, what became of the first is written.
    for (const messageId of ["msg_1", "msg_2"]) {
      await deliver(listening, messageId);
      await expect.poll(() => begun(messageId), WAITING).toBe(true);
    }
    const { items } = await inbox.find();
    expect(items.map(({ state }) => state)).toEqual(["pending", "pending"]);
    running.signal("SIGKILL");
    await running.exit;

    const next = new Running(["listen", "--port=0", `--store=${store}`, "--json"], SECRETS);
    await next.printed(/"msg_1"/);
    await next.printed(/"msg_2"/);
  });

  it("ends on SIGTERM as a sidecar, whose remarks wait for nobody", async () => {
    const { url, got } = await startApplication();
    const { running, listening } = await startStalled(newInboxFile(), `--forward-to=${url}`);
    await deliver(listening, "msg_1");
    await expect.poll(() => got.length, WAITING).toBe(1);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, signal: null });
  });

  it("ends on SIGTERM when not even its first line was taken", async () => {
    const store = newInboxFile();
    await leavePending(store, outboundEvent("queued", "msg_1"));
    const { url, got } = await startApplication();
    const pipe = openStalledPipe();
    pipe.fill();
    const running = new Running(["listen", "--port=0", `--store=${store}`, `--forward-to=${url}`], SECRETS, pipe.fd);
    // Its application goes on getting events.
    await expect.poll(() => got.length, WAITING).toBe(1);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, signal: null });
  });
});

describe("oncehook listen --forward-to, with no room for what it prints", { tags: "full" }, () => {
  it.skipIf(!existsSync("/dev/full"))("goes on until SIGTERM, though its first line cannot be written", async () => {
    const store = newInboxFile();
    await leavePending(store, outboundEvent("queued", "msg_1"));
    const { url, got } = await startApplication();
    const full = openSync("/dev/full", "w");
    onTestFinished(() => closeSync(full));
    const running = new Running(["listen", "--port=0", `--store=${store}`, `--forward-to=${url}`], SECRETS, full);
    await expect.poll(() => got.length, WAITING).toBe(1);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, signal: null, errors: "" });
  });
});

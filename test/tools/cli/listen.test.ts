/** `oncehook listen` as a real process: what it accepts, prints and leaves behind, also while nobody reads what it prints. */
import { closeSync, existsSync, openSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { openInbox } from "../../../src/index.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { fixtures, signedRequest } from "../../../src/tools/testing/index.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { startApplication } from "../forward/http-application.ts";
import { leavePending, outboundEvent } from "./inbox-place.ts";
import { deliver, SECRET, startListening as start, urlOf } from "./listening.ts";
import { startHanging } from "./place.ts";
import type { Running } from "./running.ts";
import { openStalledPipe } from "./stalled-pipe.ts";

const WAITING = { interval: 20, timeout: 15_000 };

function linesOf({ output }: Running): Record<string, unknown>[] {
  const [, ...lines] = output.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line));
}

describe("oncehook listen", () => {
  it("accepts what is signed, prints each event once and masked, and ends with 0 on SIGTERM (RCV-1, RCV-6, RCV-7)", async () => {
    const running = start(newInboxFile(), ["--path=/hooks/sms"]);
    const url = await urlOf(running);
    expect(new URL(url).pathname).toBe("/hooks/sms");
    const events = [fixtures.sent(), fixtures.queued(), fixtures.queued(), fixtures.inbound()];
    for (const event of events) expect(await deliver(`${url}?from=service`, event)).toBe(200);
    expect(await deliver(url, fixtures.delivery(), "another-secret-of-32-characters-")).toBe(401);
    await running.printed(/"message\.inbound"/);
    const told = linesOf(running).map(({ eventType, sequence, lane, id }) => [eventType, sequence, lane ?? id]);
    expect(told).toEqual([
      ["message.queued", 1, "msg_000001"],
      ["message.sent", 2, "msg_000001"],
      ["message.inbound", 0, "msg_in_000001"],
    ]);
    expect(running.output).not.toMatch(/\+1415|Hello/);
    running.signal("SIGTERM");
    const { code, errors } = await running.exit;
    expect([code, JSON.parse(errors)]).toMatchObject([0, { code: "signature_mismatch", status: 401 }]);
  });

  it.each([
    ["stripe", fixtures.stripe(), "invoice.paid", []],
    ["twilio", fixtures.twilio(), "message.delivered", ["--public-url=https://example.com/webhooks"]],
  ] as const)("receives webhooks of %s", async (source, event, eventType, flags) => {
    const running = start(newInboxFile(), [`--source=${source}`, ...flags]);
    const url = await urlOf(running);
    expect((await fetch(url, signedRequest(event, { source, secret: SECRET }))).status).toBe(200);
    expect((await fetch(url, signedRequest(event, { source }))).status).toBe(401);
    await running.printed(/"handled"/);
    // An id that is a digest is not shown.
    const id = source === "twilio" ? null : expect.any(String);
    expect(linesOf(running)).toMatchObject([{ eventType, source, id }]);
  });

  it("loses nothing that it acknowledged when it ends under load (RCV-3)", { tags: "full" }, async () => {
    const store = newInboxFile();
    const first = start(store);
    const url = await urlOf(first);
    const acknowledged: string[] = [];
    let sent = 0;
    let endingSince = 0;
    const send = async (): Promise<void> => {
      const messageId = `msg_${sent++}`;
      const status = await deliver(url, fixtures.queued({ messageId })).catch(() => null);
      if (status === null) return;
      acknowledged.push(messageId);
      if (acknowledged.length === 200) {
        endingSince = performance.now();
        first.signal("SIGTERM");
      }
      return send();
    };
    await Promise.all(Array.from({ length: 8 }, send));
    expect(await first.exit).toMatchObject({ code: 0, errors: "" });
    // Connections that are kept for more requests would be ended after 5 s.
    expect(performance.now() - endingSince).toBeLessThan(4_000);
    const second = start(store);
    await deliver(await urlOf(second), fixtures.queued({ messageId: "msg_last" }));
    await second.printed(/"lane":"msg_last"/);
    const printed = [first, second].flatMap(linesOf).map(({ lane }) => lane);
    expect(acknowledged.length).toBeGreaterThanOrEqual(200);
    expect(acknowledged.filter((messageId) => !printed.includes(messageId))).toEqual([]);
    expect(new Set(printed).size).toBe(printed.length);
  });

  it("ends at once with a second signal, and posts later what it could not (RCV-3)", { tags: "full" }, async () => {
    const store = newInboxFile();
    const hanging = await startHanging();
    const first = start(store, [`--forward-to=${hanging.url}`]);
    const webhooks = await urlOf(first);
    expect(await deliver(webhooks, fixtures.queued())).toBe(200);
    await hanging.asked;
    first.signal("SIGTERM");
    // Two signals that come at once are one: it has heard the first when it takes no connection any more.
    await expect.poll(() => fetch(webhooks).catch(() => "refused")).toBe("refused");
    first.signal("SIGTERM");
    expect(await first.exit).toMatchObject({ code: 143 });

    const { url, got } = await startApplication();
    const second = start(store, [`--forward-to=${url}`, "--quiet"]);
    await urlOf(second);
    await expect.poll(() => got.length, WAITING).toBe(1);
    expect(got[0]?.headers).toMatchObject({ "oncehook-sequence": "1", "oncehook-attempt": "2" });
    second.signal("SIGTERM");
    // Quiet: the application was told, which is all there is to tell.
    expect(await second.exit).toMatchObject({ code: 0, output: expect.stringMatching(/^\{"listening":.*\}\n$/) });
  });
});

/** Listens, and stalls as soon as its first line was read. */
async function startStalled(store: string, flags: readonly string[] = []) {
  const pipe = openStalledPipe();
  const running = start(store, flags, pipe.fd);
  let first = "";
  await expect.poll(() => (first += pipe.read()), WAITING).toContain("\n");
  pipe.fill();
  const { listening }: { listening: string } = JSON.parse(first);
  return { running, listening };
}

describe("oncehook listen, with a reader that has stalled", { tags: "full" }, () => {
  it("marks no event as handled whose line is still its own, and prints it after a SIGKILL", async () => {
    const store = newInboxFile();
    const { running, listening } = await startStalled(store);
    const inbox = await openInbox({ store: sqliteStore(store) });
    onTestFinished(() => inbox.close());
    const begun = async (messageId: string) => {
      const { items } = await inbox.find({ lane: messageId });
      return items.some(({ startedAt }) => startedAt !== null);
    };
    // When the second has begun, what became of the first is written.
    for (const messageId of ["msg_1", "msg_2"]) {
      expect(await deliver(listening, fixtures.queued({ messageId }))).toBe(200);
      await expect.poll(() => begun(messageId), WAITING).toBe(true);
    }
    const { items } = await inbox.find();
    expect(items.map(({ state }) => state)).toEqual(["pending", "pending"]);
    running.signal("SIGKILL");
    await running.exit;
    const next = start(store);
    await next.printed(/"msg_1"/);
    await next.printed(/"msg_2"/);
  });

  it("ends on SIGTERM as a sidecar, whose remarks wait for nobody", async () => {
    const { url, got } = await startApplication();
    const { running, listening } = await startStalled(newInboxFile(), [`--forward-to=${url}`]);
    expect(await deliver(listening, fixtures.queued())).toBe(200);
    await expect.poll(() => got.length, WAITING).toBe(1);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, signal: null });
  });

  it.each<[string, () => number]>([
    ["nobody took", stalled],
    ...(existsSync("/dev/full") ? [["finds no room", full] as [string, () => number]] : []),
  ])("goes on posting until SIGTERM, though its first line %s", async (_, place) => {
    const store = newInboxFile();
    await leavePending(store, outboundEvent("queued", "msg_1"));
    const { url, got } = await startApplication();
    const running = start(store, [`--forward-to=${url}`], place());
    await expect.poll(() => got.length, WAITING).toBe(1);
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0, signal: null, errors: "" });
  });
});

function stalled(): number {
  const pipe = openStalledPipe();
  pipe.fill();
  return pipe.fd;
}

function full(): number {
  const fd = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(fd));
  return fd;
}

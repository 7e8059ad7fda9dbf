/** `oncehook listen` as a real process: what it accepts, prints, refuses and leaves behind. */
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { listenCommand } from "../../src/cli/listen.ts";
import { signPayload } from "../../src/index.ts";
import { fixtures, signedRequest } from "../../src/testing/index.ts";
import { startApplication } from "../forward/http-application.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { startHanging } from "./hanging.ts";
import { runHere } from "./here.ts";
import { Running } from "./running.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";
const FORWARD_SECRET = "a-forwarding-secret-of-32-bytes-";
const SECRETS = { ONCEHOOK_WEBHOOK_SECRET: SECRET, ONCEHOOK_FORWARD_SECRET: FORWARD_SECRET };

function start(store: string, ...flags: readonly string[]): Running {
  return new Running(["listen", "--port=0", `--store=${store}`, "--json", ...flags], SECRETS);
}

async function urlOf(running: Running): Promise<string> {
  const [, url = ""] = await running.printed(/^\{"listening":"(.*)"\}\n/);
  return url;
}

async function deliver(url: string, event: object, secret = SECRET): Promise<number> {
  const body = JSON.stringify(event);
  const response = await fetch(url, { method: "POST", body, headers: signPayload({ body, secret }) });
  await response.arrayBuffer();
  return response.status;
}

function linesOf({ output }: Running): Record<string, unknown>[] {
  const [, ...lines] = output.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line));
}

describe("oncehook listen", () => {
  it("accepts what is signed, prints each event once and masked, and ends with 0 on SIGTERM (RCV-1, RCV-6, RCV-7)", async () => {
    const running = start(newInboxFile(), "--path=/hooks/sms");
    const url = await urlOf(running);
    expect(new URL(url).pathname).toBe("/hooks/sms");
    const events = [fixtures.sent(), fixtures.queued(), fixtures.queued(), fixtures.inbound()];
    for (const event of events) expect(await deliver(`${url}?from=service`, event)).toBe(200);
    expect(await deliver(url, fixtures.delivery(), "another-secret-of-32-characters-")).toBe(401);
    await running.printed(/"message\.inbound"/);
    const told = linesOf(running).map(({ eventType, sequence, messageId }) => [eventType, sequence, messageId]);
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
    const running = start(newInboxFile(), `--source=${source}`, ...flags);
    const url = await urlOf(running);
    expect((await fetch(url, signedRequest(event, { source, secret: SECRET }))).status).toBe(200);
    expect((await fetch(url, signedRequest(event, { source }))).status).toBe(401);
    await running.printed(/"handled"/);
    expect(linesOf(running)).toMatchObject([{ eventType, direction: "single" }]);
    running.signal("SIGTERM");
    expect((await running.exit).code).toBe(0);
  });

  it("answers a supervisor, and nothing else", async () => {
    const url = await urlOf(start(newInboxFile()));
    const ask = async (path: string, method = "GET") => {
      const response = await fetch(new URL(path, url), { method });
      return [response.status, await response.text()];
    };
    const healthy = '{"status":"ok","reasons":[],"details":{"late":0}}';
    expect(await ask("/healthz")).toEqual([200, '{"status":"ok"}']);
    expect(await ask("/readyz?verbose=1")).toEqual([200, healthy]);
    expect(await ask("/readyz", "HEAD")).toEqual([200, ""]);
    expect((await ask("/healthz", "POST"))[0]).toBe(405);
    expect((await ask("/"))[0]).toBe(404);
    expect((await ask("/webhooks"))[0]).toBe(405);
  });

  it("takes secrets from files, and says what it leaves out of them", { tags: "full" }, async () => {
    const store = newInboxFile();
    const files = { current: `${SECRET}\n`, previous: "the-secret-before-it-of-32-bytes" };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(store, "..", name), text);
    const [current, previous] = Object.keys(files).map((name) => join(store, "..", name));
    const until = new Date(Date.now() + 60_000).toISOString();
    const running = new Running([
      ...["listen", "--port=0", `--store=${store}`, `--secret-file=${current}`],
      ...[`--previous-secret-file=${previous}`, `--previous-valid-until=${until}`],
    ]);
    const [, url = ""] = await running.printed(/^Webhooks are received at (\S+)\n/);
    expect(await deliver(url, fixtures.queued())).toBe(200);
    expect(await deliver(url, fixtures.sent(), files.previous)).toBe(200);
    await running.printed(/message\.queued {2}msg_000001 #1 .*\n.*message\.sent {2}msg_000001 #2 /);
    running.signal("SIGINT");
    const { code, errors } = await running.exit;
    expect([code, errors]).toEqual([
      0,
      `The line break at the end of ${current} is not taken for a part of the secret.\n`,
    ]);
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
    await second.printed(/"messageId":"msg_last"/);
    const printed = [first, second].flatMap(linesOf).map(({ messageId }) => messageId);
    expect(acknowledged.length).toBeGreaterThanOrEqual(200);
    expect(acknowledged.filter((messageId) => !printed.includes(messageId))).toEqual([]);
    expect(new Set(printed).size).toBe(printed.length);
  });

  it("ends at once with a second signal, and posts later what it could not (RCV-3)", { tags: "full" }, async () => {
    const store = newInboxFile();
    const hanging = await startHanging();
    const first = start(store, `--forward-to=${hanging.url}`);
    const webhooks = await urlOf(first);
    expect(await deliver(webhooks, fixtures.queued())).toBe(200);
    await hanging.asked;
    first.signal("SIGTERM");
    // Two signals that come at once are one: it has heard the first when it takes no connection any more.
    await expect.poll(() => fetch(webhooks).catch(() => "refused")).toBe("refused");
    first.signal("SIGTERM");
    expect(await first.exit).toMatchObject({ code: 143 });

    const { url, got } = await startApplication();
    const second = start(store, `--forward-to=${url}`, "--quiet");
    await urlOf(second);
    await expect.poll(() => got.length, { timeout: 15_000 }).toBe(1);
    expect(got[0]?.headers).toMatchObject({ "oncehook-sequence": "1", "oncehook-attempt": "2" });
    second.signal("SIGTERM");
    // Quiet: the application was told, which is all there is to tell.
    expect(await second.exit).toMatchObject({ code: 0, output: expect.stringMatching(/^\{"listening":.*\}\n$/) });
  });

  it.each([
    ["an unreadable secret file", ["--secret-file=nowhere"], 1, /--secret-file, nowhere: ENOENT/],
    ["a short secret", ["--forward-to=http://127.0.0.1", "--forward-secret-file=/dev/null"], 2, /is empty/],
    [
      "a target with a password",
      ["--forward-to=http://user:hunter2@127.0.0.1"],
      2,
      /--forward-to must hold no user name/,
    ],
    ["flags of a sidecar without one", ["--timeout=5s"], 2, /go with --forward-to/],
    ["a signed URL that is missing", ["--source=twilio"], 2, /--source twilio and --public-url go together/],
    ["a signed URL for another source", ["--source=stripe", "--public-url=https://example.com"], 2, /go together/],
    ["a signed URL with a query", ["--source=twilio", "--public-url=https://e.com/?a"], 2, /without its query/],
    ["half of a previous secret", ["--previous-valid-until=2026-01-01"], 2, /go together/],
    [
      "a host of another machine",
      ["--host=192.0.2.1"],
      1,
      /it is not an address of this machine\. Choose another --host/,
    ],
    ["a directory that is not there", ["--store=/nowhere/inbox.db"], 1, /create it first/],
    ["a path that is taken", ["--path=/readyz"], 2, /\/healthz and \/readyz are taken/],
  ])("refuses %s in one line", async (_case, flags, code, message) => {
    const exit = await runHere(listenCommand(), ["--port=0", `--store=${newInboxFile()}`, ...flags], SECRETS);
    expect([exit.code, exit.output]).toEqual([code, ""]);
    expect(exit.errors).toMatch(message);
    expect(exit.errors.trimEnd().split("\n")).toHaveLength(1);
    expect(exit.errors).not.toContain("hunter2");
  });

  it("says why it ends when its lines find no room any more", async () => {
    const before = process.stdout.listenerCount("error");
    const ending = runHere(listenCommand(), ["--port=0", `--store=${newInboxFile()}`], SECRETS);
    await expect.poll(() => process.stdout.listenerCount("error"), { interval: 5 }).toBeGreaterThan(before);
    process.stdout.emit("error", Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" }));
    const { code, errors } = await ending;
    expect([code, errors]).toEqual([1, "error: Cannot write to standard output: ENOSPC.\n"]);
  });

  it("refuses a file that is no database", async () => {
    const store = newInboxFile();
    writeFileSync(store, "Dear diary, today I was taken for a database. ".repeat(20), { mode: 0o600 });
    const { code, errors } = await runHere(listenCommand(), ["--port=0", `--store=${store}`], SECRETS);
    expect([code, errors.trimEnd().split("\n").length]).toEqual([1, 1]);
    expect(errors).toMatch(/\(SQLITE_NOTADB\)\. It is not a SQLite database: check the path\.\n$/);
  });

  it("refuses a port that is in use, and lets go of the inbox", async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    const port = await listenOnLoopback(server);
    const store = newInboxFile();
    const { code, errors } = await runHere(listenCommand(), [`--port=${port}`, `--store=${store}`], SECRETS);
    expect([code, errors]).toEqual([
      1,
      `error: Cannot listen on 127.0.0.1, port ${port}: it is in use. Choose another --port, or 0 for any free one.\n`,
    ]);
    // The last who closes it takes this file away.
    expect(existsSync(`${store}-wal`)).toBe(false);
  });
});

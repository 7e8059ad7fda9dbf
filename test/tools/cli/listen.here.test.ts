/** `oncehook listen` in this process, from an event that waits from before to the signal that ends it, and what it refuses. */
import dns from "node:dns";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openInbox } from "../../../src/index.ts";
import { sleep, systemClock } from "../../../src/internal/clock.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { listenCommand } from "../../../src/tools/cli/listen.ts";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { startApplication } from "../forward/http-application.ts";
import { runHere } from "./here.ts";
import { leavePending, outboundEvent } from "./inbox-place.ts";
import { deliver, listenHere, SECRET, SECRETS } from "./listening.ts";
import { newServer } from "./place.ts";

const SOON = { interval: 5, timeout: 10_000 };

describe("oncehook listen", () => {
  it("prints what it handled, by secrets from files, the one that is replaced too", async () => {
    const store = newInboxFile();
    const previous = "the-secret-before-it-of-32-bytes";
    const file = (name: string, text: string) => {
      writeFileSync(join(dirname(store), name), text);
      return join(dirname(store), name);
    };
    const current = file("current", `${SECRET}\n`);
    const until = new Date(Date.now() + 60_000).toISOString();
    const { url, printed, end } = await listenHere(
      [
        ...[`--store=${store}`, `--secret-file=${current}`],
        ...[`--previous-secret-file=${file("previous", previous)}`, `--previous-valid-until=${until}`],
      ],
      {},
    );
    expect(await deliver(url, fixtures.queued())).toBe(200);
    expect(await deliver(url, fixtures.sent(), previous)).toBe(200);
    await expect.poll(printed, SOON).toContain("message.sent");
    const { code, output, errors } = await end();
    const remark = `The line break at the end of ${current} is not taken for a part of the secret.\n`;
    expect([code, errors]).toEqual([0, remark]);
    const [first, second, third, ...others] = output.split("\n");
    expect([first, others]).toEqual([`Webhooks are received at ${url}`, [""]]);
    expect(second).toMatch(/^20\S+ \S+Z {2}message\.queued {2}msg_000001 #1 {2}\{"messageId"/);
    expect(third).toMatch(/ {2}message\.sent {2}msg_000001 #2 /);
  });

  it.each([
    [[], /^20\S+ \S+Z {2}message\.queued {2}msg_000001 #1 /m],
    [["--json"], /^\{"handled":.*"eventType":"message\.queued"/m],
    [["--quiet"], null],
  ])("as a sidecar posts what it got, and remarks it besides: %j", async (flags, remark) => {
    const { url: target, got } = await startApplication();
    const forward = [`--store=${newInboxFile()}`, `--forward-to=${target}`, "--timeout=5s", ...flags];
    const { url, end } = await listenHere(forward);
    await deliver(url, fixtures.queued());
    await expect.poll(() => got.length, SOON).toBe(1);
    const { code, output } = await end();
    expect([code, got[0]?.headers["oncehook-sequence"]]).toEqual([0, "1"]);
    const [first, ...remarks] = output.trimEnd().split("\n");
    expect(first).toMatch(/Webhooks are received at|^\{"listening":/);
    expect(remarks).toEqual(remark === null ? [] : [expect.stringMatching(remark)]);
  });

  it("lets an event wait while its reader is behind, for longer than a handler may take otherwise", async () => {
    const { setTimeout } = systemClock;
    // A thousand times as quick.
    const timers = vi.spyOn(systemClock, "setTimeout").mockImplementation((call, ms) => setTimeout(call, ms / 1_000));
    onTestFinished(() => timers.mockRestore());
    const { url, written, end } = await listenHere([`--store=${newInboxFile()}`]);
    const lines: unknown[] = [];
    let take = () => {};
    // Has room for the line, which nobody takes yet.
    written.mockImplementation((line, taken) => {
      take = taken as unknown as typeof take;
      return lines.push(line) > 0;
    });
    await deliver(url, fixtures.queued());
    await expect.poll(() => lines.length, SOON).toBe(1);
    await sleep(systemClock, 10 * 60_000);
    take();
    expect(await end()).toMatchObject({ code: 0, errors: "" });
    expect(lines).toHaveLength(1);
  });

  it("says why it ends when its lines find no room any more", async () => {
    const before = process.stdout.listenerCount("error");
    const ending = runHere(listenCommand(), ["--port=0", `--store=${newInboxFile()}`], SECRETS);
    await expect.poll(() => process.stdout.listenerCount("error"), SOON).toBeGreaterThan(before);
    process.stdout.emit("error", Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" }));
    const { code, errors } = await ending;
    expect([code, errors]).toEqual([1, expect.stringMatching(/^error: Cannot write to standard output: ENOSPC\.\n$/m)]);
  });
});

describe("oncehook listen, with an event that waits", () => {
  /** Its flags, where names are looked up slowly, and are this address or none. */
  async function withPending(how: string, address: string | null) {
    const store = newInboxFile();
    await leavePending(store, outboundEvent("queued", "msg_1"));
    const { url, got } = await startApplication();
    const gone = Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND", syscall: "getaddrinfo" });
    const lookup = vi.spyOn(dns, "lookup").mockImplementation(((_name: string, ...rest: unknown[]) => {
      const found = rest.at(-1) as (error: Error | null, address?: string, family?: number) => void;
      const after = (turns: number): void => {
        if (turns > 0) setImmediate(after, turns - 1);
        else if (address === null) found(gone);
        else found(null, address, 4);
      };
      // In which a worker that had started would have handled the event many times over.
      after(200);
    }) as never);
    onTestFinished(() => lookup.mockRestore());
    const forward = how === "posts" ? [`--forward-to=${url}`] : [];
    return { store, got, flags: ["--host=sms.example.com", `--store=${store}`, ...forward] };
  }

  it.each(["prints", "posts"])("%s none when it cannot listen", async (how) => {
    const { store, got, flags } = await withPending(how, null);
    const { code, output, errors } = await runHere(listenCommand(), ["--port=0", ...flags], SECRETS);
    expect([code, output, errors]).toEqual([1, "", expect.stringContaining("Choose another --host")]);
    expect(got).toEqual([]);
    const inbox = await openInbox({ store: sqliteStore(store) });
    onTestFinished(() => inbox.close());
    expect((await inbox.find()).items).toMatchObject([{ state: "pending", attempts: 0, startedAt: null }]);
  });

  it.each(["prints", "posts"])("%s it behind the line that says where it listens", async (how) => {
    const { flags } = await withPending(how, "127.0.0.1");
    const { written, end } = await listenHere(["--json", ...flags]);
    const lines = () => written.mock.calls.map(([line]) => JSON.parse(String(line)));
    await expect.poll(() => lines().length, SOON).toBe(2);
    expect(lines()).toMatchObject([{ listening: expect.any(String) }, { lane: "msg_1" }]);
    expect((await end()).code).toBe(0);
  });
});

describe("oncehook listen refuses", () => {
  const target = "--forward-to=http://127.0.0.1:1/";
  const own = { ...SECRETS, ONCEHOOK_FORWARD_SECRET: SECRET };

  it.each<[what: string, flags: string[], code: number, says: string | RegExp, environment?: object]>([
    ["an unreadable secret file", ["--secret-file=nowhere"], 1, /--secret-file, nowhere: ENOENT/],
    ["an empty secret", [target, "--forward-secret-file=/dev/null"], 2, /is empty/],
    [
      "the webhook's secret for the application",
      [target],
      2,
      /is the webhook's: give the application one of its own/,
      own,
    ],
    ["a password", ["--forward-to=http://user:hunter2@127.0.0.1"], 2, /--forward-to must hold no user name/],
    ["flags of a sidecar without one", ["--timeout=5s"], 2, /go with --forward-to/],
    ["too short a time", [target, "--timeout=5ms"], 2, /Write 10ms to 1h\./],
    ["too long a time", [target, "--timeout=2h"], 2, /Write 10ms to 1h\./],
    ["no signed URL", ["--source=twilio"], 2, /--source twilio and --public-url go together/],
    ["a signed URL for another source", ["--source=stripe", "--public-url=https://example.com"], 2, /go together/],
    ["a signed URL with a query", ["--source=twilio", "--public-url=https://e.com/?a"], 2, /without its query/],
    ["half of a previous secret", ["--previous-valid-until=2026-01-01"], 2, /go together/],
    ["a host of another machine", ["--host=192.0.2.1"], 1, /not an address of this machine\. Choose another --host/],
    ["a directory that is not there", ["--store=/nowhere/inbox.db"], 1, /create it first/],
    ["a path that is taken", ["--path=/readyz"], 2, /\/healthz and \/readyz are taken/],
  ])("%s in one line", async (_case, flags, code, message, environment = SECRETS) => {
    const args = ["--port=0", `--store=${newInboxFile()}`, ...flags];
    const exit = await runHere(listenCommand(), args, environment as NodeJS.ProcessEnv);
    expect([exit.code, exit.output]).toEqual([code, ""]);
    expect(exit.errors).toMatch(message);
    expect(exit.errors.trimEnd().split("\n")).toHaveLength(1);
    expect(exit.errors).not.toContain("hunter2");
  });

  it("a port that is in use, and lets go of the inbox", async () => {
    const { port } = new URL(await newServer());
    const store = newInboxFile();
    const { code, errors } = await runHere(listenCommand(), [`--port=${port}`, `--store=${store}`], SECRETS);
    const message = `Cannot listen on 127.0.0.1, port ${port}: it is in use. Choose another --port, or 0 for any free one.`;
    expect([code, errors]).toEqual([1, `error: ${message}\n`]);
    // The last who closes it takes this file away.
    expect(existsSync(`${store}-wal`)).toBe(false);
  });
});

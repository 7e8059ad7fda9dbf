/** `oncehook listen` at its start, with an event that waits from before: nothing is handled until it listens, and has said so. */
import dns from "node:dns";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { listenCommand } from "../../src/cli/listen.ts";
import { openInbox } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { startApplication } from "../forward/http-application.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { runHere } from "./here.ts";
import { leavePending, outboundEvent } from "./inbox-place.ts";

const SECRETS = {
  ONCEHOOK_WEBHOOK_SECRET: "a-webhook-signing-secret-of-32-b",
  ONCEHOOK_FORWARD_SECRET: "a-forwarding-secret-of-32-bytes-",
};
/** In which a worker that had started would have handled the event many times over. */
const TURNS = 200;

async function storeWithPending(): Promise<string> {
  const store = newInboxFile();
  await leavePending(store, outboundEvent("queued", "msg_1"));
  return store;
}

/** Names are looked up so slowly, and are this address, or none. */
function slowLookup(address: string | null): void {
  const gone = Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND", syscall: "getaddrinfo" });
  const lookup = vi.spyOn(dns, "lookup").mockImplementation(((_name: string, ...rest: unknown[]) => {
    const found = rest.at(-1) as (error: Error | null, address?: string, family?: number) => void;
    const after = (turns: number): void => {
      if (turns > 0) setImmediate(after, turns - 1);
      else if (address === null) found(gone);
      else found(null, address, 4);
    };
    after(TURNS);
  }) as never);
  onTestFinished(() => lookup.mockRestore());
}

describe("oncehook listen, with events that wait", () => {
  it.each([["prints"], ["posts"]])("%s none when it cannot listen", async (how) => {
    const store = await storeWithPending();
    const { url, got } = await startApplication();
    slowLookup(null);
    const forward = how === "posts" ? [`--forward-to=${url}`] : [];
    const args = ["--port=0", "--host=sms.example.com", `--store=${store}`, ...forward];
    const { code, output, errors } = await runHere(listenCommand(), args, SECRETS);
    expect([code, output, errors]).toEqual([1, "", expect.stringContaining("Choose another --host")]);
    expect(got).toEqual([]);
    const inbox = await openInbox({ store: sqliteStore(store) });
    onTestFinished(() => inbox.close());
    expect((await inbox.find()).items).toMatchObject([{ state: "pending", attempts: 0, startedAt: null }]);
  });

  it.each([["prints"], ["posts"]])("%s them behind the line that says where it listens", async (how) => {
    const store = await storeWithPending();
    const { url } = await startApplication();
    slowLookup("127.0.0.1");
    const forward = how === "posts" ? [`--forward-to=${url}`] : [];
    // The same spy that the command is run with: it tells what was printed so far.
    const written = vi.spyOn(process.stdout, "write");
    const lines = () => written.mock.calls.map(([line]) => JSON.parse(String(line)));
    const args = ["--json", "--port=0", "--host=sms.example.com", `--store=${store}`, ...forward];
    const ended = runHere(listenCommand(), args, SECRETS);
    await expect.poll(() => lines().length, { interval: 5, timeout: 10_000 }).toBe(2);
    expect(lines()).toMatchObject([{ listening: expect.any(String) }, { messageId: "msg_1" }]);
    process.emit("SIGTERM", "SIGTERM");
    expect((await ended).code).toBe(0);
  });
});

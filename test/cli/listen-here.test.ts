/** `oncehook listen` in this process, from its first line to the signal that ends it. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { listenCommand } from "../../src/cli/listen.ts";
import { signPayload } from "../../src/index.ts";
import { sleep, systemClock } from "../../src/internal/clock.ts";
import { fixtures } from "../../src/testing/index.ts";
import { startApplication } from "../forward/http-application.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { runHere } from "./here.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";
const SECRETS = {
  ONCEHOOK_WEBHOOK_SECRET: SECRET,
  ONCEHOOK_FORWARD_SECRET: "a-forwarding-secret-of-32-bytes-",
};

/** Delivers an event once it listens, and ends it when `isDone` says so of what was printed. */
async function listenFor(flags: readonly string[], isDone: (printed: string) => boolean, previous?: string) {
  const secrets = previous === undefined ? SECRETS : { ...SECRETS, ONCEHOOK_WEBHOOK_PREVIOUS_SECRET: previous };
  // The same spy that the command is run with: it tells what was printed so far.
  const written = vi.spyOn(process.stdout, "write");
  const printed = () => written.mock.calls.map(([text]) => text).join("");
  const ended = runHere(listenCommand(), ["--port=0", `--store=${newInboxFile()}`, ...flags], secrets);
  const urlOf = () => /http:\/\/127\.0\.0\.1:\d+\/webhooks/.exec(printed())?.[0] ?? "";
  await expect.poll(urlOf, { interval: 5, timeout: 10_000 }).not.toBe("");
  const url = urlOf();
  await deliver(url, previous);
  await expect.poll(() => isDone(printed()), { interval: 5, timeout: 10_000 }).toBe(true);
  process.emit("SIGTERM", "SIGTERM");
  return { url, ...(await ended) };
}

async function deliver(url: string, secret = SECRET): Promise<void> {
  const body = JSON.stringify(fixtures.queued());
  const headers = signPayload({ body, secret });
  expect((await fetch(url, { method: "POST", body, headers })).status).toBe(200);
}

describe("oncehook listen", () => {
  it("prints what it handled, by the secret that is replaced too", async () => {
    const until = `--previous-valid-until=${new Date(Date.now() + 60_000).toISOString()}`;
    const { url, code, output, errors } = await listenFor(
      [until],
      (printed) => printed.includes("msg_000001"),
      "the-secret-before-it-of-32-bytes",
    );
    expect([code, errors]).toEqual([0, ""]);
    const [first, second, ...others] = output.split("\n");
    expect([first, others]).toEqual([`Webhooks are received at ${url}`, [""]]);
    expect(second).toMatch(/^20\S+ \S+Z {2}message\.queued {2}msg_000001 #1 {2}\{"messageId"/);
  });

  it.each([
    [[], /^20\S+ \S+Z {2}message\.queued {2}msg_000001 #1 /m],
    [["--json"], /^\{"handled":.*"eventType":"message\.queued"/m],
    [["--quiet"], null],
  ])("as a sidecar posts what it got, and remarks it beside: %j", async (flags, remark) => {
    const { url, got } = await startApplication();
    const forward = [`--forward-to=${url}`, "--timeout=5s", ...flags];
    const { code, output } = await listenFor(forward, () => got.length > 0);
    expect([code, got.map(({ headers }) => headers["oncehook-sequence"])]).toEqual([0, ["1"]]);
    const [first, ...remarks] = output.trimEnd().split("\n");
    expect(first).toMatch(/Webhooks are received at|^\{"listening":/);
    expect(remarks).toEqual(remark === null ? [] : [expect.stringMatching(remark)]);
  });

  it("lets an event wait while its reader is behind, for longer than a handler may take otherwise", async () => {
    const { setTimeout } = systemClock;
    // A thousand times as quick.
    const timers = vi.spyOn(systemClock, "setTimeout").mockImplementation((call, ms) => setTimeout(call, ms / 1_000));
    onTestFinished(() => timers.mockRestore());
    const written = vi.spyOn(process.stdout, "write");
    const ended = runHere(listenCommand(), ["--port=0", `--store=${newInboxFile()}`], SECRETS);
    const urlOf = () => /http:\S+/.exec(written.mock.calls.map(([text]) => text).join(""))?.[0] ?? "";
    await expect.poll(urlOf, { interval: 5, timeout: 10_000 }).not.toBe("");
    const url = urlOf();
    const lines: unknown[] = [];
    let take = () => {};
    // Has room for the line, which nobody takes yet.
    written.mockImplementation((line, taken) => {
      take = taken as unknown as typeof take;
      return lines.push(line) > 0;
    });
    await deliver(url);
    await expect.poll(() => lines.length, { interval: 5 }).toBe(1);
    await sleep(systemClock, 10 * 60_000);
    take();
    process.emit("SIGTERM", "SIGTERM");
    expect(await ended).toMatchObject({ code: 0, errors: "" });
    expect(lines).toHaveLength(1);
  });

  it.each([
    [["--timeout=5ms"], "Write 10ms to 1h."],
    [["--timeout=2h"], "Write 10ms to 1h."],
    [[], "is the webhook's: give the application one of its own"],
  ])("refuses to be a sidecar with %j and the webhook's secret", async (flags, says) => {
    const own = { ...SECRETS, ONCEHOOK_FORWARD_SECRET: SECRET };
    const args = ["--port=0", `--store=${newInboxFile()}`, "--forward-to=http://127.0.0.1:1/", ...flags];
    const { code, output, errors } = await runHere(listenCommand(), args, own);
    expect([code, output, errors]).toEqual([2, "", expect.stringContaining(says)]);
  });
});

/** `oncehook inspect`: as a real process from its link to its end, and in this one. */
import { EventEmitter, once } from "node:events";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createReceiver, openInbox } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { inspectCommand } from "../../../src/tools/cli/inspect.ts";
import { incomingOf, signedRequest, TEST_SECRET } from "../../../src/tools/testing/deliver.ts";
import { fixtures } from "../../../src/tools/testing/fixtures.ts";
import { newInboxFile } from "../../receiver/bench.ts";
import { runHere } from "./here.ts";
import { Running } from "./running.ts";

/** The file of an inbox with one handled event. */
async function inboxFile(): Promise<string> {
  const file = newInboxFile();
  const receiver = createReceiver<never>({
    secrets: TEST_SECRET,
    store: sqliteStore(file) as never,
    logger: silentLogger,
  });
  receiver.onAny(() => {});
  await receiver.handle(incomingOf(signedRequest(fixtures.queued())));
  await receiver.drain();
  await receiver.stop();
  return file;
}

/** Opens a link, and asks as the browser would from then on. */
async function browse(link: string) {
  const opened = await fetch(link, { redirect: "manual" });
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = new URL(opened.headers.get("location") ?? "", link);
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, page), { ...init, headers: { cookie, ...init.headers } });
  const act = (path: string) => {
    const headers = { "x-oncehook-inspector": "1", "content-type": "application/json" };
    return ask(path, { method: "POST", headers, body: "{}" });
  };
  return { opened, page, ask, act };
}

function start(file: string, ...flags: readonly string[]): Running {
  return new Running(["inspect", `--store=${file}`, ...flags]);
}

async function linkOf(running: Running): Promise<string> {
  const [, link = ""] = await running.printed(/^\{"inspecting":"(.*)"\}\n/);
  return link;
}

describe("oncehook inspect", () => {
  it("prints a link that opens the page once, and ends with 0 on SIGTERM while somebody has the page open", async () => {
    const running = start(await inboxFile());
    const [, link = ""] = await running.printed(/^Open (http:\/\/127\.0\.0\.1:\d+\/\S+)\n/);
    const { opened, ask } = await browse(link);
    expect(opened.status).toBe(303);
    expect((await fetch(link, { redirect: "manual" })).status).toBe(403);
    expect(await (await ask("")).text()).toMatch(/<!doctype html>/i);
    expect(await (await ask("api/overview")).json()).toMatchObject({
      access: "reveal",
      by: userInfo().username,
      gauges: { pending: 0 },
    });
    // The connection of the page's last question is still open.
    running.signal("SIGTERM");
    expect(await running.exit).toMatchObject({ code: 0 });
    expect((await running.exit).errors).toBe("The link can be opened once, within 60 s. Ctrl-C ends it.\n");
  });

  it.each(["SIGINT", "SIGHUP"] as const)(
    "ends with 0 on %s, and prints one object with --json",
    { tags: "full" },
    async (signal) => {
      const running = start(await inboxFile(), "--json");
      await linkOf(running);
      running.signal(signal);
      expect(await running.exit).toMatchObject({ code: 0, errors: "" });
      expect(running.output.trimEnd().split("\n").length).toBe(1);
    },
  );

  it("lets nobody do more than --access, and names --by in the audit", async () => {
    const file = await inboxFile();
    const reading = await browse(await linkOf(start(file, "--json", "--access=read")));
    expect((await reading.act("api/events/1/replay")).status).toBe(403);
    expect((await reading.act("api/lanes/1/reveal")).status).toBe(403);
    const acting = await browse(await linkOf(start(file, "--json", "--access=act", "--by=ada")));
    expect((await acting.act("api/lanes/1/reveal")).status).toBe(403);
    expect((await acting.act("api/events/1/replay")).status).toBe(200);
    const revealing = await browse(await linkOf(start(file, "--json", "--by=grace")));
    expect(await (await revealing.act("api/lanes/1/reveal")).text()).toContain("+14155550101");
    const inbox = await openInbox({ store: sqliteStore(file), logger: silentLogger });
    onTestFinished(() => inbox.close());
    expect((await inbox.audit()).map(({ by, act }) => [by, act])).toEqual([
      ["grace", "reveal"],
      ["ada", "replay"],
    ]);
  });

  it("gives an upgrade nothing", async () => {
    const link = new URL(await linkOf(start(await inboxFile(), "--json")));
    const socket = connect(Number(link.port), link.hostname);
    let heard = "";
    socket.on("data", (chunk) => (heard += chunk)).on("error", () => {});
    const head = [`GET ${link.pathname}${link.search} HTTP/1.1`, `Host: ${link.host}`, "Connection: Upgrade"];
    socket.write([...head, "Upgrade: websocket", "", ""].join("\r\n"));
    await once(socket, "close");
    expect(heard).toBe("");
    expect((await fetch(link, { redirect: "manual" })).status).toBe(303);
  });
});

describe("oncehook inspect in this process", () => {
  it("says which inbox it cannot open, and on which port it cannot listen", async () => {
    const missing = await runHere(inspectCommand(), ["--store", newInboxFile()]);
    expect([missing.code, missing.errors]).toEqual([2, expect.stringContaining("There is no inbox at")]);
    const file = await inboxFile();
    const { port } = new URL(await linkOf(start(file, "--json")));
    const taken = await runHere(inspectCommand(), ["--store", file, "--port", port]);
    expect([taken.code, taken.errors]).toEqual([1, expect.stringMatching(/in use.*--port/)]);
    const wrong = await runHere(inspectCommand(), ["--store", file, "--access", "admin"]);
    expect([wrong.code, wrong.errors]).toEqual([2, expect.stringContaining("read, act, reveal")]);
  });

  it("prints a fresh link each time somebody presses Enter on a terminal", async () => {
    const { keyboard, link, ended } = await inspectHere(true);
    const first = await link(1);
    keyboard.emit("data", Buffer.from("\n"));
    const second = await link(2);
    expect((await fetch(first, { redirect: "manual" })).status).toBe(403);
    expect((await fetch(second, { redirect: "manual" })).status).toBe(303);
    process.emit("SIGTERM");
    const { code, errors } = await ended;
    const remark = "The link can be opened once, within 60 s. Enter prints a fresh one. Ctrl-C ends it.\n";
    expect([code, errors, keyboard.listenerCount("data")]).toEqual([0, remark, 0]);
    expect(keyboard.pause).toHaveBeenCalled();
  });

  it("leaves alone what is no terminal", async () => {
    const { keyboard, link, ended } = await inspectHere(false);
    await link(1);
    expect(keyboard.listenerCount("data")).toBe(0);
    process.emit("SIGTERM");
    const { code, errors } = await ended;
    expect([code, errors]).toEqual([0, "The link can be opened once, within 60 s. Ctrl-C ends it.\n"]);
    expect(keyboard.pause).not.toHaveBeenCalled();
  });
});

/** The command in this process, in front of a keyboard; its links are read while it runs. */
async function inspectHere(isTTY: boolean) {
  const keyboard = Object.assign(new EventEmitter(), { isTTY, pause: vi.fn() });
  const input = vi.spyOn(process, "stdin", "get").mockReturnValue(keyboard as never);
  onTestFinished(() => input.mockRestore());
  const store = await inboxFile();
  // The same spy that the command is run with.
  const written = vi.spyOn(process.stdout, "write");
  const ended = runHere(inspectCommand(), ["--store", store]);
  const links = () => written.mock.calls.flatMap(([text]) => /^Open (\S+)\n/.exec(String(text))?.[1] ?? []);
  const link = async (count: number) => {
    await expect.poll(() => links().length, { interval: 5 }).toBe(count);
    return links().at(-1) ?? "";
  };
  return { keyboard, link, ended };
}

/** The emulator as a whole: its beginning and end, reset, export and import. */
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEmulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { control } from "./control-support.ts";
import { call, send, start, startAgain, startCatcher, tokenOf } from "./support.ts";

/** A receiver that takes requests and never answers. */
async function startSilent(): Promise<{ url: string; reached: Promise<unknown> }> {
  const server = createServer(() => {});
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${port}/`, reached: once(server, "request") };
}

describe("close()", () => {
  it("ends the listener, and does so once for whoever asks", async () => {
    const emulator = await createEmulator({ logger: silentLogger });
    expect((await fetch(`${emulator.url}/_emulator/health`)).status).toBe(200);
    const first = emulator.close();
    expect(emulator.close()).toBe(first);
    await first;
    await emulator[Symbol.asyncDispose]();
    await expect(fetch(`${emulator.url}/_emulator/health`)).rejects.toThrow();
  });

  it("does not wait for a receiver that never answers; the attempt counts for nothing and is made again", async () => {
    const silent = await startSilent();
    const first = await start({ lifecycle: "manual", deliveryUrl: silent.url, attemptTimeoutMs: 600_000 });
    await send(first, await tokenOf(first));
    await silent.reached;
    const second = await startAgain(first);
    expect(second.control.deliveries()).toMatchObject([
      { state: "pending", attempts: [], nextAttemptAt: second.clock.now() },
    ]);
  });
});

describe("reset", () => {
  it("brings back the seed data and the fault rules of the start; the clock stays where it is", async () => {
    const rule = { match: { route: "GET /api/core/numbers" }, action: { type: "status", status: 500 } } as const;
    const emulator = await start({ faults: [rule] });
    const before = emulator.control.exportState();
    await send(emulator, await tokenOf(emulator));
    emulator.control.faults.clear();
    emulator.control.updateClient("ac_main", { status: "INACTIVE" });
    await emulator.clock.advance(5_000);
    const { body } = await control(emulator, "POST", "/reset");
    expect(body).toMatchObject({ waiting: 0 });
    const now = emulator.clock.now();
    expect(now).toBe((before.tables.meta?.now as number) + 5_000);
    const after = emulator.control.exportState();
    expect(after.tables).toEqual({ ...before.tables, meta: { now }, counters: after.tables.counters });
    expect(emulator.control.faults.list().map(({ rule: { match } }) => match)).toEqual([rule.match]);
    expect((await send(emulator, await tokenOf(emulator))).body.results[0].messageId).toBe("msg_a8244c_000002");
  });

  it("forgets what was planned, and lets an attempt under way change nothing of the new state", async () => {
    const catcher = await startCatcher();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      catcher.answer = (_, response) => {
        resolve();
        void held.then(() => response.writeHead(200).end());
      };
    });
    const emulator = await start({ lifecycle: "manual", deliveryUrl: catcher.url });
    await send(emulator, await tokenOf(emulator));
    await reached;
    emulator.control.reset();
    catcher.answer = 500;
    await send(emulator, await tokenOf(emulator));
    release();
    await emulator.clock.idle();
    expect(emulator.control.deliveries()).toMatchObject([
      { deliveryId: "dlv_a8244c_000002", state: "pending", attempts: [{ status: 500 }] },
    ]);
  });
});

describe("export and import", () => {
  it("move a state to another emulator, which takes up what is pending", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const first = await start({ lifecycle: "instant", deliveryUrl: catcher.url, seed: "first" });
    const token = await tokenOf(first);
    await send(first, token);
    await first.clock.advance(10_000);
    const { text } = await control(first, "GET", "/state");

    catcher.answer = 200;
    const second = await start({ seed: "second" });
    expect((await control(second, "POST", "/state", JSON.parse(text))).body.now).toBe(first.clock.now());
    expect(JSON.stringify(second.control.exportState())).toBe(text);
    expect((await call(second, "GET", "/api/core/whoami", { token })).status).toBe(200);
    await second.clock.advance(50_000);
    expect(catcher.caught).toHaveLength(6);
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });

  it("take a state of many MiB over a socket", async () => {
    const large = await start({ lifecycle: "instant" });
    const token = await tokenOf(large);
    for (let i = 0; i < 30; i++) await send(large, token, { text: "x".repeat(100_000) });
    const state = JSON.stringify(large.control.exportState());
    expect(state.length).toBeGreaterThan(3_000_000);
    const emulator = await start({ port: 0 });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${emulator.url}/_emulator/state`, { method: "POST", headers, body: state });
    expect(response.status).toBe(200);
    expect(emulator.control.messages()).toHaveLength(30);
  });

  const broken: [string, (state: { version: number; tables: Record<string, Record<string, unknown>> }) => void][] = [
    ["of another version", (state) => Object.assign(state, { version: 2 })],
    ["with an unknown table", (state) => Object.assign(state.tables, { others: {} })],
    [
      "with a record that does not fit",
      (state) => Object.assign(state.tables.numbers?.num_000001 ?? {}, { status: "no word" }),
    ],
    [
      "with a number of no client",
      (state) => Object.assign(state.tables.numbers?.num_000001 ?? {}, { apiClientId: "x" }),
    ],
    ["with a delivery of no event", (state) => delete state.tables.events?.evt_a8244c_000001],
    ["without clients", (state) => delete state.tables.clients],
  ];

  it.each(broken)("refuse a state %s, and leave everything as it was", async (_, breakIt) => {
    const emulator = await start();
    await send(emulator, await tokenOf(emulator));
    const before = emulator.control.exportState();
    const state = structuredClone(before) as { version: number; tables: Record<string, Record<string, unknown>> };
    breakIt(state);
    const { status, body } = await control(emulator, "POST", "/state", state);
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(() => emulator.control.importState(state as never)).toThrow(/did not export this state/);
    expect(emulator.control.exportState()).toEqual(before);
    await emulator.clock.advance(10_000);
    expect(emulator.control.messages()).toMatchObject([{ status: "delivered" }]);
  });
});

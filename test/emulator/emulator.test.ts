/** The emulator as a whole: its beginning and end, reset, export and import. */
import { describe, expect, it } from "vitest";
import { createEmulator } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { control } from "./control-support.ts";
import { send, start, tokenOf } from "./support.ts";

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
});

describe("export and import", () => {
  it("move a state to another emulator over HTTP", async () => {
    const first = await start({ seed: "first" });
    await send(first, await tokenOf(first));
    const { text } = await control(first, "GET", "/state");
    const second = await start({ seed: "second" });
    expect((await control(second, "POST", "/state", JSON.parse(text))).body.now).toBe(first.clock.now());
    expect(JSON.stringify(second.control.exportState())).toBe(text);
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
});

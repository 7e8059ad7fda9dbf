/** The emulator as a whole: its beginning and end, reset, export and import; and states that no emulator exported. */
import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { createEmulator } from "../../../src/messaging/emulator/index.ts";
import type { StateExport } from "../../../src/messaging/emulator/options.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { freePort } from "../../support/free-port.ts";
import { control } from "./control-support.ts";
import { call, ready, send, start, startAgain, startCatcher, tokenOf } from "./support.ts";

it("close() ends the listener, and does so once for whoever asks", async () => {
  const emulator = await createEmulator({ logger: silentLogger });
  expect((await fetch(`${emulator.url}/_emulator/health`)).status).toBe(200);
  const first = emulator.close();
  expect(emulator.close()).toBe(first);
  await first;
  await emulator[Symbol.asyncDispose]();
  await expect(fetch(`${emulator.url}/_emulator/health`)).rejects.toThrow();
});

it("reset brings back the seed data and the fault rules of the start; the clock stays where it is", async () => {
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

describe("option import", () => {
  it("goes on where the exported state stood: with its records, their order, tokens and clock", async () => {
    const first = await start();
    const token = await tokenOf(first);
    first.control.updateClient("ac_other", { status: "INACTIVE" });
    for (let i = 0; i < 3; i++) await send(first, token);
    first.control.failMessage("msg_a8244c_000001");
    await first.clock.advance(1_000_000);

    const second = await startAgain(first);
    expect(second.clock.now()).toBe(first.clock.now());
    const [before, after] = [first, second].map(({ control }) => JSON.stringify(control.exportState()));
    expect(after).toBe(before);
    expect((await call(second, "GET", "/api/core/whoami", { token })).body.assignedNumbers.total).toBe(5);
  });

  it("answers a send that was answered before with the same bytes, and sends nothing again (SND-17)", async () => {
    const first = await start();
    const token = await tokenOf(first);
    const before = await send(first, token, {}, { "idempotency-key": "k-1" });

    const second = await startAgain(first);
    const after = await send(second, token, {}, { "idempotency-key": "k-1" });
    expect([after.status, after.text]).toEqual([202, before.text]);
    expect(second.control.messages()).toHaveLength(1);
    const fresh = await send(second, token);
    expect(fresh.body.results[0].messageId).toBe("msg_a8244c_000002");
  });

  it("makes the retries that were pending, at their time and with the secret of before (DLV-6)", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const first = await start({ lifecycle: "instant", deliveryUrl: catcher.url, webhookSecret: "kept-secret" });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;

    catcher.answer = 200;
    const second = await startAgain(first);
    expect(second.webhookSecret).toBe("kept-secret");
    await second.clock.advance(59_999);
    expect(catcher.caught).toHaveLength(tried);
    await second.clock.advance(1);
    expect(catcher.caught).toHaveLength(2 * tried);
    expect(tried).toBe(3);
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });

  it("goes before options that fill a new state, tells the credentials that work, and warns of no others", async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) };
    const first = await start({ clientSecret: "first-secret" });
    const unused = {
      clientSecret: "second-secret",
      seed: "another",
      webhookSecret: "x",
      deliveryUrl: "http://192.0.2.1/",
    };
    const second = await startAgain(first, { ...unused, logger });
    expect(second.clientSecret).toBe("first-secret");
    expect(second.fixtures).toEqual(first.fixtures);
    expect(await tokenOf(second, second.fixtures.clients.other)).toMatch(/^[0-9a-f]{64}$/);
    expect(warnings).toEqual([]);
  });

  it("refuses what no emulator exported, and leaves no port open", async () => {
    const port = await freePort();
    for (const value of [null, "state.json", {}, { version: 2, tables: {} }]) {
      await expect(createEmulator({ import: value as never, port, logger: silentLogger })).rejects.toMatchObject({
        code: "invalid_option",
        message: expect.stringMatching(/^The emulator did not export this state: /),
      });
    }
    await (await createEmulator({ port, logger: silentLogger })).close();
  });

  it("sends nothing when the emulator cannot listen, neither deliveries that are due nor later ones", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const systemClock = createFakeClock();
    const options = { systemClock, clock: "real", lifecycle: "instant", logger: silentLogger } as const;
    const first = await start({ ...options, deliveryUrl: catcher.url });
    await send(first, await tokenOf(first));
    await first.clock.idle();
    const tried = catcher.caught.length;
    const port = Number(new URL(catcher.url).port);
    await first.close();

    await systemClock.advance(60_000);
    const exported = first.control.exportState();
    await expect(createEmulator({ ...options, import: exported, port })).rejects.toThrow(/cannot listen/);
    for (let minute = 0; minute < 10; minute++) {
      await systemClock.advance(60_000);
      await fetch(catcher.url, { method: "HEAD" });
    }
    expect(catcher.caught.filter(({ method }) => method === "POST")).toHaveLength(tried);
    expect(tried).toBe(3);

    catcher.answer = 200;
    const second = await startAgain(first, options);
    await second.clock.idle();
    expect(second.control.deliveries({ state: "delivered" })).toHaveLength(3);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: a test changes records of any table
type Tables = Record<string, Record<string, any>>;

/** Puts a record under another key. */
function rename(table: Record<string, unknown> | undefined, key: string): void {
  const [id = "", record] = Object.entries(table ?? {})[0] ?? [];
  if (table === undefined || record === undefined) throw new Error("The table is empty.");
  delete table[id];
  Object.defineProperty(table, key, { value: record, enumerable: true });
}

const first = (table: Record<string, unknown> | undefined) => Object.values(table ?? {})[0] as Record<string, unknown>;

const KEYED = [
  ...["accounts", "clients", "webhooks", "numbers", "tokens", "idempotency"],
  ...["messages", "inboundMessages", "events", "deliveries", "requests"],
];

type Break = (tables: Tables, state: StateExport) => void;
const broken: [string, Break][] = [
  ["of another version", (_, state) => Object.assign(state, { version: 2 })],
  ["with an unknown table", (tables) => Object.assign(tables, { others: {} })],
  ["without clients", (tables) => delete tables.clients],
  ["with a record that does not fit", ({ numbers }) => Object.assign(first(numbers), { status: "no word" })],
  ["with a number of no client", ({ numbers }) => Object.assign(first(numbers), { apiClientId: "x" })],
  ["with a delivery of no event", ({ events }) => delete events?.evt_a8244c_000001],
  ...KEYED.map((name): [string, Break] => [
    `with a record of ${name} under another's id`,
    (tables) => rename(tables[name], "other"),
  ]),
  ["with the id __proto__", (tables) => rename(tables.numbers, "__proto__")],
  ["with a counter __proto__", (tables) => rename(tables.counters, "__proto__")],
  ["with a client without its inbound webhook", (tables) => delete tables.webhooks?.["ac_main/inbound"]],
  ["with a client without its delivery webhook", (tables) => delete tables.webhooks?.["ac_other/delivery"]],
  ["without webhooks", (tables) => delete tables.webhooks],
  ["with a target that is no URL", (tables) => Object.assign(first(tables.webhooks), { endpointUrl: "nowhere" })],
  [
    "with an override that is no URL",
    (tables) => Object.assign(first(tables.numbers), { webhookInboundOverride: "x:y" }),
  ],
  [
    "with a delivery's target that is no URL",
    (tables) => Object.assign(first(tables.deliveries), { target: { url: "", secrets: null } }),
  ],
  ["with a kept answer of no status", (tables) => Object.assign(first(tables.idempotency), { status: 99 })],
  ["with a kept answer that is no answer", (tables) => Object.assign(first(tables.idempotency), { body: "[" })],
  ["with a kept answer of another shape", (tables) => Object.assign(first(tables.idempotency), { body: "{}" })],
  ["with a time that no date can have", (tables) => Object.assign(tables.meta ?? {}, { now: 8_640_000_000_000_001 })],
  ["with a counter at its end", (tables) => Object.assign(tables.counters ?? {}, { msg: Number.MAX_SAFE_INTEGER })],
];

describe("an import", () => {
  it.each(broken)("refuses a state %s, and leaves everything as it was", async (_, breakIt) => {
    const emulator = await start({ unspecified: { replay: "current" } });
    const key = { "idempotency-key": "k-1" };
    const token = await tokenOf(emulator);
    const answer = await send(emulator, token, {}, key);
    emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body: "x" });
    const before = emulator.control.exportState();
    const state = structuredClone(before);
    breakIt(state.tables as Tables, state);
    expect(() => emulator.control.importState(state)).toThrow(SetupError);
    const { status, body } = await control(emulator, "POST", "/state", state);
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(emulator.control.exportState()).toEqual(before);
    expect((await send(emulator, token, {}, key)).body).toEqual(answer.body);
  });

  it("takes nothing of a state that cannot be taken as a whole", async () => {
    const emulator = await start();
    await send(emulator, await tokenOf(emulator));
    emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body: "x" });
    const before = emulator.control.exportState();
    const holding = (value: unknown) => {
      const state = structuredClone(before);
      first(state.tables.inboundMessages as Record<string, unknown>).media = [value];
      return state;
    };
    for (const value of [JSON.parse("[".repeat(20_000) + "]".repeat(20_000)), () => 1, Symbol("x"), 1n]) {
      expect(() => emulator.control.importState(holding(value))).toThrow(SetupError);
      expect(emulator.control.exportState()).toEqual(before);
    }
    const text = JSON.stringify(holding("deep")).replace('"deep"', "[".repeat(20_000) + "]".repeat(20_000));
    expect((await call(emulator, "POST", "/_emulator/state", { body: text })).status).toBe(400);
    expect(emulator.control.exportState()).toEqual(before);
  });

  it.each<[string, (tables: Tables) => void, string]>([
    [
      "a field that does not fit",
      ({ tokens }) => Object.assign(first(tokens), { expiresAt: "x" }),
      '"tables.tokens.expiresAt": Invalid input: expected number, received string',
    ],
    [
      "a field inside of a field",
      ({ messages }) => Object.assign((first(messages).steps as Record<string, unknown>[])[0] ?? {}, { copies: "x" }),
      '"tables.messages.steps.0.copies": Invalid input: expected number, received string',
    ],
    [
      "a record that is none",
      ({ idempotency = {} }) => Object.assign(idempotency, { "key-of-a-caller": 1 }),
      '"tables.idempotency": Invalid input: expected object, received number',
    ],
    [
      "a reference to nothing",
      ({ tokens }) => Object.assign(first(tokens), { apiClientId: "nobody" }),
      '"tokens.apiClientId" names no record of clients',
    ],
  ])("names the table and the field of %s, never the record: its id can be a token", async (_, breakIt, problem) => {
    const emulator = await start();
    await send(emulator, await tokenOf(emulator));
    const state = structuredClone(emulator.control.exportState());
    breakIt(state.tables as Tables);
    const message = `The emulator did not export this state: ${problem}.`;
    expect(() => emulator.control.importState(state)).toThrow(new SetupError("invalid_option", message));
    expect((await control(emulator, "POST", "/state", state)).body.error.message).toBe(message);
  });

  it("takes back what was exported after a magic 500", async () => {
    const { emulator, token } = await ready();
    const key = { "idempotency-key": "k-1" };
    const again = () => send(emulator, token, { to: ["+15005550011"] }, key);
    expect((await again()).status).toBe(500);
    const exported: StateExport = JSON.parse(JSON.stringify(emulator.control.exportState()));
    emulator.control.importState(exported);
    expect((await again()).status).toBe(202);
  });
});

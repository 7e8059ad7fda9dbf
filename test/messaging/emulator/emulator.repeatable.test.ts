/** What a seed decides: the same seed and the same calls give the same logs, byte for byte, and ids are never given out twice. */
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../../src/internal/logger.ts";
import {
  createEmulator,
  type Emulator,
  type EmulatorOptions,
  PROFILE_NAMES,
} from "../../../src/messaging/emulator/index.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { type Catcher, call, send, start, startCatcher, tokenOf } from "./support.ts";

const MINUTE_MS = 60_000;

/** A busy afternoon: calls that succeed and that are refused, failing receivers, faults, extra attempts. */
async function afternoon(catcher: Catcher, options: EmulatorOptions): Promise<string> {
  catcher.answer = failingByEvent();
  const emulator = await createEmulator({
    port: null,
    timestampClock: "emulator",
    logger: silentLogger,
    deliveryUrl: catcher.url,
    ...options,
  });
  const { control, clock } = emulator;
  const token = await tokenOf(emulator);
  await call(emulator, "PATCH", "/api/core/webhooks/inbound", {
    token,
    body: { endpointUrl: catcher.url, enabled: true, signingEnabled: true, unknown: 1 },
  });
  for (let i = 0; i < 12; i++) {
    const to = [`+1500555000${i % 9}`, "+14155550123", "no number"];
    await send(emulator, token, { to, externalReference: `order-${i}` }, { "idempotency-key": `key-${i % 10}` });
    await clock.advance(700 * i);
  }
  await call(emulator, "GET", "/api/core/whoami");
  await call(emulator, "PATCH", "/api/core/webhooks/delivery", { token, body: { signingEnabled: true, secret: "x2" } });
  control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550124", body: "hello" });
  await clock.advance(30 * MINUTE_MS);
  const [first] = control.deliveries();
  await control.redeliver(first?.deliveryId ?? "");
  await control.recover(0);
  await clock.advance(200 * MINUTE_MS);
  const logs = [control.requests(), control.events(), control.deliveries(), control.messages(), control.exportState()];
  await emulator.close();
  return logs.map((log) => JSON.stringify(log, null, 1)).join("\n");
}

/** Every third delivery of an event fails, whichever event comes first. */
function failingByEvent(): Catcher["answer"] {
  const seen = new Map<string, number>();
  return ({ event }, response) => {
    const { messageId, sequence = 0 } = event;
    const times = (seen.get(`${messageId} ${sequence}`) ?? sequence) + 1;
    seen.set(`${messageId} ${sequence}`, times);
    response.writeHead(times % 3 === 0 ? 500 : 200).end("noted");
  };
}

describe("an emulator with a seed", () => {
  it.each(PROFILE_NAMES)("repeats byte for byte under the profile %s", async (profile) => {
    const catcher = await startCatcher();
    const first = await afternoon(catcher, { profile, seed: "one" });
    expect(await afternoon(catcher, { profile, seed: "one" })).toBe(first);
    expect(first.length).toBeGreaterThan(50_000);
  });

  it("differs with another seed", async () => {
    const catcher = await startCatcher();
    const first = await afternoon(catcher, { seed: "one" });
    expect(await afternoon(catcher, { seed: "two" })).not.toBe(first);
  });
});

/** Every id of one send, its events and deliveries, a customer's message and a refused call. */
async function idsOf(emulator: Emulator): Promise<string[]> {
  await send(emulator, await tokenOf(emulator));
  await emulator.clock.advance(10_000);
  emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body: "x" });
  const { body } = await call(emulator, "GET", "/api/core/whoami");
  const told = emulator.control.events().flatMap(({ eventId, messageId, body: text }) => {
    const { providerMessageRef } = JSON.parse(text).data;
    return providerMessageRef === undefined ? [eventId, messageId] : [eventId, messageId, providerMessageRef];
  });
  const handed = emulator.control.deliveries().map(({ deliveryId }) => deliveryId);
  return [...new Set([...told, ...handed, body.requestId as string])];
}

/** The ids of an emulator of its own. */
async function idsWith(options: EmulatorOptions): Promise<string[]> {
  const emulator = await createEmulator({ port: null, logger: silentLogger, ...options });
  const ids = await idsOf(emulator);
  await emulator.close();
  return ids;
}

const prefixesOf = (ids: readonly string[]) => [...new Set(ids.map((id) => id.replace(/_[0-9a-f]{6}_\d{6}$/, "")))];
const common = (some: readonly string[], others: readonly string[]) => some.filter((id) => others.includes(id));

describe("ids", () => {
  it("carry a tag, and repeat with the seed while time starts at the same instant", async () => {
    const ids = await idsWith({});
    expect(prefixesOf(ids).sort()).toEqual(["dlv", "evt", "msg", "provider", "req"]);
    expect(await idsWith({})).toEqual(ids);
  });

  it("are others with another seed, and with another start of time", async () => {
    const ids = await idsWith({});
    expect(common(ids, await idsWith({ seed: "another" }))).toEqual([]);
    expect(common(ids, await idsWith({ startAt: 1_767_225_600_001 }))).toEqual([]);
  });

  it("are others each time that an emulator on the real clock starts", async () => {
    const systemClock = createFakeClock();
    const first = await idsWith({ clock: "real", systemClock, lifecycle: "instant" });
    await systemClock.advance(1);
    expect(common(first, await idsWith({ clock: "real", systemClock, lifecycle: "instant" }))).toEqual([]);
  });

  it("go on after a reset; the fixtures' numbers and the log's begin anew", async () => {
    const emulator = await start();
    const ids = await idsOf(emulator);
    const { fixtures } = emulator;
    emulator.control.reset();
    expect(common(ids, await idsOf(emulator))).toEqual([]);
    expect(emulator.fixtures).toEqual(fixtures);
    expect(emulator.control.numbers().map(({ numberId }) => numberId)).toEqual(Object.values(fixtures.numbers));
    expect(emulator.control.requests()[0]?.number).toBe(1);
  });

  it("go on after the import of an earlier state", async () => {
    const emulator = await start();
    const before = emulator.control.exportState();
    const ids = await idsOf(emulator);
    emulator.control.importState(before);
    expect(common(ids, await idsOf(emulator))).toEqual([]);
  });
});

it("chances are the seed's alone, whenever time started, and others for each message", async () => {
  const plans = async (startAt: number) => {
    const emulator = await start({ startAt });
    for (let i = 0; i < 3; i++) await send(emulator, await tokenOf(emulator));
    return emulator.control
      .messages()
      .map((message) => ("steps" in message ? message.steps : []))
      .map((steps) => steps.map(({ at }) => (at ?? 0) - startAt));
  };
  const first = await plans(5_000);
  expect(await plans(9_000)).toEqual(first);
  expect(new Set(first.map(String)).size).toBe(3);
});

describe("the seed data", () => {
  it("names each client as events do", async () => {
    const emulator = await start();
    const { fixtures, control } = emulator;
    const known = control.clients().map((client) => [client.apiClientId, client.clientId]);
    expect(Object.values(fixtures.clients).map((client) => [client.apiClientId, client.clientId])).toEqual(known);
    const { body } = await call(emulator, "GET", "/api/core/whoami", { token: await tokenOf(emulator) });
    expect(body.apiClientId).toBe(fixtures.clients.main.apiClientId);
  });

  it("configures the kinds that options give a target, enabled and signed, and no others", async () => {
    const emulator = await start({ inboundUrl: "http://127.0.0.1:9/in" });
    const { body } = await call(emulator, "GET", "/api/core/webhooks", { token: await tokenOf(emulator) });
    expect(body.defaults.inbound).toMatchObject({ enabled: true, signingEnabled: true, hasCurrentSecret: true });
    expect(body.defaults.delivery).toMatchObject({ enabled: false, hasCurrentSecret: false });
  });

  it("is the same for the same seed, and other secrets for another", async () => {
    const [one, same, other] = [await start({ seed: "a" }), await start({ seed: "a" }), await start({ seed: "b" })];
    const states = [one, same, other].map(({ control }) => JSON.stringify(control.exportState()));
    expect(states[1]).toBe(states[0]);
    expect(states[2]).not.toBe(states[0]);
    expect(other.fixtures.numbers).toEqual(one.fixtures.numbers);
    const secrets = [one, other].flatMap(({ fixtures, webhookSecret }) => [
      webhookSecret,
      ...Object.values(fixtures.clients).map(({ clientSecret }) => clientSecret),
    ]);
    expect(new Set(secrets).size).toBe(10);
  });
});

/** Ids that a receiver or a client may remember: new with each start of time, and never given out twice. */
import { describe, expect, it } from "vitest";
import { createEmulator, type Emulator, type EmulatorOptions } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { call, send, start, tokenOf } from "./support.ts";

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

/** The same seed and the same calls give the same logs, byte for byte. */
import { describe, expect, it } from "vitest";
import { createEmulator, type EmulatorOptions, PROFILE_NAMES } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type Catcher, call, send, startCatcher, tokenOf } from "./support.ts";

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

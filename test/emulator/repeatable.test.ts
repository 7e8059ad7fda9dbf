/** The same seed and the same calls give the same logs, byte for byte. */
import { createServer, type Server } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEmulator, type EmulatorOptions, PROFILE_NAMES } from "../../src/emulator/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { listenOnLoopback } from "../support/loopback.ts";
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

async function listening(server: Server): Promise<string> {
  const port = await listenOnLoopback(server);
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${port}/`;
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

  it("repeats over HTTP on the same port, with a receiver that dates its answers", async () => {
    let answers = 0;
    const receiver = createServer((request, response) => {
      response.setHeader("date", new Date(answers++ * 1_000).toUTCString());
      request.resume().on("end", () => response.end("noted"));
    });
    const deliveryUrl = await listening(receiver);
    const logs: string[] = [];
    let port = 0;
    for (let i = 0; i < 2; i++) {
      const emulator = await createEmulator({ port, deliveryUrl, timestampClock: "emulator", logger: silentLogger });
      port = Number(new URL(emulator.url).port);
      const token = await tokenOf(emulator);
      const sent = await fetch(`${emulator.url}/api/core/messages/send`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          connection: "close",
          "idempotency-key": "one",
          "content-type": "application/json",
        },
        body: JSON.stringify({
          sendFrom: emulator.fixtures.numbers.full,
          to: ["+14155550123"],
          messageType: "SMS",
          externalReference: "order-1",
        }),
      });
      expect(sent.status).toBe(202);
      await emulator.clock.advance(10_000);
      const { control } = emulator;
      logs.push(JSON.stringify([control.requests(), control.events(), control.deliveries(), control.exportState()]));
      await emulator.close();
    }
    expect(logs[1]).toBe(logs[0]);
    expect(logs[0]).toContain('"state":"delivered"');
  });

  it("differs with another seed", async () => {
    const catcher = await startCatcher();
    const first = await afternoon(catcher, { seed: "one" });
    expect(await afternoon(catcher, { seed: "two" })).not.toBe(first);
  });
});

/** The seed data: its names, its webhooks, its secrets. */
import { describe, expect, it } from "vitest";
import { call, start, tokenOf } from "./support.ts";

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

/** The seed data: a client for every way to be refused, a number for every rule of sending. */
import { describe, expect, it } from "vitest";
import { call, send, start, tokenOf } from "./support.ts";

describe("the seed data", () => {
  it("has two clients that get tokens, and two that do not (TOK-9, TOK-10)", async () => {
    const emulator = await start();
    const { clients } = emulator.fixtures;
    const { apiClientId, clientId, clientSecret } = emulator;
    expect(clients.main).toEqual({ apiClientId, clientId, clientSecret });
    for (const client of [clients.main, clients.other]) expect(await tokenOf(emulator, client)).toMatch(/./);
    for (const client of [clients.inactive, clients.inactiveAccount]) {
      expect(await tokenOf(emulator, client)).toBeUndefined();
    }
  });

  it("names each client as events do", async () => {
    const emulator = await start();
    const { fixtures, control } = emulator;
    const known = control.clients().map((client) => [client.apiClientId, client.clientId]);
    expect(Object.values(fixtures.clients).map((client) => [client.apiClientId, client.clientId])).toEqual(known);
    const { body } = await call(emulator, "GET", "/api/core/whoami", { token: await tokenOf(emulator) });
    expect(body.apiClientId).toBe(fixtures.clients.main.apiClientId);
  });

  it.each([
    ["full", "SMS", 202],
    ["full", "MMS", 202],
    ["noCampaign", "SMS", 400],
    ["smsOff", "SMS", 400],
    ["smsOff", "MMS", 202],
    ["mmsOff", "SMS", 202],
    ["mmsOff", "MMS", 400],
    ["inactive", "SMS", 400],
    ["foreign", "SMS", 403],
  ] as const)("has a number %s, which answers %s with %i", async (name, messageType, status) => {
    const emulator = await start();
    const media = messageType === "MMS" ? [{ storageKey: "k", mimeType: "image/png", byteLength: 1 }] : undefined;
    const fields = { sendFrom: emulator.fixtures.numbers[name], messageType, media };
    expect((await send(emulator, await tokenOf(emulator), fields)).status).toBe(status);
  });

  it("lets the other client use the foreign number", async () => {
    const emulator = await start();
    const token = await tokenOf(emulator, emulator.fixtures.clients.other);
    expect((await send(emulator, token, { sendFrom: emulator.fixtures.numbers.foreign })).status).toBe(202);
  });

  it("configures nothing of webhooks unless asked (WHK-17)", async () => {
    const emulator = await start();
    const { body } = await call(emulator, "GET", "/api/core/webhooks", { token: await tokenOf(emulator) });
    const nothing = { enabled: false, signingEnabled: false, hasCurrentSecret: false, hasPreviousSecret: false };
    expect(body.defaults).toMatchObject({ inbound: nothing, delivery: nothing });
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

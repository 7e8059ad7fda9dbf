import { describe, expect, it } from "vitest";
import { type Call, type Client, InvalidArgumentError } from "../../src/client/index.ts";
import { failureOf, startClient } from "./support.ts";

async function refused(make: (client: Client) => Call<unknown>, validateRequests = true) {
  const { client, requests } = await startClient({ validateRequests });
  const error = await failureOf(make(client), InvalidArgumentError);
  expect(requests).toEqual([]);
  return error;
}

describe("an argument that is not given", () => {
  it.each([true, false])("is told as missing, validateRequests: %s (SND-3, UPD-4, WHK-8)", async (validate) => {
    const nothing = undefined as never;
    const calls: [string, (client: Client) => Call<unknown>][] = [
      ["request", (client) => client.messages.send(nothing)],
      ["update", (client) => client.numbers.update("num_1", nothing)],
      ["update", (client) => client.webhooks.update("inbound", nothing)],
    ];
    for (const [name, make] of calls) {
      expect((await refused(make, validate)).issues).toEqual([`${name}: is missing; it must be an object`]);
    }
  });

  it("is told apart from one that JSON cannot hold", async () => {
    const { issues } = await refused((client) => client.messages.send((() => {}) as never));
    expect(issues).toEqual(["request: cannot be written as JSON"]);
  });
});

describe("what is said of an argument", () => {
  const request = { sendFrom: "num_1", to: ["+14155550123"], messageType: "SMS", externalReference: "r" } as const;

  it("ends in one full stop, also where it lists what is known (GEN-9)", async () => {
    const wrong = { ...request, priority: 1, externalReference: "" };
    const { message } = await refused((client) => client.messages.send(wrong as never));
    expect(message).toBe(
      "messages.send was not made: externalReference: must be a text that is not empty; priority: is not known here. Known: sendFrom, to, messageType, text, media, externalReference.",
    );
    const { message: last } = await refused((client) => client.numbers.search({ zip: "1", planet: "x" } as never));
    expect(last).not.toMatch(/\.[.;]|\?\./);
    const { message: asked } = await refused((client) => client.numbers.search({ zipcode: "1" } as never));
    expect(asked).toBe('numbers.search was not made: zipcode: is not known here. Did you mean "zipCode"?');
  });

  it.each(["outbound", "Inbound", 7])("names the webhook kinds once: %j (DLV-1)", async (kind) => {
    const { message } = await refused((client) => client.webhooks.update(kind as never, { signingEnabled: true }));
    expect(message).toBe('webhooks.update was not made: kind: must be "inbound" or "delivery".');
  });

  it("names a misspelled call option, with the likely one", async () => {
    const { issues } = await refused((client) => client.messages.send(request, { idempotencykey: "k" } as never));
    expect(issues).toEqual(['options.idempotencykey: is not known here. Did you mean "idempotencyKey"?']);
  });

  it("shows no call option whose name could be a value", async () => {
    const { issues } = await refused((client) => client.whoami({ "+14155550123": 1 } as never));
    expect(issues).toEqual(["options.(a key): is not known here. Known: signal, timeoutMs, maxRetries, headers."]);
  });
});

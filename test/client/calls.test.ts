import { describe, expect, it } from "vitest";
import { SEND_PATH, sendOf, startClient, TOKEN_PATH } from "./support.ts";

describe("createClient()", () => {
  it("makes no request before the first call", async () => {
    const { requests } = await startClient();
    expect(requests).toEqual([]);
  });

  it("follows the recommended first use: token, whoami, numbers, send by number id, outcome by webhook (CLI-10)", async () => {
    const { client, emulator, requests } = await startClient();
    const whoami = await client.whoami();
    expect(whoami.apiClientStatus).toBe("ACTIVE");
    const numbers = await client.numbers.list();
    const usable = numbers.find((number) => number.numberId === emulator.fixtures.numbers.full);
    const sent = await client.messages.send(sendOf(emulator, { sendFrom: usable?.numberId ?? "" }));
    expect(sent.results).toMatchObject([{ to: "+14155550123", status: "QUEUED" }]);
    await emulator.clock.advance(10_000);
    const [first] = sent.results;
    const types = emulator.control.events({ messageId: first?.messageId }).map((event) => event.eventType);
    expect(types).toEqual(["message.queued", "message.sent", "message.delivery"]);
    expect(requests.map(({ path }) => path)).toEqual([TOKEN_PATH, "/api/core/whoami", "/api/core/numbers", SEND_PATH]);
  });

  it("lists all numbers as an array, without a cursor (NUM-4)", async () => {
    const { client, emulator } = await startClient();
    const numbers = await client.numbers.list();
    expect(Array.isArray(numbers)).toBe(true);
    expect(numbers.map(({ numberId }) => numberId)).toContain(emulator.fixtures.numbers.full);
  });

  it("picks one number out of the list, or null", async () => {
    const { client, emulator } = await startClient();
    const { full, foreign } = emulator.fixtures.numbers;
    expect(await client.numbers.get(full)).toMatchObject({ numberId: full, smsEnabled: true });
    expect(await client.numbers.get(foreign)).toBeNull();
  });

  it("searches the whole inventory without filters", async () => {
    const { client } = await startClient();
    const found = await client.numbers.search();
    expect(found.groups.length).toBeGreaterThan(0);
    expect(Number.isInteger(found.requestedQuantity)).toBe(true);
  });

  it("updates a number with the request's own spelling, and reads the response's (CLI-8)", async () => {
    const { client, emulator, requests } = await startClient();
    const { noCampaign } = emulator.fixtures.numbers;
    const number = await client.numbers.update(noCampaign, { campaignregId: "C123" });
    expect(number?.campaignRegId).toBe("C123");
    expect(requests.at(-1)?.body).toBe('{"campaignregId":"C123"}');
  });

  it("gives null when an update shows no number, and get() reads it again (UPD-11, UPD-13)", async () => {
    const { client, emulator } = await startClient({ emulator: { unspecified: { updateReturnsNull: true } } });
    const { full } = emulator.fixtures.numbers;
    expect(await client.numbers.update(full, { mmsEnabled: false })).toBeNull();
    expect(await client.numbers.get(full)).toMatchObject({ mmsEnabled: false });
  });

  it("reads and changes the webhook defaults", async () => {
    const { client } = await startClient();
    const updated = await client.webhooks.update("delivery", {
      endpointUrl: "http://127.0.0.1:9/webhooks",
      enabled: true,
      signingEnabled: true,
      secret: "a-secret-of-your-own-32-characters",
    });
    expect(updated).toMatchObject({ enabled: true, hasCurrentSecret: true });
    const { defaults } = await client.webhooks.get();
    expect(defaults.delivery).toEqual(updated);
    expect(defaults.inbound.enabled).toBe(false);
  });

  it("gives rejected recipients as data, and as an error on request (CLI-9)", async () => {
    const { client, emulator } = await startClient();
    const sent = await client.messages.send(sendOf(emulator, { to: ["+14155550123", "nobody"] }));
    expect(sent.errors).toMatchObject([{ to: "nobody", error: { code: "INVALID_RECIPIENT" } }]);
    expect(sent.allRejected).toBe(false);
    expect(() => sent.throwIfRejected()).toThrow("1 of 2 recipients were rejected");
  });

  it("keeps a path in the base address (GEN-13)", async () => {
    const { client, requests } = await startClient({ emulator: { basePath: "/sms" } });
    await client.whoami();
    expect(requests.map(({ path }) => path)).toEqual([`/sms${TOKEN_PATH}`, "/sms/api/core/whoami"]);
  });

  it("works over HTTP as through handle", async () => {
    const { client, emulator } = await startClient({ emulator: { port: 0 } });
    const sent = await client.messages.send(sendOf(emulator));
    expect(sent.results.length).toBe(1);
  });
});

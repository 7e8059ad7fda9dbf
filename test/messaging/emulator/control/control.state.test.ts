/** The controls over what the emulator holds: lists, clients, numbers, tokens, the whole state, the clock. */
import { describe, expect, it } from "vitest";
import type { InboundMessage } from "../../../../src/messaging/emulator/state/records.ts";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { control } from "../control-support.ts";
import { call, ready, send, start, startAgain, startCatcher, tokenOf } from "../support.ts";

describe("lists", () => {
  it("are oldest first, narrowed by every given field, and cut to the newest", async () => {
    const { emulator, token } = await ready({ lifecycle: "instant" });
    await send(emulator, token);
    emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "x" });
    await emulator.clock.advance(1_000);
    await send(emulator, token);
    const field = async (path: string, list: string, name: string) =>
      (await control(emulator, "GET", path)).body[list].map((record: Record<string, unknown>) => record[name]);
    /** The messages of a list, by their numbers. */
    const numbers = async (path: string, list = "messages") =>
      (await field(path, list, "messageId")).map((id: string) => Number(id.slice(-6)));

    expect(await numbers("/messages")).toEqual([1, 2, 3]);
    expect(await numbers("/messages?limit=2")).toEqual([2, 3]);
    const since = emulator.clock.now();
    expect(await numbers(`/messages?since=${since}`)).toEqual([3]);
    expect(await numbers(`/messages?since=${since + 1}`)).toEqual([]);
    const queued = "eventType=message.queued";
    expect(await numbers(`/events?${queued}`, "events")).toEqual([1, 3]);
    expect(await numbers(`/events?${queued}&messageId=msg_a8244c_000003`, "events")).toEqual([3]);
    expect(await numbers(`/deliveries?${queued}&since=${since}`, "deliveries")).toEqual([3]);
    expect(await field("/deliveries?state=no_target&limit=1", "deliveries", "eventType")).toEqual(["message.delivery"]);
    expect(await field("/deliveries?state=pending", "deliveries", "eventType")).toEqual([]);
    expect(await field("/requests?limit=1", "requests", "path")).toEqual(["/api/core/messages/send"]);
    expect(await field("/requests", "requests", "number")).toEqual([1, 2, 3]);
  });

  it("of messages are oldest first over several starts on the real clock, whatever the tags of their ids", async () => {
    const systemClock = createFakeClock();
    let emulator = await start({ systemClock, clock: "real" });
    for (let i = 1; i <= 4; i++) {
      emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: `run ${i}` });
      await systemClock.advance(1);
      emulator = await startAgain(emulator, { systemClock, clock: "real" });
    }
    const { control: controls } = emulator;
    const texts = (limit: number) => controls.messages({ limit }).map(({ text }) => text);
    expect(texts(4)).toEqual(["run 1", "run 2", "run 3", "run 4"]);
    expect(texts(1)).toEqual(["run 4"]);
  });

  it("of messages have what was imported under other names before what came since, by its time", async () => {
    const emulator = await start();
    const receive = (body: string) => emulator.control.inbound({ to: "num_000001", from: "+14155550123", body });
    const { messageId } = receive("first");
    const { version, tables } = emulator.control.exportState();
    const { [messageId]: first } = tables.inboundMessages as Record<string, InboundMessage>;
    const named = (name: string, createdAt: number) => ({ [name]: { ...first, messageId: name, createdAt } });
    const inboundMessages = { ...tables.inboundMessages, ...named("later", 2), ...named("sooner", 1) };
    emulator.control.importState({ version, tables: { ...tables, inboundMessages } });
    const ids = [messageId, receive("second").messageId];
    expect(emulator.control.messages().map((message) => message.messageId)).toEqual(["sooner", "later", ...ids]);
  });

  it("of attempts are in the order of time, with the delivery of each", async () => {
    const catcher = await startCatcher();
    catcher.answer = 500;
    const emulator = await start({ lifecycle: "instant", deliveryUrl: catcher.url });
    await send(emulator, await tokenOf(emulator));
    const begun = emulator.clock.now();
    await emulator.clock.advance(60_000);
    const attempts = emulator.control.attempts();
    expect(attempts.map(({ at }) => at - begun)).toEqual([0, 0, 0, 60_000, 60_000, 60_000]);
    const ids = emulator.control.deliveries().map(({ deliveryId }) => deliveryId);
    expect(attempts.map(({ deliveryId }) => deliveryId)).toEqual([...ids, ...ids]);
    expect(emulator.control.attempts({ since: begun + 1, eventType: "message.sent" })).toHaveLength(1);
  });

  it.each([
    ...["limit=0", "limit=10001", "limit=x", "limit=-1", "limit=", "limit=1&limit=2", "messageID=x"],
    ...["since=1e3", "since=-1", "state=gone", "eventType=a&since=1&since=1"],
  ])("refuse ?%s and name the parameter", async (query) => {
    const emulator = await start();
    const name = query.split("&").at(-1)?.split("=")[0];
    const { status, body } = await control(emulator, "GET", `/deliveries?${query}`);
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(body.error.message).toContain(`"${name}"`);
  });

  it("refuse what a program asks in the same words, with the call and the field", async () => {
    const { control: controls } = await start();
    for (const list of ["requests", "messages", "events", "deliveries", "attempts"] as const) {
      for (const field of [{ limit: 0 }, { limit: 1.5 }, { since: -1 }]) {
        const [name] = Object.keys(field);
        expect(() => controls[list](field)).toThrow(new RegExp(`control\\.${list}\\(\\) .*"${name}"`));
      }
    }
    await expect(controls.recover(-1)).rejects.toThrow(/control\.recover\(\) .*"since"/);
  });

  it("hold no secrets, nor does the log of calls; only an export does", async () => {
    const catcher = await startCatcher();
    const { emulator, token } = await ready({
      lifecycle: "instant",
      deliveryUrl: catcher.url,
      webhookSecret: "webhook-5ecret",
      clientSecret: "client-5ecret",
      unspecified: { retrySignature: "frozen", resolveTarget: "event" },
    });
    await send(emulator, token);
    await emulator.clock.idle();
    const paths = ["/clients", "/clients/ac_main", "/deliveries", "/requests", "/events", "/messages", "/numbers"];
    const texts = await Promise.all(paths.map(async (path) => (await control(emulator, "GET", path)).text));
    texts.push((await control(emulator, "PATCH", "/clients/ac_main", { status: "ACTIVE" })).text);
    texts.push((await control(emulator, "POST", "/deliveries/dlv_a8244c_000001/redeliver")).text);
    for (const text of texts) expect(text).not.toMatch(new RegExp(`5ecret|${token}`));
    expect(texts[2]).toContain('"signed":true');
    const { text } = await control(emulator, "GET", "/state");
    for (const secret of ["webhook-5ecret", "client-5ecret", token]) expect(text).toContain(secret);
  });
});

describe("a receiver's answer", () => {
  it.each([
    ['{"ok":true,"session":{"access_token":"5ecret"}}', '{"ok":true,"session":{"access_token":"[redacted]"}}'],
    ['{ "url": "https://u:5ecret@h.example/" }', '{"url":"https://h.example/"}'],
    ["ok=1&client-secret=5ecret", "[25 bytes]"],
    ['{"note":"cut off","api_key":"5ecret', "[35 bytes]"],
    ["<apiKey>5ecret</apiKey>", "[23 bytes]"],
    [`${"[".repeat(8_000)}{"token":"5ecret"}`, "[8018 bytes]"],
    ["[".repeat(8_000) + "]".repeat(8_000), "[".repeat(8_000) + "]".repeat(8_000)],
    ['{ "outcome": "accepted" }', '{ "outcome": "accepted" }'],
    ["the token is not valid", "the token is not valid"],
  ])("is listed without secrets (%#)", async (body, shown) => {
    const catcher = await startCatcher();
    catcher.answer = (_, response) => {
      const location = "http://u:5ecret@127.0.0.1/";
      response.writeHead(200, { "set-cookie": "sid=5ecret", authorization: "5ecret", location, "x-kept": "kept" });
      response.end(body);
    };
    const emulator = await start({ deliveryUrl: catcher.url, lifecycle: "manual" });
    await send(emulator, await tokenOf(emulator));
    await emulator.clock.idle();
    const { text, body: listed } = await control(emulator, "GET", "/deliveries");
    expect(text).not.toContain("5ecret");
    expect(listed.deliveries[0].attempts[0]).toMatchObject({
      responseHeaders: { "set-cookie": "[redacted]", location: "http://127.0.0.1/", "x-kept": "kept" },
      responseBody: shown,
    });
    expect(emulator.control.attempts()[0]?.responseBody).toBe(body);
  });
});

describe("clients and numbers", () => {
  it("change: a client has another status, also one that the specification does not show, and gets no token (TOK-9, TOK-10)", async () => {
    const emulator = await start();
    const patch = async (fields: object) => (await control(emulator, "PATCH", "/clients/ac_main", fields)).body.client;
    for (const fields of [{ status: "INACTIVE" }, { status: "SUSPENDED" }, { accountStatus: "CLOSED" }]) {
      expect(await patch({ status: "ACTIVE", accountStatus: "ACTIVE", ...fields })).toMatchObject(fields);
      expect(await tokenOf(emulator)).toBeUndefined();
    }
    const { clients } = (await control(emulator, "GET", "/clients")).body;
    // The inactive client has the same account.
    const statuses = clients.map((client: { accountStatus: string }) => client.accountStatus);
    expect(statuses).toEqual(["CLOSED", "ACTIVE", "CLOSED", "INACTIVE"]);
  });

  it("change: a client has another secret and other capabilities; what is given as undefined stays", async () => {
    const emulator = await start();
    emulator.control.updateClient("ac_main", { clientSecret: "new", capabilities: ["a"], status: undefined });
    expect(await tokenOf(emulator, { clientId: emulator.clientId, clientSecret: "new" })).toEqual(expect.any(String));
    expect(await tokenOf(emulator)).toBeUndefined();
    const { client } = (await control(emulator, "GET", "/clients/ac_main")).body;
    expect(client).toMatchObject({ status: "ACTIVE", capabilities: ["a"] });
  });

  it("change: a number does in what the service's own route cannot; it is listed, and sends nothing (SND-16, UPD-14)", async () => {
    const { emulator, token } = await ready();
    const patch = async (fields: object) =>
      (await control(emulator, "PATCH", "/numbers/num_000001", fields)).body.number;
    expect(await patch({ status: "PORTING_OUT" })).toMatchObject({ status: "PORTING_OUT" });
    expect((await call(emulator, "GET", "/api/core/numbers", { token })).body.numbers[0].status).toBe("PORTING_OUT");
    expect((await send(emulator, token)).status).toBe(400);
    const fields = { e164: "+12065550199", status: "INACTIVE", apiClientId: "ac_other" };
    expect(await patch(fields)).toMatchObject(fields);
    expect((await control(emulator, "GET", "/numbers")).body.numbers).toHaveLength(6);
    expect((await call(emulator, "GET", "/api/core/whoami", { token })).body.assignedNumbers.total).toBe(4);
  });

  it.each([
    ["PATCH", "/clients/ac_none", {}, 404],
    ["PATCH", "/clients/ac_main", { status: "" }, 400],
    ["PATCH", "/clients/ac_main", { status: "no word" }, 400],
    ["PATCH", "/clients/ac_main", { accountStatus: 1 }, 400],
    ["PATCH", "/clients/ac_main", { clientSecret: "" }, 400],
    ["PATCH", "/clients/ac_main", { clientId: "x" }, 400],
    ["PATCH", "/numbers/num_none", {}, 404],
    ["PATCH", "/numbers/num_000001", { status: null }, 400],
    ["PATCH", "/numbers/num_000001", { e164: "12065550101" }, 400],
    ["PATCH", "/numbers/num_000001", { webhookInboundOverride: "ftp://x" }, 400],
    ["PATCH", "/numbers/num_000001", { apiClientId: "ac_none" }, 404],
    ["PATCH", "/numbers/num_000001", { numberId: "num_1" }, 400],
    ["PATCH", "/numbers/num_000001", [], 400],
    ["GET", "/clients/ac_none", undefined, 404],
    ["GET", "/numbers/num_none", undefined, 404],
    ["POST", "/numbers", {}, 400],
    ["POST", "/numbers", { e164: "12065550177" }, 400],
    ["POST", "/numbers", { e164: "+12065550101" }, 400],
    ["POST", "/numbers", { e164: "+12065550177", numberId: "num_000001" }, 400],
    ["POST", "/numbers", { e164: "+12065550177", numberId: "../x" }, 400],
    ["POST", "/numbers", { e164: "+12065550177", numberId: "__proto__" }, 400],
    ["POST", "/numbers", { e164: "+12065550177", apiClientId: "ac_none" }, 404],
    ["POST", "/numbers", { e164: "+12065550177", more: 1 }, 400],
    ["POST", "/clients", { apiClientId: "ac_main" }, 400],
    ["POST", "/clients", { clientId: "client_main" }, 400],
    ["POST", "/clients", { apiClientId: "a/b" }, 400],
    ["POST", "/clients", { clientSecret: "" }, 400],
    ["POST", "/clients", { accountId: "acct_main" }, 400],
  ])("refuse %s %s %j with %s, and stay as they were", async (method, path, fields, status) => {
    const emulator = await start();
    const before = emulator.control.exportState();
    expect((await control(emulator, method, path, fields)).status).toBe(status);
    expect(emulator.control.exportState()).toEqual(before);
  });
});

describe("a number that is added", () => {
  it("is the main client's, complete, and sends and receives as the others do", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ deliveryUrl: catcher.url, inboundUrl: catcher.url, lifecycle: "instant" });
    const { status, body } = await control(emulator, "POST", "/numbers", { e164: "+12065550177" });
    expect([status, body.number]).toEqual([
      200,
      {
        ...{ numberId: "num_000007", e164: "+12065550177", status: "ACTIVE", campaignRegId: "C000001" },
        ...{ smsEnabled: true, mmsEnabled: true, webhookInboundOverride: null, webhookDeliveryOverride: null },
        apiClientId: "ac_main",
      },
    ]);
    expect((await send(emulator, await tokenOf(emulator), { sendFrom: "num_000007" })).status).toBe(202);
    emulator.control.inbound({ to: "+12065550177", from: "+14155550123", body: "hello" });
    await emulator.clock.advance(1_000);
    expect(catcher.caught.map(({ event }) => event.eventType)).toContain("message.inbound");
    expect(catcher.caught[0]?.event.data.sendFrom).toBe("+12065550177");
  });

  it("can have everything of its own, and the next ids are free ones", async () => {
    const emulator = await start();
    const own = { numberId: "num_000008", e164: "+12065550178", status: "PORTING", apiClientId: "ac_other" };
    const given = { ...own, campaignRegId: null };
    expect(emulator.control.addNumber({ ...given, smsEnabled: undefined })).toMatchObject({
      ...given,
      smsEnabled: true,
    });
    expect(emulator.control.addNumber({ e164: "+12065550179" }).numberId).toBe("num_000009");
  });

  it("is kept in a state, and gone after a reset", async () => {
    const emulator = await start();
    emulator.control.addNumber({ e164: "+12065550177" });
    emulator.control.importState(emulator.control.exportState());
    expect(emulator.control.numbers()).toHaveLength(7);
    emulator.control.reset();
    expect(emulator.control.numbers()).toHaveLength(6);
    expect(emulator.control.addNumber({ e164: "+12065550177" }).numberId).toBe("num_000007");
  });
});

describe("a client that is added", () => {
  it("gets tokens with the secret that only this answer has, and has webhooks and an account of its own", async () => {
    const emulator = await start();
    const { status, body } = await control(emulator, "POST", "/clients", {});
    expect([status, body]).toEqual([
      200,
      {
        client: {
          ...{ apiClientId: "ac_000005", name: "Client ac_000005", status: "ACTIVE", accountId: "acct_000004" },
          ...{ clientId: "client_of_ac_000005", capabilities: ["numbers:read", "numbers:search", "numbers:update"] },
          accountStatus: "ACTIVE",
        },
        clientSecret: expect.stringMatching(/^[0-9a-f]{24,}$/),
      },
    ]);
    const { clientSecret } = body;
    const token = await tokenOf(emulator, { clientId: body.client.clientId, clientSecret });
    const got = async (path: string) => (await call(emulator, "GET", `/api/core/${path}`, { token })).body;
    expect(await got("whoami")).toMatchObject({ apiClientId: "ac_000005" });
    expect(await got("webhooks")).toMatchObject({ defaults: {} });
    emulator.control.addNumber({ e164: "+12065550177", apiClientId: "ac_000005" });
    expect((await send(emulator, token, { sendFrom: "num_000007" })).status).toBe(202);
    emulator.control.updateClient("ac_000005", { accountStatus: "INACTIVE" });
    expect(await tokenOf(emulator)).toEqual(expect.any(String));
  });

  it("can have everything of its own, and is the same for the same seed", async () => {
    const own = { apiClientId: "tenant-a", clientId: "tenant a", clientSecret: "s", name: "A", capabilities: ["x"] };
    const [one, two] = [await start(), await start()];
    const given = { ...own, status: "PAUSED", accountStatus: "CLOSED" };
    expect(one.control.addClient(given)).toMatchObject(given);
    two.control.addClient(own);
    expect(one.control.addClient().clientSecret).toBe(two.control.addClient().clientSecret);
  });
});

it("tokens are revoked all, or one client's", async () => {
  const emulator = await start();
  await tokenOf(emulator);
  await tokenOf(emulator);
  const token = await tokenOf(emulator, emulator.fixtures.clients.other);
  const revoke = (body?: unknown) => control(emulator, "POST", "/tokens/revoke", body);
  expect((await revoke({ apiClientId: "ac_main" })).body).toEqual({ revoked: 2 });
  expect((await call(emulator, "GET", "/api/core/whoami", { token })).status).toBe(200);
  expect((await revoke({ apiClientId: "ac_none" })).status).toBe(404);
  expect((await revoke()).body).toEqual({ revoked: 1 });
  expect((await call(emulator, "GET", "/api/core/whoami", { token })).status).toBe(401);
});

describe("the clock", () => {
  it("moves on, and answers when every attempt that came due has ended", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ deliveryUrl: catcher.url });
    await send(emulator, await tokenOf(emulator));
    const begun = emulator.clock.now();
    const { body } = await control(emulator, "POST", "/clock", { advanceMs: 10_000 });
    expect(body).toEqual({ now: begun + 10_000, rate: 0, waiting: 0 });
    expect(catcher.caught).toHaveLength(3);
    expect((await control(emulator, "GET", "/clock")).body).toEqual(body);
    expect((await control(emulator, "GET", "/health")).body).toEqual({ status: "ok", now: begun + 10_000 });
  });

  it("refuses to go back, or on for more than ten years", async () => {
    const emulator = await start();
    for (const advanceMs of [-1, 0.5, 315_576_000_001, "1", null]) {
      expect((await control(emulator, "POST", "/clock", { advanceMs })).status).toBe(400);
      await expect(emulator.clock.advance(advanceMs as number)).rejects.toMatchObject({ code: "invalid_option" });
    }
  });
});

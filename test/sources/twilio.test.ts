/** What `twilio()` makes of a verified webhook, and what cannot be done with one that was captured. */
import { createHash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type IncomingWebhook } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { twilio } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";
import { ADAPTERS } from "../adapters/source-cases.ts";

const URL = "https://example.com/webhooks";
const SID = `SM${"a".repeat(32)}`;

interface Seen {
  readonly type: string;
  readonly event: object;
  readonly query: string | undefined;
}

function receiving() {
  const source = twilio({ secrets: TEST_SECRETS.twilio, url: URL });
  const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
  onTestFinished(() => receiver.stop());
  const seen: Seen[] = [];
  const late: string[] = [];
  receiver.onAny((event, ctx) => void seen.push({ type: ctx.meta.eventType, event, query: ctx.header(":query") }));
  receiver.onLate((_event, ctx) => void late.push(ctx.meta.eventType));
  const handle = async (incoming: IncomingWebhook) => {
    const { status, body } = await receiver.handle(incoming);
    await receiver.drain();
    return [status, body];
  };
  /** @param query - with its question mark */
  const send = (content: object | string, query = "") =>
    handle({ ...incomingOf(signedRequest(content, { source: "twilio", url: URL + query })), url: `/webhooks${query}` });
  return { receiver, seen, late, handle, send };
}

const ACCEPTED = [200, "<Response/>"];
const digestQuery = (json: string) => `?id=1&bodySHA256=${createHash("sha256").update(json).digest("hex")}`;

describe("twilio()", () => {
  it.each([
    ["a message's status", { MessageSid: SID, MessageStatus: "undelivered", SmsStatus: "sent" }, "message.undelivered"],
    ["an incoming message's", { MessageSid: SID, SmsStatus: "received", Body: "hello" }, "message.received"],
    ["a call's status", { CallSid: "CA1", CallStatus: "in-progress" }, "call.in-progress"],
    ["the field EventType", { EventType: "onMessageAdded", ConversationSid: "CH1" }, "onMessageAdded"],
    ["that of all others", { Sid: "VA1" }, "unknown"],
  ])("takes as type %s", async (_, fields, type) => {
    const { seen, send } = receiving();
    expect(await send(fields)).toEqual(ACCEPTED);
    expect(seen).toEqual([{ type, event: fields, query: undefined }]);
  });

  it.each([
    [
      "an object",
      { type: "com.twilio.voice.status-callback.call.completed" },
      "com.twilio.voice.status-callback.call.completed",
    ],
    ["a batch", [{ id: "EV1" }, { id: "EV2" }], "unknown"],
  ])("takes JSON whose digest is in the signed query: %s", async (_, event, type) => {
    const { seen, send } = receiving();
    const json = JSON.stringify(event);
    const query = digestQuery(json);
    expect(await send(json, query)).toEqual(ACCEPTED);
    expect(await send(json, query)).toEqual(ACCEPTED);
    expect(seen).toEqual([{ type, event, query: query.slice(1) }]);
  });

  it("handles the statuses of a message in their order, and an earlier one that comes later as late", async () => {
    const { seen, late, send } = receiving();
    const statuses = ["queued", "delivered", "sent", "sending", "read", "delivered"];
    for (const type of statuses) await send(fixtures.twilio({ id: SID, type }));
    expect(seen.map(({ type }) => type)).toEqual(["message.queued", "message.delivered", "message.read"]);
    expect(late).toEqual(["message.sent", "message.sending"]);
  });

  it("takes a form once, and a status that comes with other fields is another event, which is not late", async () => {
    const { seen, late, send } = receiving();
    await send(fixtures.twilio({ id: SID }));
    await send(fixtures.twilio({ id: SID }));
    expect(seen).toHaveLength(1);
    await send(fixtures.twilio({ id: SID, data: { RawDlrDoneDate: "2511270000" } }));
    expect([seen.length, late]).toEqual([2, []]);
  });

  it("handles a status that it does not know by itself", async () => {
    const { seen, late, send } = receiving();
    for (const type of ["delivered", "teleported"]) await send(fixtures.twilio({ id: SID, type }));
    expect(seen.map(({ type }) => type)).toEqual(["message.delivered", "message.teleported"]);
    expect(late).toEqual([]);
  });

  it.each([
    ["", {}],
    ["a=1&a=2&b=3", { a: ["1", "2"], b: "3" }],
  ])("takes the form %j as %j", async (form, event) => {
    const { seen, send } = receiving();
    expect(await send(form)).toEqual(ACCEPTED);
    expect(seen).toEqual([{ type: "unknown", event, query: undefined }]);
  });

  it("quarantines JSON that is not an object, and replays none of it as a form", async () => {
    const { receiver, send } = receiving();
    await send("7", digestQuery("7"));
    const [{ id } = { id: 0 }] = (await receiver.inbox.findQuarantined({})).items;
    await expect(receiver.inbox.replayQuarantined(id)).rejects.toThrow(/not_an_object/);
  });

  it("refuses more than 1,000 fields, a form of more than 128 KiB, a query that would be cut, and a field __proto__", async () => {
    const { receiver, send } = receiving();
    expect(await send(`a=${"x".repeat(128 * 1024 - 2)}`)).toEqual(ACCEPTED);
    expect((await send(`a=${"x".repeat(128 * 1024 - 1)}`))[0]).toBe(401);
    const form = (fields: number) => Array.from({ length: fields }, (_, n) => `f${n}=x`).join("&");
    expect(await send(form(1_000))).toEqual(ACCEPTED);
    expect((await send(form(1_001)))[0]).toBe(401);
    expect(await send("a=1", `?${"q".repeat(8_192)}`)).toEqual(ACCEPTED);
    expect((await send("a=1", `?${"q".repeat(8_193)}`))[0]).toBe(401);
    expect((await send("__proto__=x"))[0]).toBe(401);
    expect(receiver.counters).toMatchObject({ "refused:malformed_signature": 4 });
  });

  it("takes the path of the request with an origin", async () => {
    const source = twilio({ secrets: TEST_SECRETS.twilio, url: { origin: "https://example.com" } });
    const receiver = createReceiver({ store: memoryStore({ volatile: true }), source, logger: silentLogger });
    onTestFinished(() => receiver.stop());
    const send = async (signed: string, requested: string) => {
      const request = signedRequest(fixtures.twilio(), { source: "twilio", url: `https://example.com${signed}` });
      return (await receiver.handle({ ...incomingOf(request), url: requested })).status;
    };
    expect(await send("/sms/in?a=1", "/sms/in?a=1")).toBe(200);
    expect(await send("/calls", "http://10.0.0.1:8080/calls")).toBe(200);
    expect(await send("/calls", "/sms/in")).toBe(401);
    expect(await send("/calls", "/calls?a=1")).toBe(401);
  });

  it.each([
    ...["example.com/webhooks", `${URL}?a=1`, `${URL}#rc=5`, "ftp://example.com", ""],
    ...[{ origin: URL }, { origin: "https://example.com/" }, { origin: "example.com" }, {} as never],
  ])("refuses the url %j", (url) => {
    expect(() => twilio({ secrets: "x", url })).toThrow(/"url" must be the URL that you gave Twilio/);
  });
});

describe("a captured webhook of twilio()", () => {
  const query = "?order=7";
  const fields = {
    AccountSid: "AC1",
    MessageSid: SID,
    MessageStatus: "delivered",
    SmsSid: SID,
    SmsStatus: "delivered",
  };
  const { headers } = signedRequest(fields, { source: "twilio", url: URL + query });
  /** All that is signed after the path. */
  const text = `${query}${Object.entries(fields).flat().join("")}`;

  const replay = (form: Record<string, string>, changed = query) => {
    const body = Buffer.from(`${new URLSearchParams(form)}`);
    return { ...incomingOf({ method: "POST" as const, headers, body }), url: `/webhooks${changed}` };
  };

  it("is a repeat in another order of its fields", async () => {
    const { seen, handle } = receiving();
    expect(await handle(replay(fields))).toEqual(ACCEPTED);
    expect(await handle(replay(Object.fromEntries(Object.entries(fields).reverse()) as typeof fields))).toEqual(
      ACCEPTED,
    );
    expect(seen).toHaveLength(1);
  });

  it("is a repeat, cut into any two other fields or into another query", async () => {
    const { seen, handle } = receiving();
    await handle(replay(fields));
    for (let end = 0; end < text.length; end++) {
      const isQuery = end > 1;
      const rest = isQuery ? text.slice(end) : text;
      for (const middle of [1, 2, Math.ceil(rest.length / 2), rest.length])
        await handle(replay({ [rest.slice(0, middle)]: rest.slice(middle) }, isQuery ? text.slice(0, end) : ""));
    }
    expect(seen.map(({ type }) => type)).toEqual(["message.delivered"]);
  });

  it("is a repeat under another spelling of its query", async () => {
    const { seen, handle } = receiving();
    const call = { AccountSid: "AC1", CallSid: "CA1", CallStatus: "completed" };
    const { headers, body } = signedRequest(call, { source: "twilio", url: `${URL}?order=7` });
    const spellings = ["order=7", "order=%37", "%6frder=7", "&order=7", "order=7&", "&&order=7", "o%72der=7"];
    for (const spelling of spellings) {
      const incoming = incomingOf({ method: "POST" as const, headers, body });
      expect(await handle({ ...incoming, url: `/webhooks?${spelling}` })).toEqual(ACCEPTED);
    }
    expect(seen.map(({ type }) => type)).toEqual(["call.completed"]);
  });

  it("is not a conflict with fields that are written in other ways, and is one with others", async () => {
    const { receiver, seen, handle } = receiving();
    const call = { AccountSid: "AC1", CallSid: "CA1", CallStatus: "completed", Called: "+1 555 é", Caller: "+2" };
    const { headers, body } = signedRequest(call, { source: "twilio", url: URL });
    const send = (form: string | Uint8Array) =>
      handle(incomingOf({ method: "POST" as const, headers, body: Buffer.from(form) }));
    await send(body);
    const pairs = Buffer.from(body).toString().split("&");
    const [first = ""] = pairs;
    for (const spelled of [
      pairs.toReversed().join("&"),
      ...pairs.map((pair) => `${pair}&${pairs.join("&")}`),
      ...[...first].map((_, at) =>
        [`${first.slice(0, at)}%${first.charCodeAt(at).toString(16)}${first.slice(at + 1)}`, ...pairs.slice(1)].join(
          "&",
        ),
      ),
      Buffer.from(body).toString().replaceAll("+", "%20"),
      Buffer.from(body).toString().replaceAll("%2B", "%2b"),
      `&&${pairs.join("&&")}&`,
    ])
      expect(await send(spelled.replace("%3d", "="))).toEqual(ACCEPTED);
    expect(seen).toHaveLength(1);
    const { duplicates, conflicts } = (await receiver.inbox.stats()).counters;
    expect([duplicates > 15, conflicts]).toEqual([true, 0]);
    await send("AccountSidAC1=&CallSid=CA1&CallStatus=completed&Called=%2B1 555 é&Caller=%2B2");
    expect((await receiver.inbox.stats()).counters.conflicts).toBe(1);
  });

  it("shows the values of a repeated field as they are signed: each once, in their order", async () => {
    const { seen, handle } = receiving();
    const { headers } = signedRequest("a=1&a=2&b=3", { source: "twilio", url: URL });
    await handle(incomingOf({ method: "POST", headers, body: Buffer.from("a=2&a=1&a=2&b=3&b=3") }));
    expect(seen).toMatchObject([{ event: { a: ["1", "2"], b: "3" } }]);
  });

  it("is a repeat with a field that is repeated", async () => {
    const { receiver, seen, handle } = receiving();
    const call = { AccountSid: "AC1", CallSid: "CA1", CallStatus: "completed" };
    const { headers, body } = signedRequest(call, { source: "twilio", url: URL });
    for (let times = 0; times < 20; times++) {
      const repeated = Buffer.concat([body, Buffer.from("&CallSid=CA1".repeat(times))]);
      expect(await handle(incomingOf({ method: "POST" as const, headers, body: repeated }))).toEqual(ACCEPTED);
    }
    expect(seen).toHaveLength(1);
    expect((await receiver.inbox.findQuarantined({})).items).toEqual([]);
  });

  it("brings in no JSON whose digest was text in a field", async () => {
    const { seen, handle } = receiving();
    const evil = Buffer.from('{"type":"evil"}');
    const digest = createHash("sha256").update(evil).digest("hex");
    const Body = `&bodySHA256=a&bodySHA256=${digest}&z=`;
    const captured = { AccountSid: "AC1", From: "12345", To: "54321", Body };
    const { headers } = signedRequest(captured, { source: "twilio", url: `${URL}?order=7` });
    // Written in the usual order, this is the text that was signed.
    const query = `order=7AccountSidAC1Body&bodySHA256=a&z=From12345To54321&bodySHA256=${digest}`;
    const incoming = { ...incomingOf({ method: "POST" as const, headers, body: evil }), url: `/webhooks?${query}` };
    expect((await handle(incoming))[0]).toBe(401);
    expect(seen).toEqual([]);
  });

  describe("with a text that its author wrote", () => {
    const statusOf = (n: number) => `MessageSidSM${`${n}`.padStart(32, "a")}MessageStatusdelivered`;
    const Body = `hi${[1, 2, 3].map((n) => `${statusOf(n)}Z`).join("")}`;
    const incoming = { AccountSid: "AC1", Body, From: "+1", MessageSid: SID, SmsStatus: "received" };
    const signed = (url: string) => signedRequest(incoming, { source: "twilio", url }).headers;
    const all = Object.entries(incoming).flat().join("");
    const cut = (n: number) => {
      const at = all.indexOf(statusOf(n));
      const [sid, rest] = [`SM${`${n}`.padStart(32, "a")}`, all.slice(at + statusOf(n).length)];
      const text = all.slice("AccountSidAC1Body".length, at);
      return `${new URLSearchParams({ AccountSid: "AC1", Body: text, MessageSid: sid, MessageStatus: "delivered", [rest]: "" })}`;
    };

    it("becomes one of the statuses that the text names at most, the others are conflicts, and Twilio's own are handled", async () => {
      const { receiver, seen, handle, send } = receiving();
      for (const n of [1, 2, 3])
        await handle(incomingOf({ method: "POST" as const, headers: signed(URL), body: Buffer.from(cut(n)) }));
      expect(seen.map(({ type }) => type)).toEqual(["message.delivered"]);
      for (const n of [1, 2]) await send(fixtures.twilio({ id: `SM${`${n}`.padStart(32, "a")}` }));
      expect(seen).toHaveLength(3);
      expect((await receiver.inbox.stats()).counters).toMatchObject({ duplicates: 2, conflicts: 2 });
    });

    it("is refused at the URL of the statuses, if messages come in at another one", async () => {
      const { seen, handle } = receiving();
      const headers = signed("https://example.com/messages");
      expect((await handle(incomingOf({ method: "POST" as const, headers, body: Buffer.from(cut(1)) })))[0]).toBe(401);
      expect(seen).toEqual([]);
    });
  });

  it("cannot be given another status", async () => {
    const { seen, handle } = receiving();
    await handle(replay(fields));
    const tail = `SmsSid${SID}SmsStatusdelivered`;
    for (let end = 1; end < "delivered".length; end++) {
      const [status, left] = ["delivered".slice(0, end), "delivered".slice(end)];
      const cut = {
        AccountSid: "AC1",
        MessageSid: SID,
        MessageStatus: status,
        [left + tail.slice(0, 6)]: tail.slice(6),
      };
      await handle(replay(cut));
    }
    expect(seen.map(({ type }) => type)).toEqual(["message.delivered"]);
  });
});

describe.each(Object.entries(ADAPTERS))("%s", (_name, mount) => {
  it("passes the query to the signature and to the handler", async () => {
    const { receiver, seen } = receiving();
    const port = await mount(receiver as never);
    const query = "?order=7&q=a%20b+c";
    const post = (sent: string) =>
      fetch(
        `http://127.0.0.1:${port}/webhooks${sent}`,
        signedRequest(fixtures.twilio(), { source: "twilio", url: URL + query }),
      );
    expect((await post("?order=8")).status).toBe(401);
    const answer = await post(query);
    expect([answer.status, answer.headers.get("content-type")?.split(";")[0]]).toEqual([200, "text/xml"]);
    await receiver.drain();
    expect(seen).toMatchObject([{ type: "message.delivered", query: query.slice(1) }]);
  });
});

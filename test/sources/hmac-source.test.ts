/** `hmacSource()`: what a scheme must say, and schemes of real providers. */
import { createHmac, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { defineSource, type HmacScheme, hmacSource } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock, incomingOf } from "../../src/tools/testing/index.ts";

const NOW = 1_700_000_000_000;
const SECRET = "a secret of this provider";
const scheme: HmacScheme = { preset: "acme", header: "x-signature", identity: "digest", lastRetryMs: 0 };

function receiverOf(given: HmacScheme, secrets = SECRET) {
  const store = memoryStore({ volatile: true });
  return createReceiver({ store, clock: createFakeClock(NOW), source: hmacSource(given)({ secrets }) }).onAny(() => {});
}

async function answer(given: HmacScheme, headers: Record<string, string>, body: string, secrets = SECRET) {
  const receiver = receiverOf(given, secrets);
  const { status } = await receiver.handle(incomingOf({ method: "POST", headers, body: Buffer.from(body) }));
  const [event] = (await receiver.inbox.find()).items;
  return { status, type: event?.eventType, identity: event?.ownId };
}

const hmac = (text: string, hash = "sha256", secret: string | Buffer = SECRET) => createHmac(hash, secret).update(text);

describe("hmacSource()", () => {
  it.each<[string, HmacScheme, (body: string) => Record<string, string>]>([
    ["Linear", { ...scheme, type: { body: "type" } }, (body) => ({ "x-signature": hmac(body).digest("hex") })],
    [
      "Typeform",
      { ...scheme, encoding: "base64", prefix: "sha256=", type: { body: "type" } },
      (body) => ({ "x-signature": `sha256=${hmac(body).digest("base64")}` }),
    ],
    [
      "Vercel",
      { ...scheme, hash: "sha1", type: { body: "type" }, identity: { body: "id" } },
      (body) => ({ "x-signature": hmac(body, "sha1").digest("hex") }),
    ],
    [
      "Paddle",
      {
        ...scheme,
        items: { separator: ";", signature: "h1", timestamp: "ts" },
        signed: "{timestamp}:{body}",
        type: { body: "type" },
      },
      (body) => ({ "x-signature": `ts=1700000000;h1=${hmac(`1700000000:${body}`).digest("hex")};h1=00` }),
    ],
    [
      "Zoom",
      {
        ...scheme,
        prefix: "v0=",
        timestamp: "x-time",
        signed: "v0:{timestamp}:{body}",
        type: { body: "type" },
      },
      (body) => ({ "x-time": "1700000000", "x-signature": `v0=${hmac(`v0:1700000000:${body}`).digest("hex")}` }),
    ],
    [
      "Twitch",
      {
        ...scheme,
        prefix: "sha256=",
        signed: "{header:x-id}{header:x-time}{body}",
        type: { header: "x-type" },
      },
      (body) => ({
        ...{ "x-id": "id-1", "x-time": "2023-11-14T22:13:20Z", "x-type": "a.thing" },
        "x-signature": `sha256=${hmac(`id-12023-11-14T22:13:20Z${body}`).digest("hex")}`,
      }),
    ],
  ])("verifies, types and names as %s does", async (_, given, headers) => {
    const body = '{"id":"id-1","type":"a.thing"}';
    const taken = await answer(given, headers(body), body);
    expect([taken.status, taken.type]).toEqual([200, "a.thing"]);
    if (given.identity !== "digest") expect(taken.identity).toBe("id-1");
    expect((await answer(given, headers(body), `${body} `)).status).toBe(401);
    expect((await answer(given, headers(body), body, `${SECRET}!`)).status).toBe(401);
    for (const name of Object.keys(headers(body)).filter((each) => each !== "x-type")) {
      const { [name]: _gone, ...rest } = headers(body);
      expect((await answer(given, rest, body)).status).toBe(401);
    }
  });

  it.each([
    [{ timestamp: "x-time" }, /must contain \{timestamp\}/],
    [{ signed: "{timestamp}.{body}" }, /must contain \{timestamp\}/],
    [{ signed: "{id}.{body}" }, /"signed" must contain \{body\}/],
    [{ signed: "nothing" }, /"signed" must contain \{body\}/],
    [{ signed: "{body}{body}" }, /each once/],
    [{ identity: { header: "x-id" } }, /not part of "signed"/],
    // "id-1" and "2023" would be signed as "id-12" and "023" are.
    [{ signed: "{header:x-id}{header:x-time}.{body}", identity: { header: "x-id" } }, /end is not signed/],
    [{ signed: "{header:x-time}{header:x-id}.{body}", identity: { header: "x-id" } }, /end is not signed/],
    [{ type: "type" }, /"type" must be/],
    [{ type: { heder: "x-type" } }, /"type" must be/],
    [{ reference: { header: "X-Id" } }, /"reference" must be/],
    [{ identity: "id" }, /"identity" must be/],
    // Two pings are not one event because nobody said what tells them apart.
    [{ identity: undefined }, /"identity" must be .* "digest"/],
    [{ keep: ["X-Id"] }, /lower-case names/],
    [{ shows: "id" as never }, /Option "shows" must be a list of up to 100 paths/],
    [{ shows: ["data..id"] }, /Option "shows" must be a list/],
    [{ shows: [""] }, /Option "shows" must be a list/],
    [{ shows: [7 as never] }, /Option "shows" must be a list/],
    [{ shows: Array.from({ length: 101 }, (_, n) => `a${n}`) }, /Option "shows" must be a list/],
    [{ maxBodyBytes: 1e12 }, /33554432/],
    [{ answerMs: Number.NaN }, /"answerMs"/],
    [{ lastRetryMs: undefined }, /"lastRetryMs" must be given/],
    [{ preset: "service" }, /messaging service/],
    [{ header: "X-Signature" }, /lower-case names/],
    [{ preset: "Acme" }, /"preset"/],
    [{ encoding: "base32" }, /"encoding"/],
    [{ separator: "," }, /separator/],
  ])("refuses %o", (wrong, message) => {
    expect(() => hmacSource({ ...scheme, ...wrong } as HmacScheme)).toThrow(message);
  });

  it('takes equal bodies for one event only where "digest" was said', async () => {
    const receiver = receiverOf(scheme);
    const body = Buffer.from('{"delta":{"users":[1]}}');
    const send = async () => {
      const headers = { "x-signature": hmac(body.toString()).digest("hex") };
      return JSON.parse((await receiver.handle(incomingOf({ method: "POST", headers, body }))).body) as unknown;
    };
    expect([await send(), await send()]).toEqual([{ outcome: "handled" }, { outcome: "duplicate" }]);
    // @ts-expect-error an identity must be said
    const silent: HmacScheme = { preset: "acme", header: "x-signature", lastRetryMs: 0 };
    expect(() => hmacSource(silent)).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });

  it("is not what takes pings: a definition that gives each delivery an identity of its own handles all of them", async () => {
    const pings = defineSource({
      preset: "pings",
      lastRetryMs: 0,
      verify(head, body, keys) {
        const signature = Buffer.from(head.header("x-signature") ?? "", "hex");
        const key = keys.find((each) => each.signed(signature, "sha256", body));
        return key === undefined ? { ok: false, code: "signature_mismatch" } : { ok: true, key, signedAt: null };
      },
      parse: () => ({ ok: true, event: {} }),
      place: () => ({ type: "ping", id: randomUUID() }),
    });
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ store, source: pings({ secrets: SECRET }) });
    let handled = 0;
    receiver.onAny(() => void handled++);
    const headers = { "x-signature": hmac("{}").digest("hex") };
    for (let n = 0; n < 3; n++) await receiver.handle(incomingOf({ method: "POST", headers, body: Buffer.from("{}") }));
    await receiver.drain();
    expect(handled).toBe(3);
  });

  it("reads keys in base64 and hex, and refuses other texts for them", async () => {
    const key = Buffer.from("0123456789abcdef");
    const body = "{}";
    const headers = { "x-signature": hmac(body, "sha256", key).digest("hex") };
    expect((await answer({ ...scheme, key: "hex" }, headers, body, key.toString("hex"))).status).toBe(200);
    expect((await answer({ ...scheme, key: "base64" }, headers, body, key.toString("base64"))).status).toBe(200);
    expect(() => receiverOf({ ...scheme, key: "hex" }, "zz")).toThrow(/must be hex/);
  });

  it("refuses a time beyond the tolerance", async () => {
    const given: HmacScheme = { ...scheme, timestamp: "x-time", timestampUnit: "ms", signed: "{timestamp}{body}" };
    const at = async (time: number) => {
      const headers = { "x-time": `${time}`, "x-signature": hmac(`${time}{}`).digest("hex") };
      return (await answer(given, headers, "{}")).status;
    };
    expect([await at(NOW - 300_000), await at(NOW - 301_000), await at(NOW + 301_000)]).toEqual([200, 401, 401]);
  });
});

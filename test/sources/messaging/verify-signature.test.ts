import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { KeyringError } from "../../../src/errors.ts";
import type { Keyring, KeyringContext } from "../../../src/sources/keys.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import {
  type VerifyOptions,
  type VerifyResult,
  verifySignature,
} from "../../../src/sources/messaging/verify-signature.ts";
import { NOW, OTHER_SECRET, opensslHmac, SECRET, SIGNED, VECTORS } from "./openssl.ts";

const { body, timestamp, signature: hex } = SIGNED;
const headers = { "x-service-timestamp": timestamp, "x-service-signature": hex };

const verify = (changes: Partial<VerifyOptions> = {}) =>
  verifySignature({ headers, body, secrets: SECRET, now: NOW, ...changes });
const code = (result: VerifyResult) => (result.ok ? "ok" : result.code);

describe("verifySignature()", () => {
  it.each(VECTORS)(
    "accepts openssl's signature: $name (RCV-1)",
    ({ secret, timestamp: text, body: bytes, signature }) => {
      const given = { "X-Service-Timestamp": text, "X-Service-Signature": signature };
      expect(verify({ headers: given, body: bytes, secrets: secret })).toEqual({
        ok: true,
        timestamp: NOW,
        matched: { slot: "current", index: 0, kind: null },
      });
    },
  );

  it("takes fetch headers, and a string for its UTF-8 bytes", () => {
    expect(code(verify({ headers: new Headers(headers), body: body.toString() }))).toBe("ok");
  });

  it.each([
    ["missing_timestamp", { "x-service-signature": hex }],
    ["missing_signature", { "x-service-timestamp": timestamp }],
    ["missing_timestamp", {}],
    ["malformed_timestamp", { ...headers, "x-service-timestamp": "" }],
    ["malformed_timestamp", { ...headers, "x-service-timestamp": `${timestamp}0` }],
    ["malformed_timestamp", { ...headers, "x-service-timestamp": [timestamp, timestamp] }],
    ["malformed_timestamp", { ...headers, "x-service-timestamp": `${timestamp}, ${timestamp}` }],
    ["malformed_signature", { ...headers, "x-service-signature": "" }],
    ["malformed_signature", { ...headers, "x-service-signature": hex.slice(2) }],
    ["malformed_signature", { ...headers, "x-service-signature": Array(6).fill(hex) }],
    ["signature_mismatch", { ...headers, "x-service-signature": "0".repeat(64) }],
    ["ok", { ...headers, "x-service-signature": ["0".repeat(64), hex] }],
    ["ok", { ...headers, "x-service-signature": Array(5).fill(hex) }],
  ])("answers %s (RCV-2) %#", (expected, given) => {
    expect(code(verify({ headers: given }))).toBe(expected);
  });

  it.each([
    [300_000, "ok"],
    // The timestamp is a whole second, and is compared with the second that it is now.
    [300_999, "ok"],
    [301_000, "timestamp_too_old"],
    [-300_000, "ok"],
    [-300_001, "timestamp_in_future"],
  ])("judges a timestamp %i ms old: %s (RCV-2)", (age, expected) => {
    expect(code(verify({ now: NOW + age }))).toBe(expected);
  });

  it("checks the age before the signature, and uses the system's time by default", () => {
    const forged = { ...headers, "x-service-signature": "0".repeat(64) };
    expect(code(verify({ headers: forged, now: NOW + 301_000 }))).toBe("timestamp_too_old");
    expect(code(verifySignature({ headers: signPayload({ body, secret: SECRET }), body, secrets: SECRET }))).toBe("ok");
    expect(code(verifySignature({ headers, body, secrets: SECRET }))).toBe("timestamp_too_old");
  });

  it("refuses a body with any bit flipped, cut or extended (RCV-1)", () => {
    for (let bit = 0; bit < body.length * 8; bit++) {
      const flipped = Buffer.from(body);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(code(verify({ body: flipped }))).toBe("signature_mismatch");
    }
    for (let length = 0; length < body.length; length++) {
      expect(code(verify({ body: body.subarray(0, length) }))).toBe("signature_mismatch");
      expect(code(verify({ body: body.subarray(length + 1) }))).toBe("signature_mismatch");
    }
    for (const extra of [0, 10, 32])
      expect(code(verify({ body: Buffer.concat([body, Buffer.of(extra)]) }))).not.toBe("ok");
  });

  it("refuses a signature with any bit flipped (RCV-1)", () => {
    const right = Buffer.from(hex, "hex");
    for (let bit = 0; bit < right.length * 8; bit++) {
      const flipped = Buffer.from(right);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const given = { ...headers, "x-service-signature": flipped.toString("hex") };
      expect(code(verify({ headers: given }))).toBe("signature_mismatch");
    }
  });

  it("signs the header's text, not the time it means (RCV-1)", () => {
    const seconds = { ...headers, "x-service-timestamp": "1760000000" };
    expect(code(verify({ headers: seconds }))).toBe("signature_mismatch");
  });

  it("does not decode the body: other bytes that decode to the same text are refused (RCV-1)", () => {
    const replaced = Buffer.from('{"a":"\ufffd"}');
    const invalid = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]);
    expect(invalid.toString()).toBe(replaced.toString());
    const signed = { ...headers, "x-service-signature": opensslHmac(SECRET, timestamp, replaced).toString("hex") };
    expect(code(verify({ headers: signed, body: replaced }))).toBe("ok");
    expect(code(verify({ headers: signed, body: invalid }))).toBe("signature_mismatch");
    const bom = Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), replaced]);
    expect(code(verify({ headers: signed, body: bom }))).toBe("signature_mismatch");
  });

  it("refuses the signed text split at any other dot", () => {
    const text = `${timestamp}.1760000000.1.{"a":1.5}`;
    const signature = opensslHmac(SECRET, timestamp, text.slice(14)).toString("hex");
    const dots = [...text].flatMap((each, index) => (each === "." ? [index] : []));
    const accepted = dots.filter((dot) => {
      const given = { "x-service-timestamp": text.slice(0, dot), "x-service-signature": signature };
      const custom = verify({ headers: given, body: text.slice(dot + 1), timestampFormat: () => NOW });
      const plain = verify({ headers: given, body: text.slice(dot + 1) });
      return custom.ok || plain.ok;
    });
    expect(dots).toHaveLength(4);
    expect(accepted).toEqual([13]);
  });

  it("pins format and encoding", () => {
    expect(code(verify({ timestampFormat: "ms", encoding: "hex" }))).toBe("ok");
    expect(code(verify({ timestampFormat: "s" }))).toBe("malformed_timestamp");
    expect(code(verify({ encoding: "base64" }))).toBe("malformed_signature");
  });

  it("says which slot matched (RCV-9)", () => {
    const previous = { secret: SECRET, validUntil: NOW + 1 };
    const slots = (secrets: Keyring) => {
      const result = verify({ secrets });
      return result.ok ? result.matched : result.code;
    };
    expect(slots({ current: OTHER_SECRET, previous })).toEqual({ slot: "previous", index: 0, kind: null });
    expect(slots({ current: OTHER_SECRET, next: SECRET })).toEqual({ slot: "next", index: 0, kind: null });
    expect(slots({ current: [OTHER_SECRET, SECRET] })).toEqual({ slot: "current", index: 1, kind: null });
    expect(slots({ current: SECRET, next: SECRET })).toEqual({ slot: "current", index: 0, kind: null });
    expect(slots({ current: OTHER_SECRET })).toBe("signature_mismatch");
  });

  it("says which kind the secret that matched is limited to, and no tenant's name", () => {
    const matched = (secrets: Keyring, text = "{}") => {
      const given = signPayload({ body: text, secret: SECRET, timestamp: NOW });
      const result = verify({ secrets, headers: given, body: text });
      return result.ok ? result.matched : result.code;
    };
    const current = { slot: "current", index: 0 };
    expect(matched({ inbound: SECRET, delivery: OTHER_SECRET })).toEqual({ ...current, kind: "inbound" });
    expect(matched({ inbound: OTHER_SECRET, delivery: SECRET })).toEqual({ ...current, kind: "delivery" });
    expect(matched({ secret: SECRET, tenant: "tenant-17" })).toEqual({ ...current, kind: null });
    const delivery = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1 } };
    const outbound = '{"direction":"outbound"}';
    expect(matched({ inbound: SECRET, delivery })).toEqual({ ...current, kind: "inbound" });
    expect(matched({ inbound: SECRET, delivery }, outbound)).toEqual({ slot: "previous", index: 0, kind: "delivery" });
  });

  it.each([
    [-1, "ok"],
    [0, "signature_mismatch"],
    [1, "signature_mismatch"],
  ])("checks the end of a previous secret per request: %i ms after it (RCV-9)", (after, expected) => {
    const secrets = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1000 } };
    expect(code(verify({ secrets }))).toBe("ok");
    expect(code(verify({ secrets, now: NOW + 1000 + after }))).toBe(expected);
  });

  it("refuses what a kind's secret or a tenant's secret does not vouch for (RCV-8)", () => {
    const signed = (fields: object, secret = SECRET) => {
      const text = JSON.stringify(fields);
      return { headers: signPayload({ body: text, secret, timestamp: NOW }), body: text };
    };
    const kinds = { inbound: SECRET, delivery: OTHER_SECRET };
    expect(code(verify({ ...signed({ direction: "inbound" }), secrets: kinds }))).toBe("ok");
    expect(code(verify({ ...signed({ direction: "outbound" }), secrets: kinds }))).toBe("signature_mismatch");
    expect(code(verify({ ...signed({ direction: "outbound" }, OTHER_SECRET), secrets: kinds }))).toBe("ok");
    expect(code(verify({ ...signed({}), secrets: kinds }))).toBe("ok");
    const tenant = { secret: SECRET, tenant: "a" };
    expect(code(verify({ ...signed({ apiClientId: "a" }), secrets: tenant }))).toBe("ok");
    expect(code(verify({ ...signed({ apiClientId: "b" }), secrets: tenant }))).toBe("signature_mismatch");
    expect(code(verify({ ...signed({ apiClientId: ["a"] }), secrets: tenant }))).toBe("signature_mismatch");
    const notJson = { headers: signPayload({ body: "\xff", secret: SECRET, timestamp: NOW }), body: "\xff" };
    expect(code(verify({ ...notJson, secrets: tenant }))).toBe("ok");
  });

  it("reads the fields that a secret is limited by from any kind of bytes, and refuses nothing for a body without them", () => {
    const signed = (text: string) => ({ headers: signPayload({ body: text, secret: SECRET, timestamp: NOW }) });
    const secrets = { inbound: SECRET, delivery: OTHER_SECRET };
    const outbound = '{"direction":"outbound"}';
    // As fetch gives them: no Buffer.
    const plain = new TextEncoder().encode(outbound);
    expect(code(verify({ ...signed(outbound), body: plain, secrets }))).toBe("signature_mismatch");
    for (const text of ["null", "5", '"x"', "[]", "true"]) {
      expect(code(verify({ ...signed(text), body: text, secrets }))).toBe("ok");
    }
  });

  it("goes on reading headers as before when one option is given", () => {
    expect(code(verify({ toleranceMs: 1_000 }))).toBe("ok");
    expect(code(verify({ toleranceMs: { futureMs: 1 } }))).toBe("ok");
    expect(code(verify({ encoding: "auto" }))).toBe("ok");
    expect(code(verify({ timestampFormat: "auto", toleranceMs: 1 }))).toBe("ok");
  });

  it("keeps a keyring by identity, however many others come after it", () => {
    const secrets = { current: SECRET };
    expect(code(verify({ secrets }))).toBe("ok");
    secrets.current = OTHER_SECRET;
    for (let index = 0; index < 40; index++) verify({ secrets: `${SECRET}-identity-${index}` });
    expect(code(verify({ secrets }))).toBe("ok");
    expect(code(verify({ secrets: { current: OTHER_SECRET } }))).toBe("signature_mismatch");
  });

  it("never accepts an unsigned request, even of an unsigned kind", () => {
    const secrets = { inbound: "dangerouslyUnsigned", delivery: SECRET };
    expect(code(verify({ headers: {}, secrets, body: '{"direction":"inbound"}' }))).toBe("missing_timestamp");
    const none = { inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" };
    expect(code(verify({ secrets: none }))).toBe("no_secret");
  });

  it("works for many secrets by text, and again for the first", () => {
    for (let index = 0; index < 50; index++) {
      const secrets = `${SECRET}-${index % 25}`;
      expect(code(verify({ secrets, headers: signPayload({ body, secret: secrets, timestamp: NOW }) }))).toBe("ok");
      expect(code(verify({ secrets }))).toBe("signature_mismatch");
    }
  });
});

describe("verifySignature() with a provider", () => {
  it("answers with a promise, and gives the provider the tenant and the route", async () => {
    const asked: KeyringContext[] = [];
    const secrets = async (context: KeyringContext) => {
      asked.push(context);
      return context.tenant === "b" ? undefined : { current: { secret: SECRET, tenant: "apc_1" } };
    };
    const options = { headers, body, secrets, now: NOW };
    expect(code(await verifySignature({ ...options, tenant: "a" }))).toBe("ok");
    expect(code(await verifySignature({ ...options, tenant: "b" }))).toBe("no_secret");
    expect(code(await verifySignature({ ...options, tenant: "a", route: "/hooks" }))).toBe("ok");
    expect(code(await verifySignature({ ...options, route: "/hooks" }))).toBe("ok");
    expect(code(await verifySignature({ ...options, headers: {} }))).toBe("missing_timestamp");
    expect(asked).toEqual([{ tenant: "a" }, { tenant: "b" }, { tenant: "a", route: "/hooks" }, { route: "/hooks" }]);
  });

  it("reads once more on a mismatch, so that a rotation loses nothing (RCV-9)", async () => {
    let reads = 0;
    const secrets = () => (reads++ === 0 ? OTHER_SECRET : SECRET);
    // The first one is decided: its secrets were read after it came.
    expect(code(await verifySignature({ headers, body, secrets, now: NOW }))).toBe("signature_mismatch");
    expect(code(await verifySignature({ headers, body, secrets, now: NOW }))).toBe("ok");
    expect(reads).toBe(2);
  });

  it("rejects with KeyringError when the provider fails, which is not a 401", async () => {
    const secrets = () => Promise.reject(new Error("no database"));
    await expect(verifySignature({ headers, body, secrets, now: NOW })).rejects.toThrow(KeyringError);
  });
});

describe("duplicate headers over a socket", () => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => response.end(code(verify({ headers: request.headers, body: Buffer.concat(chunks) }))));
  });
  afterEach(() => server.close());

  async function post(lines: readonly string[]): Promise<string> {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const head = ["POST / HTTP/1.1", "Host: x", "Connection: close", `Content-Length: ${body.length}`, ...lines];
    socket.write(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), body]));
    let answer = "";
    for await (const chunk of socket) answer += String(chunk);
    return answer.match(/\b(?:ok|[a-z]+(?:_[a-z]+)+)\b/)?.[0] ?? answer;
  }

  it("takes a doubled signature as a list and refuses a doubled timestamp, in every order and case", async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const junk = "0".repeat(64);
    for (const [one, two] of [
      ["X-Service-Signature", "x-service-signature"],
      ["x-service-signature", "X-SERVICE-SIGNATURE"],
    ]) {
      const time = `X-Service-Timestamp: ${timestamp}`;
      expect(await post([time, `${one}: ${hex}`, `${two}: ${junk}`])).toBe("ok");
      expect(await post([`${one}: ${junk}`, time, `${two}: ${hex}`])).toBe("ok");
      expect(await post([`${one}: ${junk}`, `${two}: ${junk}`, time])).toBe("signature_mismatch");
      expect(await post([`${one}: ${hex}`, `${two}: nonsense`, time])).toBe("malformed_signature");
      expect(await post([time, `${one}: ${hex}`, `x-service-timestamp: ${timestamp}`])).toBe("malformed_timestamp");
      expect(await post([`${one}: ${hex}`, `X-SERVICE-TIMESTAMP: ${timestamp}0`, time])).toBe("malformed_timestamp");
    }
  });
});

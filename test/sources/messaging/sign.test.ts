import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { HmacKey } from "../../../src/sources/hmac-key.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import { NOW, opensslHmac, SECRET, VECTORS } from "./openssl.ts";

const body = Buffer.from('{"a":"ü"}');

describe("signPayload()", () => {
  it.each(VECTORS)("gives openssl's signature: $name (DLV-5)", ({ secret, timestamp, body, signature }) => {
    const encoding = signature.length === 64 ? "hex" : "base64";
    expect(signPayload({ body, secret, timestamp, encoding })).toEqual({
      "x-service-timestamp": timestamp,
      "x-service-signature": signature,
    });
  });

  it("writes each encoding (DLV-12)", () => {
    const mac = opensslHmac(SECRET, String(NOW), body);
    const written = (encoding: "hex" | "HEX" | "base64" | "base64url" | "sha256=hex" | "v1=hex") =>
      signPayload({ body, secret: SECRET, timestamp: NOW, encoding })["x-service-signature"];
    expect(written("hex")).toBe(mac.toString("hex"));
    expect(written("HEX")).toBe(mac.toString("hex").toUpperCase());
    expect(written("base64")).toBe(mac.toString("base64"));
    expect(written("base64url")).toBe(mac.toString("base64url"));
    expect(written("sha256=hex")).toBe(`sha256=${mac.toString("hex")}`);
    expect(written("v1=hex")).toBe(`v1=${mac.toString("hex")}`);
  });

  it("writes the timestamp in ms, in s, or as given (DLV-13)", () => {
    const written = (timestamp: number | string, unit?: "ms" | "s") =>
      signPayload({ body, secret: SECRET, timestamp, ...(unit && { unit }) })["x-service-timestamp"];
    expect(written(NOW + 999)).toBe("1760000000999");
    expect(written(NOW + 999, "s")).toBe("1760000000");
    expect(written("01760000000", "s")).toBe("01760000000");
    expect(signPayload({ body, secret: SECRET })["x-service-timestamp"]).toMatch(/^\d{13}$/);
  });

  it("decodes the secret (DLV-14)", () => {
    const key = Buffer.from("fbff00112233445566778899aabbccddeeff", "hex");
    const mac = opensslHmac(key, String(NOW), body).toString("hex");
    for (const encoding of ["base64", "hex"] as const) {
      const secret = { secret: key.toString(encoding), encoding };
      expect(signPayload({ body, secret, timestamp: NOW })["x-service-signature"]).toBe(mac);
    }
  });

  it("signs with a short secret, because the service has no rule against it, but not with none", () => {
    expect(() => signPayload({ body, secret: "short" })).not.toThrow();
    expect(() => signPayload({ body, secret: "" })).toThrow(/"secret"/);
    expect(() => signPayload({ body, secret: { secret: "xyz", encoding: "hex" } })).toThrow(/not valid hex/);
  });
});

function expected(key: Uint8Array, text: string, body: Uint8Array): string {
  return createHmac("sha256", key).update(text).update(body).digest("hex");
}

describe("HmacKey", () => {
  it.each([1, 16, 63, 64, 65, 128, 200])("agrees with node:crypto on a key of %i bytes", (length) => {
    const key = randomBytes(length);
    const hmac = new HmacKey(key);
    for (const size of [0, 1, 55, 56, 63, 64, 65, 400]) {
      const body = randomBytes(size);
      expect(hmac.digest("1760000000000.", body).toString("hex")).toBe(expected(key, "1760000000000.", body));
    }
  });

  it.each([16_305, 16_306, 16_307, 1_048_576])(
    "agrees on a body of %i bytes, around the limit of the shared space",
    (size) => {
      const key = randomBytes(32);
      const body = randomBytes(size);
      expect(new HmacKey(key).digest("1760000000000.", body).toString("hex")).toBe(
        expected(key, "1760000000000.", body),
      );
    },
  );

  it("takes the text as UTF-8", () => {
    const key = randomBytes(32);
    const body = Buffer.from("body");
    expect(new HmacKey(key).digest("zeit ü €.", body).toString("hex")).toBe(expected(key, "zeit ü €.", body));
  });

  it("keeps keys and messages apart when they take turns", () => {
    const keys = [randomBytes(32), randomBytes(32)];
    const hmacs = keys.map((key) => new HmacKey(key));
    const digests = [400, 10, 300, 0].flatMap((size) => {
      const body = randomBytes(size);
      return hmacs.map((hmac, at) => [hmac.digest("1.", body).toString("hex"), expected(keys[at]!, "1.", body)]);
    });
    for (const [ours, theirs] of digests) expect(ours).toBe(theirs);
  });

  it("leaves the body and the key as they were, and answers with bytes of its own", () => {
    const [key, body] = [Buffer.alloc(32, 1), Buffer.alloc(10, 2)];
    const hmac = new HmacKey(key);
    const first = hmac.digest("1.", body);
    const kept = first.toString("hex");
    hmac.digest("2.", body);
    expect(first.toString("hex")).toBe(kept);
    expect(key.equals(Buffer.alloc(32, 1)) && body.equals(Buffer.alloc(10, 2))).toBe(true);
  });

  it("shows nothing of the key when it is logged", () => {
    const shown = inspect(new HmacKey(Buffer.from("a secret of 16 bytes or more")), { showHidden: true, depth: 9 });
    expect(shown).toBe("HmacKey {}");
  });
});

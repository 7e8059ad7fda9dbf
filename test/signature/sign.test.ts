import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import { signPayload } from "../../src/signature/sign.ts";
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

  it("takes for chosen what it does anyway", () => {
    const chosen = signPayload({
      ...{ body, secret: { secret: SECRET, encoding: "utf8" }, timestamp: NOW, unit: "ms", encoding: "hex" },
    });
    expect(chosen).toEqual(signPayload({ body, secret: SECRET, timestamp: NOW }));
  });

  it("signs with a short secret, because the service has no rule against it, but not with none", () => {
    expect(() => signPayload({ body, secret: "short" })).not.toThrow();
    expect(() => signPayload({ body, secret: "" })).toThrow(/"secret"/);
    expect(() => signPayload({ body, secret: { secret: "xyz", encoding: "hex" } })).toThrow(/not valid hex/);
  });

  it("refuses unknown encodings, units and times", () => {
    const wrong = [{ encoding: "Hex" }, { unit: "us" }, { timestamp: Number.NaN }];
    for (const options of wrong)
      expect(() => signPayload({ body, secret: SECRET, ...(options as object) })).toThrow(/Option "/);
  });
});

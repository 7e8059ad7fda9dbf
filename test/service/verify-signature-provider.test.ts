import { describe, expect, it } from "vitest";
import { KeyringError } from "../../src/errors.ts";
import { type VerifyResult, verifySignature } from "../../src/service/verify-signature.ts";
import { NOW, OTHER_SECRET, SECRET, SIGNED } from "./openssl.ts";

const { body, timestamp, signature } = SIGNED;
const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };

const code = (result: VerifyResult) => (result.ok ? "ok" : result.code);

describe("verifySignature() with a provider", () => {
  it("answers with a promise, and gives the provider the tenant", async () => {
    const tenants: unknown[] = [];
    const secrets = async ({ tenant }: { tenant?: string }) => {
      tenants.push(tenant);
      return tenant === "a" ? { current: { secret: SECRET, apiClientId: "apc_1" } } : undefined;
    };
    const options = { headers, body, secrets, now: NOW };
    expect(code(await verifySignature({ ...options, tenant: "a" }))).toBe("ok");
    expect(code(await verifySignature({ ...options, tenant: "b" }))).toBe("no_secret");
    expect(code(await verifySignature({ ...options, headers: {} }))).toBe("missing_timestamp");
    expect(tenants).toEqual(["a", "b"]);
  });

  it("gives the provider the route beside the tenant", async () => {
    const asked: unknown[] = [];
    const secrets = (context: unknown) => {
      asked.push(context);
      return { current: { secret: SECRET, apiClientId: "apc_1" } };
    };
    const options = { headers, body, secrets, now: NOW };
    expect(code(await verifySignature({ ...options, tenant: "a", route: "/hooks" }))).toBe("ok");
    expect(code(await verifySignature({ ...options, route: "/hooks" }))).toBe("ok");
    expect(asked).toEqual([{ tenant: "a", route: "/hooks" }, { route: "/hooks" }]);
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

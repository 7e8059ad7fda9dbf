import { describe, expect, it } from "vitest";
import { signPayload } from "../../src/signature/sign.ts";
import { verifySignature } from "../../src/signature/verify.ts";

const SECRET = "a-webhook-signing-secret-of-32-b";

describe("verifySignature()", () => {
  it("accepts what signPayload() signed", async () => {
    const body = '{"a":1}';
    const headers = signPayload({ body, secret: SECRET });
    expect(verifySignature({ headers, body, secrets: SECRET })).toMatchObject({ ok: true });
    expect(await verifySignature({ headers, body, secrets: async () => SECRET })).toMatchObject({ ok: true });
    expect(verifySignature({ headers, body: `${body} `, secrets: SECRET })).toEqual({ ok: false, code: "signature_mismatch" });
  });
});

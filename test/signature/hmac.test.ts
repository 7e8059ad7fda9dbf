import { createHmac, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { HmacKey } from "../../src/signature/sign.ts";

function expected(key: Uint8Array, text: string, body: Uint8Array): string {
  return createHmac("sha256", key).update(text).update(body).digest("hex");
}

describe("HmacKey", () => {
  it("gives the digests of RFC 4231, test cases 1, 2 and 6", () => {
    const digest = (key: Buffer, data: string) => new HmacKey(key).digest("", Buffer.from(data)).toString("hex");
    expect(digest(Buffer.alloc(20, 0x0b), "Hi There")).toBe(
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    );
    expect(digest(Buffer.from("Jefe"), "what do ya want for nothing?")).toBe(
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    );
    expect(digest(Buffer.alloc(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First")).toBe(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    );
  });

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

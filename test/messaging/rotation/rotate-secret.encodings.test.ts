/** A service that makes keys of its secrets' texts in another way (DLV-14), a store that says so, and a rotation between them. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { adoptSecret, rotateSecret } from "../../../src/messaging/rotation/index.ts";
import type { Keyring } from "../../../src/sources/keys.ts";
import { storedKeyring } from "../../../src/sources/messaging/keyring-source.ts";
import { verifySignature } from "../../../src/sources/messaging/verify-signature.ts";
import { memorySecrets } from "../../../src/tools/testing/memory-secrets.ts";
import { type Caught, send, startCatcher, tokenOf } from "../emulator/support.ts";
import { failureOf, MINUTE_MS, serviceSecret, startSetting, whileTimePasses } from "./support.ts";

const ENCODINGS = ["utf8", "base64", "hex"] as const;

describe("a secret store with an encoding", () => {
  it.each(ENCODINGS)("verifies a service whose secrets are %s, adopted and rotated (DLV-14, RCV-9)", async (name) => {
    const catcher = await startCatcher();
    const secret = randomBytes(32).toString(name === "hex" ? "hex" : "base64");
    const setting = await startSetting({
      empty: true,
      emulator: {
        deliveryUrl: catcher.url,
        webhookSecret: secret,
        lifecycle: "instant",
        unspecified: { secretEncoding: name },
      },
    });
    const { clock, emulator } = setting;
    const secrets = memorySecrets({ encoding: name, receivers: async () => [] });
    const token = await tokenOf(emulator);
    const verdict = async () => {
      catcher.caught.length = 0;
      await send(emulator, token);
      const delivery = await whileTimePasses(clock, firstOf(catcher.caught));
      return verified(delivery, await storedKeyring(secrets, clock.now()), clock.now());
    };
    await adoptSecret({ kind: "delivery", secrets, secret });
    expect(await verdict()).toMatchObject({ ok: true, matched: { slot: "current" } });
    await rotateSecret({ ...setting.options, secrets });
    expect(await verdict()).toMatchObject({ ok: true });
    expect((await secrets.read("delivery"))?.current).toBe(serviceSecret(setting));
  });

  it.each([
    ["hex", "not hex digits but long enough"],
    ["hex", "ab".repeat(15)],
    ["base64", "not base64: but long enough"],
  ] as const)("refuses to adopt what is no secret of its own: %s, %j (DLV-14)", async (encoding, secret) => {
    const secrets = memorySecrets({ encoding });
    const refused = await failureOf(adoptSecret({ kind: "delivery", secrets, secret }));
    expect(refused).toMatchObject({ name: "SetupError", fields: { option: "secret" } });
    expect(await secrets.read("delivery")).toBeNull();
  });
});

function verified({ headers, raw }: Caught, secrets: Keyring, now: number) {
  return verifySignature({ headers, body: raw, secrets, now, toleranceMs: 10 * MINUTE_MS });
}

async function firstOf(caught: readonly Caught[]): Promise<Caught> {
  for (;;) {
    const [first] = caught;
    if (first !== undefined) return first;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { verifySignature } from "../../../../src/index.ts";
import type { EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { BEGIN, configure, expectSigned, MINUTE, mac, newest, receive, SECRET, stage } from "../delivery-support.ts";
import { type Caught, start, startCatcher } from "../support.ts";

const NEXT = "next-secret-of-the-tests";
const DAY = 86_400_000;

describe("signing of deliveries", () => {
  it("is HMAC-SHA256 over header text, dot and exact bytes, as openssl makes it (DLV-4, DLV-5)", async () => {
    const { emulator, catcher } = await stage();
    await receive(emulator, "grüße");
    const caught = catcher.caught[0]!;
    expect(caught.timestamp).toBe(String(BEGIN));
    expect(caught.signature).toBe(opensslMac(Buffer.from(SECRET), caught));
  });

  it.each([
    ["hex", (digest: Buffer) => digest.toString("hex")],
    ["HEX", (digest: Buffer) => digest.toString("hex").toUpperCase()],
    ["base64", (digest: Buffer) => digest.toString("base64")],
    ["base64url", (digest: Buffer) => digest.toString("base64url")],
    ["sha256=hex", (digest: Buffer) => `sha256=${digest.toString("hex")}`],
    ["v1=hex", (digest: Buffer) => `v1=${digest.toString("hex")}`],
  ] as const)("is written as %s where that is the reading (DLV-12)", async (signatureEncoding, written) => {
    const { emulator, catcher } = await stage({ unspecified: { signatureEncoding } });
    await receive(emulator);
    expect(catcher.caught[0]?.signature).toBe(written(mac(SECRET, catcher.caught[0])));
  });

  it("carries seconds where that is the reading, and signs that text (DLV-13)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { timestampUnit: "s" }, startAt: BEGIN + 1_999 });
    await receive(emulator);
    expect(catcher.caught[0]?.timestamp).toBe(String(BEGIN / 1_000 + 1));
    expectSigned(catcher.caught[0]);
  });

  it.each([
    ["base64", "c2VjcmV0LW9mLXRoZS10ZXN0cw==", Buffer.from("secret-of-the-tests")],
    ["hex", "00ff10ab", Buffer.from([0, 255, 16, 171])],
    ["base64", "not base64!", Buffer.from("not base64!")],
    ["hex", "xyz", Buffer.from("xyz")],
    ["base64", "=", Buffer.from("=")],
  ] as const)("decodes a %s secret %j, and takes the UTF-8 bytes of one that is none (DLV-14)", async (...row) => {
    const [secretEncoding, webhookSecret, key] = row;
    const { emulator, catcher } = await stage({ unspecified: { secretEncoding }, webhookSecret });
    await receive(emulator);
    expectSigned(catcher.caught[0], key);
  });

  it("sends neither header while no secret can sign, though signing is on (DLV-4)", async () => {
    const catcher = await startCatcher();
    const emulator = await start({ unspecified: { secretGeneration: "never" } });
    await configure(emulator, "inbound", { enabled: true, endpointUrl: catcher.url });
    await receive(emulator);
    expect([catcher.caught[0]?.signature, catcher.caught[0]?.timestamp]).toEqual([undefined, undefined]);
  });
});

describe("signing while two secrets are valid", () => {
  const hex = (key: string, caught: Parameters<typeof mac>[1]) => mac(key, caught).toString("hex");

  async function rotated(overlapSigning: "current" | "previous" | "both" | "alternate", more = {}) {
    const { emulator, catcher } = await stage({ unspecified: { overlapSigning, ...more } });
    await configure(emulator, "inbound", { secret: NEXT });
    return { emulator, catcher };
  }

  it("uses the current secret (DLV-16)", async () => {
    const { emulator, catcher } = await rotated("current");
    await receive(emulator);
    expectSigned(catcher.caught[0], NEXT);
  });

  it("uses the previous one where that is the reading, up to its end (DLV-16, WHK-26)", async () => {
    const { emulator, catcher } = await rotated("previous");
    await emulator.clock.advance(DAY - 1);
    await receive(emulator);
    await emulator.clock.advance(1);
    await receive(emulator);
    expectSigned(catcher.caught[0]);
    expectSigned(catcher.caught[1], NEXT);
  });

  it.each(["hex", "base64", "v1=hex"] as const)("signs with both, current first (%s, DLV-16)", async (encoding) => {
    const { emulator, catcher } = await rotated("both", { signatureEncoding: encoding });
    await receive(emulator);
    const caught = catcher.caught[0]!;
    const write = (key: string) =>
      encoding === "base64"
        ? mac(key, caught).toString("base64")
        : `${encoding === "v1=hex" ? "v1=" : ""}${hex(key, caught)}`;
    expect(caught.signature).toBe(`${write(NEXT)}, ${write(SECRET)}`);
    for (const secret of [SECRET, NEXT]) {
      const verdict = verifySignature({ headers: caught.headers, body: caught.raw, secrets: secret, now: BEGIN });
      expect(verdict).toMatchObject({ ok: true });
    }
    await emulator.clock.advance(DAY);
    await receive(emulator);
    expect(catcher.caught[1]?.signature).not.toContain(",");
  });

  it("takes them in turn, attempt by attempt and event by event (DLV-16)", async () => {
    const { emulator, catcher } = await rotated("alternate");
    catcher.answer = 500;
    await receive(emulator);
    await emulator.clock.advance(6 * MINUTE);
    expect(catcher.caught.map((caught) => caught.signature === hex(NEXT, caught))).toEqual([true, false, true]);
    expectSigned(catcher.caught[1]);
    await receive(emulator);
    expectSigned(catcher.caught[3]);
  });

  it("freezes the secret whose turn it was, and another event's is the other one (DLV-16, DLV-17)", async () => {
    const { emulator, catcher } = await rotated("alternate", { retrySignature: "frozen" });
    catcher.answer = 500;
    await receive(emulator);
    await receive(emulator);
    await emulator.clock.advance(MINUTE);
    const keys = catcher.caught.map((caught) => (caught.signature === hex(NEXT, caught) ? "next" : "first"));
    expect(keys).toEqual(["next", "first", "next", "first"]);
  });
});

it("timestamps carry the real time, however far the emulator's was moved (DLV-13)", async () => {
  const { emulator, catcher } = await stage({ timestampClock: "real" });
  catcher.answer = 500;
  const before = Date.now();
  await receive(emulator);
  await emulator.clock.advance(81 * MINUTE);
  expect(catcher.caught).toHaveLength(5);
  for (const caught of catcher.caught) {
    expect(Number(caught.timestamp)).toBeGreaterThanOrEqual(before);
    expect(Number(caught.timestamp)).toBeLessThanOrEqual(Date.now());
  }
});

const FROZEN = { timestampClock: "real", unspecified: { retrySignature: "frozen" } } as const;

/** A first attempt that failed, on a system clock that the test moves. */
async function failedOnce(options: EmulatorOptions) {
  const system = createFakeClock();
  const begun = system.now();
  const { emulator, catcher } = await stage({ ...FROZEN, systemClock: system, ...options });
  catcher.answer = 500;
  await receive(emulator);
  /** How old each attempt's timestamp is for who reads the system's clock as it stood at the first one. */
  const ages = () => {
    for (const caught of catcher.caught) expectSigned(caught);
    return catcher.caught.map((caught) => begun - Number(caught.timestamp));
  };
  return { system, emulator, catcher, ages };
}

describe("a frozen signature and the real time (DLV-17)", () => {
  it("is the first attempt's own text while the emulator's time runs with the real one, whatever the wall clock does", async () => {
    const { system, emulator, catcher } = await failedOnce({ clock: "real" });
    await system.advance(7.3);
    system.set(system.now() - 3_600_000);
    await system.advance(MINUTE);
    await emulator.clock.idle();
    system.set(system.now() + 86_400_000);
    await system.advance(5 * MINUTE);
    await emulator.clock.idle();
    expect(newest(emulator).attempts).toHaveLength(3);
    expect(new Set(catcher.caught.map(({ timestamp }) => timestamp)).size).toBe(1);
    expect(new Set(catcher.caught.map(({ signature }) => signature)).size).toBe(1);
  });

  it("grows older by what the emulator's time is moved ahead", async () => {
    const { emulator, ages } = await failedOnce({ clock: "real" });
    await emulator.clock.advance(81 * MINUTE);
    expect(ages()).toEqual([0, 1, 6, 21, 81].map((minutes) => minutes * MINUTE));
  });

  it("grows older by a speed", async () => {
    const { system, emulator, ages } = await failedOnce({ clock: "x60" });
    await system.advance(1_000);
    await emulator.clock.idle();
    // A second later for the receiver: a minute in all.
    expect(ages()).toEqual([0, 59_000]);
  });
});

/** HMAC-SHA256 over the caught header text and bytes by openssl, in hex. */
function opensslMac(key: Buffer, caught: Caught): string {
  const input = Buffer.concat([Buffer.from(`${caught.timestamp}.`), caught.raw]);
  const keyed = ["-mac", "HMAC", "-macopt", `hexkey:${key.toString("hex")}`];
  const output = execFileSync("openssl", ["dgst", "-sha256", ...keyed], { input }).toString();
  return output.trim().split("= ").at(-1) ?? "";
}

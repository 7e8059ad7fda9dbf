import { createHmac } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { SetupError } from "../../../src/errors.ts";
import { type CompiledKeyring, compileKeyring, type Keyring } from "../../../src/sources/messaging/keyring.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const DAY = 86_400_000;
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `${SECRET}-${index}`);
/** For values that only JavaScript lets through. */
const compile = (keyring: unknown) => compileKeyring(keyring as Keyring, NOW);
const grants = (keyring: CompiledKeyring) =>
  keyring.keys.map((key) => key.grants.map(({ slot, scope, index }) => `${slot} ${scope} ${index}`).join(" "));
const [A = "", B = "", C = "", D = ""] = numbered(4);
const withPrevious = (validUntil: unknown) => ({ current: SECRET, previous: { secret: OTHER_SECRET, validUntil } });

describe("compileKeyring()", () => {
  // More mistakes, with all of their words, are in setup-errors.test.ts.
  it.each<[string, unknown, RegExp]>([
    ["null", null, /"secrets" is missing/],
    ["white space", " \t\n\u00a0              ", /"secrets" holds nothing but white space/],
    ["15 bytes", "123456789012345", /"secrets" is 15 bytes long/],
    ["an empty object", {}, /"secrets.current"/],
    ["no current", { next: SECRET }, /"secrets.current"/],
    ["a misspelled slot", { curent: SECRET }, /Did you mean "current"/],
    ["a misspelled field", { secret: SECRET, apiClientID: "a" }, /Did you mean "apiClientId"/],
    ["15 bytes in hex", { secret: "00".repeat(15), encoding: "hex" }, /"secrets.secret" is 15 bytes/],
    ["hex that ends otherwise", { secret: `${"00".repeat(16)}zz`, encoding: "hex" }, /not valid hex/],
    ["odd hex", { secret: `${"00".repeat(16)}0`, encoding: "hex" }, /not valid hex/],
    ["base64 that ends otherwise", { secret: `${"AAAA".repeat(6)}*`, encoding: "base64" }, /not valid base64/],
    ["only the delivery kind", { delivery: SECRET }, /"secrets.inbound" is missing/],
    ["an empty kind", { inbound: "", delivery: SECRET }, /"secrets.inbound" is an empty text/],
    ["unsigned in a slot", { current: "dangerouslyUnsigned" }, /per kind only/],
    ["unsigned in a kind's slot", { inbound: { current: "dangerouslyUnsigned" }, delivery: SECRET }, /per kind only/],
    ["a previous without end", { current: SECRET, previous: { secret: OTHER_SECRET } }, /"secrets.previous" needs/],
    ["an end that is NaN", withPrevious(Number.NaN), /validUntil"/],
    ["an endless end", withPrevious(Number.POSITIVE_INFINITY), /validUntil"/],
    ["validUntil elsewhere", { current: { secret: SECRET, validUntil: NOW } }, /no option "validUntil"/],
    ["nine in all", { inbound: { current: numbered(8) }, delivery: SECRET }, /at most 8 live secrets/],
  ])("refuses %s, naming the option", (_, keyring, message) => {
    expect(() => compile(keyring)).toThrow(SetupError);
    expect(() => compile(keyring)).toThrow(message);
  });

  it("takes 16 bytes, counted in UTF-8, and 8 live secrets", () => {
    expect(compile("1234567890123456").keys).toHaveLength(1);
    expect(compile("éééééééé").keys).toHaveLength(1);
    expect(compile({ current: numbered(8) }).keys).toHaveLength(8);
    expect(compile({ inbound: { current: numbered(8) }, delivery: { current: numbered(8) } }).keys).toHaveLength(8);
  });

  it.each<[string, unknown, string[]]>([
    [
      "orders keys current, previous, next (RCV-9)",
      { next: A, previous: [{ secret: B, validUntil: NOW + DAY }], current: [C, D] },
      ["current any 0", "current any 1", "previous any 0", "next any 0"],
    ],
    [
      "orders the keys of both kinds together",
      { inbound: { next: A, current: B }, delivery: { next: C, current: D } },
      ["current inbound 0", "current delivery 0", "next inbound 0", "next delivery 0"],
    ],
    [
      "takes a direction that says what its kind says",
      { inbound: { secret: A, direction: "inbound" }, delivery: B },
      ["current inbound 0", "current delivery 0"],
    ],
    [
      "makes one key of equal bytes, however they are written",
      { inbound: A, delivery: { secret: Buffer.from(A).toString("hex"), encoding: "hex" } },
      ["current inbound 0 current delivery 0"],
    ],
  ])("%s", (_, keyring, expected) => {
    expect(grants(compile(keyring))).toEqual(expected);
  });

  it("takes base64 with and without its padding, and nothing behind it (DLV-14)", () => {
    for (const bytes of [16, 17, 18]) {
      const secret = Buffer.alloc(bytes, 0xfb).toString("base64");
      for (const each of [secret, secret.replace(/=+$/, "")]) {
        expect(compile({ secret: each, encoding: "base64" }).keys).toHaveLength(1);
      }
    }
    const split = `${"AAAA".repeat(6)}=${"AAAA".repeat(6)}`;
    expect(() => compile({ secret: split, encoding: "base64" })).toThrow(/not valid base64/);
  });

  it("takes the earliest end there can be, in 2001", () => {
    const previous = { secret: OTHER_SECRET, validUntil: 1e12 };
    expect(compile({ current: SECRET, previous }).warnings).toEqual([expect.stringContaining("has ended")]);
    expect(() => compile({ current: SECRET, previous: { ...previous, validUntil: 1e12 - 1 } })).toThrow(/not seconds/);
  });

  it("gives each kind its direction (RCV-8)", () => {
    const keyring = compile({ inbound: SECRET, delivery: { current: OTHER_SECRET } });
    expect(keyring.keys.map((key) => key.grants[0]?.direction)).toEqual(["inbound", "outbound"]);
  });

  it("leaves an ended previous secret out, uncounted but with a warning", () => {
    const previous = { secret: OTHER_SECRET, validUntil: NOW };
    const keyring = compile({ current: numbered(8), previous });
    expect(keyring.keys).toHaveLength(8);
    expect(keyring.warnings).toEqual([expect.stringContaining('"secrets.previous" has ended')]);
    expect(compile({ current: SECRET, previous: { ...previous, validUntil: NOW + 1 } }).keys).toHaveLength(2);
    expect(compile({ current: SECRET, previous: { ...previous, validUntil: NOW + 8 * DAY } }).keys).toHaveLength(2);
  });

  it("refuses an unscoped secret only among several API clients", () => {
    const a = { secret: `${SECRET}-a`, apiClientId: "a" };
    const b = { secret: `${SECRET}-b`, apiClientId: "b" };
    expect(() => compile({ current: [a, b, SECRET] })).toThrow(/"secrets.current\[2\]" has no apiClientId/);
    expect(() => compile({ inbound: { current: [a, b] }, delivery: SECRET })).toThrow(
      /"secrets.delivery" has no apiClientId/,
    );
    expect(() => compile({ current: [a, b], next: { secret: SECRET, direction: "inbound" } })).toThrow(/apiClientId/);
    expect(compile({ current: [a, b] }).keys).toHaveLength(2);
    expect(compile({ current: [a, SECRET] }).keys).toHaveLength(2);
  });

  it("takes unsigned per kind, with a warning each", () => {
    const one = compile({ inbound: "dangerouslyUnsigned", delivery: SECRET });
    expect([...one.unsigned]).toEqual(["inbound"]);
    expect(one.keys).toHaveLength(1);
    expect(one.warnings).toEqual([expect.stringMatching(/"secrets.inbound" is "dangerouslyUnsigned".*forge inbound/)]);
    const both = compile({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" });
    expect(both.keys).toHaveLength(0);
    expect(both.warnings).toHaveLength(2);
    expect(compile(SECRET).unsigned.size).toBe(0);
  });

  it.each<[string, unknown, RegExp]>([
    ["a line break of a file", `${SECRET}\n`, /white space/],
    [
      "a previous equal to current",
      { current: SECRET, previous: { secret: SECRET, validUntil: NOW + 1 } },
      /never ends/,
    ],
    [
      "a secret of two clients",
      { current: ["a", "b"].map((apiClientId) => ({ secret: SECRET, apiClientId })) },
      /Two API clients share/,
    ],
  ])("warns of %s", (_, keyring, message) => {
    expect(compile(keyring).warnings).toEqual([expect.stringMatching(message)]);
  });

  it("takes a short secret only where it is said so, and warns of it (WHK-24)", () => {
    const short = { secret: "elevenbytes", dangerouslyShort: true };
    expect(compile(short).keys).toHaveLength(1);
    expect(compile({ current: short }).warnings).toEqual([
      'Option "secrets.current" has fewer than 16 bytes and can be guessed.',
    ]);
    expect(compile({ secret: SECRET, dangerouslyShort: true }).warnings).toEqual([]);
    for (const dangerouslyShort of [false, undefined])
      expect(() => compile({ secret: "elevenbytes", dangerouslyShort })).toThrow(/is 11 bytes long/);
    expect(() => compile({ secret: "", dangerouslyShort: true })).toThrow(/is an empty text/);
    expect(() => compile({ secret: SECRET, dangerouslyShort: "yes" })).toThrow(
      /dangerouslyShort" must be true or false/,
    );
  });

  it("warns of no previous secret that is replaced where it was", () => {
    const validUntil = NOW + 1;
    const warnings = (keyring: unknown) => compile(keyring).warnings;
    const previous = { secret: OTHER_SECRET, validUntil };
    expect(warnings({ current: SECRET, previous })).toEqual([]);
    expect(warnings({ current: SECRET, previous, next: OTHER_SECRET })).toEqual([]);
    expect(warnings({ inbound: { current: SECRET, previous }, delivery: OTHER_SECRET })).toEqual([]);
    const [a, b] = ["a", "b"].map((apiClientId) => ({ secret: `${SECRET}-${apiClientId}`, apiClientId }));
    const moved = { ...a, apiClientId: "b", validUntil };
    expect(warnings({ current: [a, b], previous: moved })).toEqual([expect.stringContaining("Two API clients share")]);
  });

  it("keeps the version of a set from release to release: processes tell each other", () => {
    const previous = { secret: OTHER_SECRET, validUntil: NOW + 1 };
    const sets = [SECRET, { current: SECRET, previous }, { inbound: "dangerouslyUnsigned", delivery: SECRET }];
    expect(sets.map((set) => compile(set).version)).toMatchInlineSnapshot(`
      [
        "76cb2ae8037b7a9f",
        "e1a90c5bec758bbf",
        "21b6b76b5c67e76f",
      ]
    `);
  });

  it("names the set by a version that changes with it and is not a plain hash of a secret", () => {
    const sets = [
      SECRET,
      OTHER_SECRET,
      { secret: SECRET, direction: "inbound" },
      { secret: SECRET, apiClientId: "a" },
      { current: SECRET, next: OTHER_SECRET },
      { current: OTHER_SECRET, next: SECRET },
      { current: SECRET, previous: { secret: OTHER_SECRET, validUntil: NOW + 1 } },
      { current: SECRET, previous: { secret: OTHER_SECRET, validUntil: NOW + 2 } },
      { inbound: "dangerouslyUnsigned", delivery: SECRET },
      { inbound: SECRET, delivery: "dangerouslyUnsigned" },
    ];
    const versions = sets.map((set) => compile(set).version);
    expect(new Set(versions).size).toBe(sets.length);
    expect(versions.every((version) => /^[0-9a-f]{16}$/.test(version))).toBe(true);
    expect(compile({ current: [SECRET] }).version).toBe(versions[0]);
  });

  it("names each secret, the same wherever it stands and from release to release", () => {
    const nameOf = (secret: string) =>
      createHmac("sha256", secret).update("oncehook signer").digest("hex").slice(0, 16);
    const { keys } = compile({ inbound: { current: SECRET, next: OTHER_SECRET }, delivery: OTHER_SECRET });
    expect(keys.map(({ signer }) => signer)).toEqual([nameOf(OTHER_SECRET), nameOf(SECRET)].reverse());
  });

  it("shows no secret when it is printed, nor in an error", () => {
    const keyring = compile({ current: SECRET, previous: { secret: OTHER_SECRET, validUntil: NOW + 1 } });
    const printed = inspect(keyring, { depth: 10, showHidden: true }) + JSON.stringify(keyring);
    for (const secret of [SECRET, OTHER_SECRET]) {
      for (const form of ["utf8", "hex", "base64"] as const)
        expect(printed).not.toContain(Buffer.from(secret).toString(form));
    }
    const marked = "marked-secret!!";
    for (const wrong of [
      marked,
      { current: marked },
      { secret: marked, encoding: "hex" },
      { secret: marked, encoding: "base64" },
    ]) {
      let error: unknown;
      try {
        compile(wrong);
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(SetupError);
      expect(inspect(error, { depth: 10 })).not.toContain(marked);
    }
  });

  it("keeps the key bytes as they are", () => {
    const secret = { secret: Buffer.from(SECRET).toString("base64"), encoding: "base64" };
    const mac = createHmac("sha256", SECRET).update("x").digest("hex");
    for (const each of [SECRET, secret]) {
      const key = compile(each).keys[0];
      expect(key?.hmac.digest("x", new Uint8Array()).toString("hex")).toBe(mac);
    }
  });
});

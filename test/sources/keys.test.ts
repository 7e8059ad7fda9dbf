import { createHmac } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { createVerifier, SetupError } from "../../src/index.ts";
import { github, standardWebhooks } from "../../src/sources/index.ts";
import {
  type Claims,
  compileKeys,
  covering,
  type Grant,
  type KeyringContext,
  SourceKey,
  type SourceKeys,
} from "../../src/sources/keys.ts";
import { STRICT_RULES } from "../../src/sources/secret.ts";
import { fixtures, incomingOf, signedRequest } from "../../src/tools/testing/index.ts";
import { recordedLog } from "../receiver/bench.ts";
import { NOW, OTHER_SECRET, SECRET } from "./messaging/openssl.ts";

const DAY = 86_400_000;
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `${SECRET}-${index}`);
const compile = (keyring: unknown, context?: KeyringContext) => compileKeys(keyring, STRICT_RULES, NOW, context);
const named = ({ slot, tenant, kind, index }: Grant) =>
  `${slot} ${kind ?? "any"}${tenant === null ? "" : ` of ${tenant}`} ${index}`;
const grants = ({ keys }: SourceKeys) => keys.map((key) => key.grants.map(named).join(" "));
const [A = "", B = "", C = "", D = ""] = numbered(4);
const withPrevious = (validUntil: unknown) => ({ current: SECRET, previous: { secret: OTHER_SECRET, validUntil } });

describe("compileKeys()", () => {
  // More mistakes, with all of their words, are in setup-errors.test.ts.
  it.each<[string, unknown, RegExp]>([
    ["null", null, /"secrets" is missing/],
    ["white space", " \t\n\u00a0              ", /"secrets" holds nothing but white space/],
    ["15 bytes", "123456789012345", /"secrets" is 15 bytes long/],
    ["an empty object", {}, /"secrets.current"/],
    ["no current", { next: SECRET }, /"secrets.current"/],
    ["a misspelled slot", { curent: SECRET }, /Did you mean "current"/],
    ["a misspelled field", { secret: SECRET, tenantt: "a" }, /Did you mean "tenant"/],
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
      "takes a secret whose kind is that of its keyring",
      { inbound: { secret: A, kind: "inbound" }, delivery: B },
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

  it("limits the secrets of each kind to that kind (RCV-8)", () => {
    const keyring = compile({ inbound: SECRET, delivery: { current: OTHER_SECRET } });
    expect(keyring.keys.map((key) => key.grants[0]?.kind)).toEqual(["inbound", "delivery"]);
  });

  it("names whose events a secret signs, and of which kind", () => {
    const both = { secret: A, tenant: "a", kind: "inbound" };
    expect(grants(compile({ current: [both, { secret: B, tenant: "b" }] }))).toEqual([
      "current inbound of a 0",
      "current any of b 1",
    ]);
  });

  it("makes one key of the current secret of a kind that is the previous one of the other (RCV-9)", () => {
    const validUntil = NOW + DAY;
    const delivery = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil } };
    const { keys } = compile({ inbound: SECRET, delivery });
    expect(keys.map((key) => key.grants.map(named))).toEqual([
      ["current inbound 0", "previous delivery 0"],
      ["current delivery 0"],
    ]);
    expect(keys[0]?.slot).toBe("current");
    expect(keys[0]?.validUntil).toBe(Number.POSITIVE_INFINITY);
    expect(keys[0]?.grants.map((grant) => grant.validUntil)).toEqual([Number.POSITIVE_INFINITY, validUntil]);
  });

  it("leaves an ended previous secret out, uncounted but with a warning", () => {
    const previous = { secret: OTHER_SECRET, validUntil: NOW };
    const keyring = compile({ current: numbered(8), previous });
    expect(keyring.keys).toHaveLength(8);
    expect(keyring.warnings).toEqual([expect.stringContaining('"secrets.previous" has ended')]);
    expect(compile({ current: SECRET, previous: { ...previous, validUntil: NOW + 1 } }).keys).toHaveLength(2);
    expect(compile({ current: SECRET, previous: { ...previous, validUntil: NOW + 8 * DAY } }).keys).toHaveLength(2);
  });

  it("refuses a secret without a tenant only among those of two tenants", () => {
    const a = { secret: `${SECRET}-a`, tenant: "a" };
    const b = { secret: `${SECRET}-b`, tenant: "b" };
    for (const nameless of [SECRET, { secret: SECRET, tenant: null }])
      expect(() => compile({ current: [a, b, nameless] })).toThrow(
        /"secrets.current\[2\]" has no tenant, while other secrets name 2 tenants: give each secret its tenant/,
      );
    expect(() => compile({ inbound: { current: [a, b] }, delivery: SECRET })).toThrow(
      /"secrets.delivery" has no tenant/,
    );
    expect(() => compile({ current: [a, b], next: { secret: SECRET, kind: "inbound" } })).toThrow(
      /"secrets.next" has no/,
    );
    expect(compile({ current: [a, b] }).keys).toHaveLength(2);
    expect(compile({ current: [a, SECRET] }).keys).toHaveLength(2);
    expect(grants(compile({ inbound: "dangerouslyUnsigned", delivery: { current: [a, b] } }))).toHaveLength(3);
  });

  it("takes unsigned per kind, with a warning each", () => {
    const one = compile({ inbound: "dangerouslyUnsigned", delivery: SECRET });
    expect(grants(one)).toEqual(["current delivery 0", "unsigned inbound 0"]);
    expect(one.keys.map(({ isUnsigned, signer }) => [isUnsigned, signer])).toEqual([
      [false, expect.stringMatching(/^[0-9a-f]{16}$/)],
      [true, "unsigned"],
    ]);
    expect(one.warnings).toEqual([expect.stringMatching(/"secrets.inbound" is "dangerouslyUnsigned".*forge inbound/)]);
    const both = compile({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" });
    expect(grants(both)).toEqual(["unsigned inbound 0 unsigned delivery 0"]);
    expect(both.warnings).toEqual([
      expect.stringContaining("forge inbound"),
      expect.stringContaining("forge delivery"),
    ]);
    expect(compile(SECRET).keys.some(({ isUnsigned }) => isUnsigned)).toBe(false);
    expect(compile({ inbound: "dangerouslyUnsigned", delivery: { current: numbered(8) } }).keys).toHaveLength(9);
  });

  it("takes no signature for one of an unsigned kind, not even that of an empty key", () => {
    const [unsigned] = compile({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" }).keys;
    const ofNothing = createHmac("sha256", "").update("x").digest();
    expect(unsigned?.signed(ofNothing, "sha256", "x")).toBe(false);
  });

  it.each<[string, unknown, RegExp]>([
    ["a line break of a file", `${SECRET}\n`, /white space/],
    [
      "a previous equal to current",
      { current: SECRET, previous: { secret: SECRET, validUntil: NOW + 1 } },
      /never ends/,
    ],
    [
      "a secret of two tenants",
      { current: ["a", "b"].map((tenant) => ({ secret: SECRET, tenant })) },
      /Two tenants share/,
    ],
  ])("warns of %s", (_, keyring, message) => {
    expect(compile(keyring).warnings).toEqual([expect.stringMatching(message)]);
  });

  it("takes a short secret only where it is said so, and warns of it (WHK-24)", () => {
    const short = { secret: "elevenbytes", dangerouslyShort: true };
    expect(compile(short).keys).toHaveLength(1);
    expect(compile({ current: short }).warnings).toEqual([
      'Option "secrets.current.secret" has fewer than 16 bytes and can be guessed.',
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
    const [a, b] = ["a", "b"].map((tenant) => ({ secret: `${SECRET}-${tenant}`, tenant }));
    const moved = { ...a, tenant: "b", validUntil };
    expect(warnings({ current: [a, b], previous: moved })).toEqual([expect.stringContaining("Two tenants share")]);
  });

  it("keeps the version of a set from release to release: processes tell each other", () => {
    const previous = { secret: OTHER_SECRET, validUntil: NOW + 1 };
    const sets = [SECRET, { current: SECRET, previous }, { inbound: "dangerouslyUnsigned", delivery: SECRET }];
    expect(sets.map((set) => compile(set).version)).toMatchInlineSnapshot(`
      [
        "7680b5af31317944",
        "225afbe17ac468e0",
        "48ffaee1cf7d0d79",
      ]
    `);
  });

  it("names the set by a version that changes with it and is not a plain hash of a secret", () => {
    const sets = [
      SECRET,
      OTHER_SECRET,
      { secret: SECRET, kind: "inbound" },
      { secret: SECRET, tenant: "a" },
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
      expect(Buffer.from(key?.hmac("sha256", "x") ?? []).toString("hex")).toBe(mac);
    }
  });
});

describe("compileKeys() for a tenant", () => {
  const ofA = (keyring: unknown) => () => compile(keyring, { tenant: "a" });
  const named = { secret: SECRET, tenant: "a" };

  it.each<[string, unknown, string, RegExp]>([
    [
      "a plain secret",
      SECRET,
      "secrets",
      /return \{ secret, tenant: "…" \}.*or tenant: null if one secret signs for all/,
    ],
    ["a secret of a kind", { inbound: SECRET, delivery: named }, "secrets.inbound", /does not say whose it is/],
    [
      "a previous secret",
      { current: named, previous: { secret: OTHER_SECRET, validUntil: NOW + 1 } },
      "secrets.previous",
      /does not say whose it is/,
    ],
    ["a next secret", { current: named, next: [OTHER_SECRET] }, "secrets.next[0]", /does not say whose it is/],
    [
      "an unsigned kind",
      { inbound: "dangerouslyUnsigned", delivery: named },
      "secrets.inbound",
      /could be any tenant's/,
    ],
  ])("refuses %s that does not say whose it is, with the fix", (_, keyring, option, message) => {
    expect(ofA(keyring)).toThrow(SetupError);
    expect(ofA(keyring)).toThrow(
      expect.objectContaining({ code: "invalid_secret", fields: { option }, message: expect.stringMatching(message) }),
    );
    expect(() => compile(keyring, { route: "a" })).not.toThrow();
  });

  it("takes secrets that name a tenant, or say that they are for all", () => {
    expect(grants(ofA(named)())).toEqual(["current any of a 0"]);
    expect(grants(ofA({ secret: SECRET, tenant: null })())).toEqual(["current any 0"]);
    expect(grants(ofA({ current: named, next: { secret: OTHER_SECRET, tenant: null } })())).toHaveLength(2);
    // A look-up may find a tenant by another name than the request's.
    expect(grants(ofA({ secret: SECRET, tenant: "account 5" })())).toEqual(["current any of account 5 0"]);
  });
});

describe("covering()", () => {
  /** The last ones do not say all, as an event of a type to come may (RCV-11). */
  const EVENTS = {
    "a inbound": { tenant: "a", kind: "inbound" },
    "a delivery": { tenant: "a", kind: "delivery" },
    "b inbound": { tenant: "b", kind: "inbound" },
    "b delivery": { tenant: "b", kind: "delivery" },
    a: { tenant: "a" },
    inbound: { kind: "inbound" },
    nothing: {},
  } satisfies Record<string, Claims>;
  const ALL = Object.keys(EVENTS);
  const a = { secret: SECRET, tenant: "a" };
  const b = { secret: SECRET, tenant: "b" };
  const mac = createHmac("sha256", SECRET).update("x").digest();
  /** The events that SECRET covers, or the unsigned kinds of a keyring without it. */
  const covered = (keyring: unknown) => {
    const { keys } = compile(keyring);
    const key = keys.find((each) => each.signed(mac, "sha256", "x")) ?? keys.find(({ isUnsigned }) => isUnsigned);
    return Object.entries(EVENTS)
      .filter(([, claims]) => covering(key?.grants ?? [], claims, NOW) !== null)
      .map(([name]) => name);
  };

  it.each<[string, unknown, string[]]>([
    ["a secret without limits", SECRET, ALL],
    ["a tenant's secret", a, ["a inbound", "a delivery", "a", "inbound", "nothing"]],
    [
      "a secret of one kind",
      { secret: SECRET, kind: "inbound" },
      ["a inbound", "b inbound", "a", "inbound", "nothing"],
    ],
    [
      "the inbound keyring",
      { inbound: SECRET, delivery: OTHER_SECRET },
      ["a inbound", "b inbound", "a", "inbound", "nothing"],
    ],
    ["the delivery keyring", { inbound: OTHER_SECRET, delivery: SECRET }, ["a delivery", "b delivery", "a", "nothing"]],
    ["a tenant's secret of one kind", { ...a, kind: "delivery" }, ["a delivery", "a", "nothing"]],
    ["one secret of both kinds", { inbound: SECRET, delivery: SECRET }, ALL],
    ["one secret of two tenants", { current: [a, b] }, ALL],
    [
      "one secret of tenant a inbound and of tenant b delivery",
      { inbound: a, delivery: b },
      ["a inbound", "b delivery", "a", "inbound", "nothing"],
    ],
    [
      "an unsigned kind",
      { inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" },
      ["a inbound", "a delivery", "b inbound", "b delivery", "inbound"],
    ],
  ])("lets %s vouch only for its events (RCV-8)", (_, keyring, expected) => {
    expect(covered(keyring)).toEqual(expected);
  });

  it("lets an unsigned kind vouch for events that say that they are of it", () => {
    const [, unsigned] = compile({ inbound: "dangerouslyUnsigned", delivery: SECRET }).keys;
    const grantFor = (claims: Claims) => covering(unsigned?.grants ?? [], claims, NOW);
    expect(grantFor({ tenant: "a", kind: "inbound" })).toMatchObject({
      slot: "unsigned",
      kind: "inbound",
      tenant: null,
    });
    expect([grantFor({ kind: "delivery" }), grantFor({ tenant: "a" }), grantFor({})]).toEqual([null, null, null]);
  });

  it("ends one grant of a secret without the other: current of a kind, previous of the other (RCV-9)", () => {
    const delivery = { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1000 } };
    const [key] = compile({ inbound: SECRET, delivery }).keys;
    const slots = [NOW + 999, NOW + 1000].map((now) =>
      ["inbound", "delivery"].map((kind) => covering(key?.grants ?? [], { kind }, now)?.slot ?? null),
    );
    expect(slots).toEqual([
      ["current", "previous"],
      ["current", null],
    ]);
  });

  it("limits a previous secret as much as a current one, and ends it", () => {
    const previous = { secret: SECRET, tenant: "a", kind: "inbound", validUntil: NOW + 1000 };
    const key = compile({ current: OTHER_SECRET, previous }).keys[1];
    const slotFor = (claims: Claims, now = NOW) => covering(key?.grants ?? [], claims, now)?.slot ?? null;
    expect(slotFor({ tenant: "a", kind: "inbound" })).toBe("previous");
    expect(slotFor({ tenant: "b", kind: "inbound" })).toBeNull();
    expect(slotFor({ tenant: "a", kind: "delivery" })).toBeNull();
    expect(slotFor({}, NOW + 999)).toBe("previous");
    expect(slotFor({}, NOW + 1000)).toBeNull();
  });

  it("names the first of several grants that cover an event, in the order of the slots", () => {
    const previous = { secret: SECRET, validUntil: NOW + 1000 };
    const [key] = compile({ next: SECRET, current: [OTHER_SECRET, SECRET], previous }).keys.slice(1);
    expect(covering(key?.grants ?? [], {}, NOW)).toMatchObject({ slot: "current", index: 1 });
  });

  it("covers nothing without a grant", () => {
    expect(covering([], {}, NOW)).toBeNull();
  });
});

describe("SourceKey.signedEd25519()", () => {
  // The second vector of RFC 8032, section 7.1: the message is one byte.
  const publicKey = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
  const signature =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
  const validUntil = Number.POSITIVE_INFINITY;
  const grant: Grant = { slot: "current", index: 0, tenant: null, kind: null, validUntil };
  const keyOf = (hex: string) => new SourceKey(Buffer.from(hex, "hex"), [grant]);
  const signed = Buffer.from(signature, "hex");

  it("verifies the parts, one after the other", () => {
    const key = keyOf(publicKey);
    expect(key.signedEd25519(signed, "r")).toBe(true);
    expect(key.signedEd25519(signed, "", Buffer.from("r"), new Uint8Array())).toBe(true);
    expect(key.signedEd25519(signed, "r", "r")).toBe(false);
    expect(key.signedEd25519(signed, "s")).toBe(false);
  });

  it("refuses another signature, and one of another length", () => {
    const key = keyOf(publicKey);
    const other = Buffer.from(signed);
    other[0] = 0;
    for (const wrong of [other, signed.subarray(1), new Uint8Array()])
      expect(key.signedEd25519(wrong, "r")).toBe(false);
  });

  it("verifies nothing with what is not a public key", () => {
    for (const hex of ["00".repeat(32), publicKey.slice(2), `${publicKey}00`])
      expect(keyOf(hex).signedEd25519(signed, "r")).toBe(false);
  });
});

describe("the option secrets of a source", () => {
  const current = "the-secret-in-use";
  const replaced = (validUntil: unknown) => ({ current, previous: { secret: "a replaced secret", validUntil } });

  it.each<readonly [string, string, unknown, RegExp]>([
    ["a list", "invalid_secret", [current], /"secrets" is a list: several secrets that are in use go into \{ current/],
    ["no secret", "invalid_secret", undefined, /"secrets" is missing: pass the webhook signing secret/],
    ["an empty text", "invalid_secret", "", /"secrets" is an empty text: look whether its environment variable/],
    ["blanks", "invalid_secret", "  ", /"secrets" holds nothing but white space/],
    ["a number", "invalid_secret", { current: 5 }, /"secrets.current" must be a secret/],
    ["no current secret", "invalid_secret", { current: [] }, /"secrets.current" is an empty list: without a secret/],
    ["an empty next one", "invalid_secret", { current, next: [current, ""] }, /"secrets.next\[1\]" is an empty text/],
    ["a misspelt slot", "invalid_option", { current, nxt: current }, /Did you mean "next"/],
    ["nine secrets", "invalid_option", { current: numbered(9) }, /at most 8 live secrets/],
    [
      "a kind where there is none",
      "invalid_option",
      { secret: current, kind: "inbound" },
      /this source has one kind of events/,
    ],
    ["the word for unsigned kinds", "invalid_secret", "dangerouslyUnsigned", /This source has no unsigned webhooks/],
    ["a replaced one as a text", "invalid_secret", { current, previous: current }, /needs \{ secret, validUntil \}/],
    ["a replaced one without an end", "invalid_secret", replaced(undefined), /keep working after it leaked/],
    ["an end in seconds", "invalid_option", replaced(1_760_000_000), /epoch milliseconds \(not seconds\)/],
    ["an end that never comes", "invalid_option", replaced(Number.POSITIVE_INFINITY), /epoch milliseconds/],
    ["an end in nine days", "invalid_option", replaced(Date.now() + 9 * DAY), /at most 8 days ahead/],
  ])("refuses %s", (_, code, secrets, message) => {
    const make = () => createVerifier({ source: github({ secrets: secrets as never }) });
    expect(make).toThrow(SetupError);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  it("takes a short secret, as its provider may make it, and warns of it", () => {
    const { logger, log } = recordedLog();
    createVerifier({ source: github({ secrets: "elevenbytes" }), logger });
    expect(log.map(({ message }) => message)).toEqual(['Option "secrets" has fewer than 16 bytes and can be guessed.']);
  });

  it("counts equal secrets once", () => {
    expect(() => createVerifier({ source: github({ secrets: { current: Array(9).fill(current) } }) })).not.toThrow();
  });

  it.each([
    ["whsec_no base64", /"secrets" must be base64/],
    ["whsec_", /"secrets" holds no bytes/],
  ])("refuses %j where it must be base64", (secrets, message) => {
    expect(() => createVerifier({ source: standardWebhooks({ secrets }) })).toThrow(message);
  });

  it("accepts what a replaced secret signed until its end, and warns of one that has ended and of white space", async () => {
    const { logger, log } = recordedLog();
    const verdict = async (validUntil: number) => {
      const verify = createVerifier({ source: github({ secrets: replaced(validUntil) as never }), logger });
      const signed = signedRequest(fixtures.github(), { source: "github", secret: "a replaced secret" });
      return (await verify(incomingOf(signed))).ok;
    };
    expect([await verdict(Date.now() + DAY), log]).toEqual([true, []]);
    expect(await verdict(Date.now() - DAY)).toBe(false);
    createVerifier({ source: github({ secrets: `${current}\n` }), logger });
    expect(log.map(({ message }) => message)).toEqual([
      expect.stringContaining('"secrets.previous" has ended and is ignored'),
      expect.stringContaining("white space, which is part of the secret"),
    ]);
  });
});

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { compileKeyring, type Keyring, type Voucher } from "../../../src/sources/messaging/keyring.ts";
import { signPayload } from "../../../src/sources/messaging/sign.ts";
import {
  checkAge,
  checkHeaders,
  DEFAULT_TOLERANCE,
  matchSignature,
  matchUnsigned,
  parseCandidates,
  parseTimestamp,
  type SignatureEncoding,
  scopeCovers,
  scopeOf,
  signatureEncodingOption,
  timestampFormatOption,
  toleranceOption,
  type VouchedFields,
  vouchingMatch,
} from "../../../src/sources/messaging/verify.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const policy = { tolerance: DEFAULT_TOLERANCE };
const body = "{}";

/** Whether any grant of the key vouches for the event. */
const vouchesFor = (key: Voucher, event: VouchedFields) =>
  vouchingMatch({ slot: "current", scope: "any", index: 0, key }, event) !== null;

function match(secrets: Keyring, secret = SECRET, now = NOW) {
  const checked = checkHeaders(signPayload({ body, secret, timestamp: NOW }), policy, NOW);
  if (!checked.ok) throw new Error(checked.code);
  return matchSignature(checked, body, compileKeyring(secrets, NOW), now);
}

describe("checkHeaders()", () => {
  it("hands on the timestamp's text as received and 32-byte candidates", () => {
    const headers = signPayload({ body, secret: SECRET, timestamp: NOW, unit: "s" });
    const checked = checkHeaders(headers, policy, NOW);
    expect(checked).toMatchObject({ ok: true, timestampText: "1760000000", timestamp: NOW });
    expect(checked.ok && checked.candidates.map((each) => each.length)).toEqual([32]);
  });

  it("judges the form of both headers before the age", () => {
    const headers = { "x-service-timestamp": "1000000000", "x-service-signature": "junk" };
    expect(checkHeaders(headers, policy, NOW)).toEqual({ ok: false, code: "malformed_signature" });
    const well = { ...headers, "x-service-signature": "0".repeat(64) };
    expect(checkHeaders(well, policy, NOW)).toEqual({ ok: false, code: "timestamp_too_old" });
  });
});

describe("the grants of a key", () => {
  const events = {
    "inbound a": { direction: "inbound", apiClientId: "a" },
    "inbound b": { direction: "inbound", apiClientId: "b" },
    "outbound a": { direction: "outbound", apiClientId: "a" },
    "outbound b": { direction: "outbound", apiClientId: "b" },
    "unknown a": { apiClientId: "a" },
    "sideways a": { direction: "sideways", apiClientId: "a" },
    "null a": { direction: null, apiClientId: "a" },
    "odd a": { direction: ["inbound"], apiClientId: "a" },
    nothing: {},
  };
  /** State neither direction, as a type to come may (RCV-11). */
  const undirected = ["unknown a", "sideways a", "null a", "nothing"];
  const a = { secret: SECRET, apiClientId: "a" };
  const b = { secret: SECRET, apiClientId: "b" };
  const all = Object.keys(events);

  it.each<[string, Keyring, string[]]>([
    ["an unscoped secret", SECRET, all],
    ["an inbound secret", { secret: SECRET, direction: "inbound" }, ["inbound a", "inbound b", ...undirected]],
    ["the inbound kind", { inbound: SECRET, delivery: OTHER_SECRET }, ["inbound a", "inbound b", ...undirected]],
    ["the delivery kind", { inbound: OTHER_SECRET, delivery: SECRET }, ["outbound a", "outbound b", ...undirected]],
    ["both kinds by one secret", { inbound: SECRET, delivery: SECRET }, all.filter((each) => each !== "odd a")],
    ["client a", a, all.filter((each) => !each.endsWith(" b"))],
    ["client a, outbound", { ...a, direction: "outbound" }, ["outbound a", ...undirected]],
    ["two clients by one secret", { current: [a, b] }, all],
    [
      "client a inbound and client b outbound by one secret",
      { inbound: a, delivery: b },
      ["inbound a", "outbound b", ...undirected],
    ],
  ])("lets %s vouch only for its events (RCV-8)", (_, secrets, expected) => {
    const key = match(secrets)?.key;
    const vouched = Object.entries(events).filter(([, event]) => key && vouchesFor(key, event));
    expect(vouched.map(([name]) => name)).toEqual(expected);
  });
});

describe("matchSignature()", () => {
  it("names scopes without ids", () => {
    const scope = (secrets: Keyring) => match(secrets)?.scope;
    expect(scope(SECRET)).toBe("any");
    expect(scope({ inbound: SECRET, delivery: OTHER_SECRET })).toBe("inbound");
    expect(scope({ inbound: OTHER_SECRET, delivery: SECRET })).toBe("delivery");
    expect(scope({ secret: SECRET, apiClientId: "client-17" })).toBe("client");
  });

  it("ends one grant of a secret without the other: current of a kind, previous of the other (RCV-9)", () => {
    const secrets = {
      inbound: SECRET,
      delivery: { current: OTHER_SECRET, previous: { secret: SECRET, validUntil: NOW + 1000 } },
    };
    const before = match(secrets, SECRET, NOW + 999);
    const after = match(secrets, SECRET, NOW + 1000);
    const slots = [before, after].map((each) =>
      ["inbound", "outbound"].map((direction) => each && vouchingMatch(each, { direction })?.slot),
    );
    expect(slots).toEqual([
      ["current", "previous"],
      ["current", undefined],
    ]);
    expect(after && vouchesFor(after.key, { direction: "outbound" })).toBe(false);
  });

  it("limits a previous secret as much as a current one", () => {
    const previous = { secret: SECRET, direction: "inbound", validUntil: NOW + 1000 } as const;
    const key = match({ current: OTHER_SECRET, previous })?.key;
    expect(key && vouchesFor(key, { direction: "inbound" })).toBe(true);
    expect(key && vouchesFor(key, { direction: "outbound" })).toBe(false);
  });

  it("matches nothing of an empty keyring", () => {
    expect(match({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" })).toBeNull();
  });
});

describe("matchUnsigned()", () => {
  const half = compileKeyring({ inbound: "dangerouslyUnsigned", delivery: SECRET }, NOW);
  const both = compileKeyring({ inbound: "dangerouslyUnsigned", delivery: "dangerouslyUnsigned" }, NOW);

  it("names the secret that matched, also when one of its places has ended", () => {
    const previous = { secret: SECRET, validUntil: NOW + 1_000 };
    const both = { current: SECRET, previous };
    const [key] = compileKeyring(both, NOW).keys;
    const names = [match(both), match(both, SECRET, NOW + 1_000)].map((found) => found?.key.signer);
    expect(names).toEqual([key?.signer, key?.signer]);
    expect(match(both, SECRET, NOW + 1_000)?.key.grants).toHaveLength(1);
  });

  it("vouches only for events that state a direction of an unsigned kind", () => {
    const found = matchUnsigned({}, half);
    expect(found).toMatchObject({ slot: "unsigned", scope: "inbound", index: 0, key: { signer: "unsigned" } });
    expect(found && vouchesFor(found.key, { direction: "inbound" })).toBe(true);
    expect(found && vouchesFor(found.key, { direction: "outbound" })).toBe(false);
    expect(found && vouchesFor(found.key, {})).toBe(false);
    const any = matchUnsigned({}, both);
    expect(any && vouchingMatch(any, { direction: "outbound" })).toMatchObject({ slot: "unsigned", scope: "delivery" });
    expect(any && vouchesFor(any.key, { direction: "sideways" })).toBe(false);
  });

  it("leaves a request with either header, and a signed keyring, to the signature", () => {
    expect(matchUnsigned({ "x-service-signature": "" }, half)).toBeNull();
    expect(matchUnsigned({ "X-Service-Timestamp": "1" }, half)).toBeNull();
    expect(matchUnsigned({}, compileKeyring(SECRET, NOW))).toBeNull();
  });
});

// 0xfb… makes "+" and "/" in base64, "-" and "_" in base64url.
const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => (index % 2 === 0 ? 0xfb : 0xff - index)));
const hex = bytes.toString("hex");
const base64 = bytes.toString("base64");
const base64url = bytes.toString("base64url");

const parse = (text: string, encoding: SignatureEncoding = "auto") =>
  parseCandidates(text, encoding)?.map((each) => Buffer.from(each).toString("hex")) ?? null;

describe("parseCandidates()", () => {
  const forms = { hex, HEX: hex.toUpperCase(), base64, base64url };

  it.each(Object.entries(forms))("reads %s with and without each prefix (DLV-12)", (_, text) => {
    for (const prefix of ["", "sha256=", "v1=", "v1,"]) expect(parse(prefix + text)).toEqual([hex]);
  });

  it.each(Object.entries(forms))("refuses every truncation and one more character of %s", (_, text) => {
    for (const prefix of ["", "sha256=", "v1=", "v1,"]) {
      for (let length = 0; length < text.length; length++) {
        // 43 hex digits can be well-formed base64url, but then they are other bytes.
        expect(parse(prefix + text.slice(0, length)) ?? []).not.toContain(hex);
      }
      // (The test's base64 holds "+" and "/"; without them, cutting its "=" leaves base64url of the same bytes.)
      for (const extra of ["0", "=", "A", "\n", "\u0000"]) expect(parse(prefix + text + extra)).toBeNull();
    }
  });

  it.each([
    ["base64", base64, "="],
    ["base64url", base64url, ""],
  ])("accepts one last character of %s and refuses the 63 others", (encoding, text, end) => {
    const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${encoding === "base64" ? "+/" : "-_"}`;
    const sameBytes = [...alphabet].filter((last) => parse(text.slice(0, 42) + last + end)?.[0] === hex);
    expect(sameBytes).toEqual([text[42]]);
    // The last character carries 4 bits: 16 spellings are canonical, the 48 others have stray bits set.
    expect([...alphabet].filter((last) => parse(text.slice(0, 42) + last + end) !== null)).toHaveLength(16);
  });

  it.each([
    [
      "mixed alphabets or other paddings",
      [base64.replace("+", "-"), `${base64url}=`, base64.slice(0, 43), `${base64}=`],
    ],
    ["other letters and digits", [`g${hex.slice(1)}`, `０${hex.slice(1)}`]],
    ["white space around or between", [`${hex}\n`, ` ${hex}`, `${hex} `, `${hex}\t${hex}`]],
    ["other prefixes", [`v0=${hex}`, `SHA256=${hex}`, `sha256=v1=${hex}`, "sha256="]],
    [
      "empty candidates, quotes and junk",
      [`${hex},`, `,${hex}`, `${hex},,${hex}`, `"${hex}"`, "", " ", `${hex}, junk`],
    ],
    [
      "31 and 33 bytes",
      [
        hex.slice(2),
        `${hex}00`,
        bytes.subarray(1).toString("base64"),
        Buffer.concat([bytes, bytes.subarray(0, 1)]).toString("base64"),
      ],
    ],
    ["a text of 1 MiB", ["a".repeat(1 << 20)]],
  ])("refuses %s", (_, texts) => {
    for (const text of texts) expect(parse(text)).toBeNull();
  });

  it.each([[","], [", "], [" "], ["  "], [" , "]])("separates candidates by %j", (separator) => {
    const other = "0".repeat(64);
    expect(parse([hex, other].join(separator))).toEqual([hex, other]);
    expect(parse([`v1,${hex}`, `v1,${other}`].join(separator))).toEqual([hex, other]);
    expect(parse([base64, `sha256=${other}`, base64url].join(separator))).toEqual([hex, other, hex]);
  });

  it("takes five candidates, not six", () => {
    for (const text of Object.values(forms)) {
      expect(parse(Array(5).fill(`sha256=${text}`).join(", "))).toHaveLength(5);
      expect(parse(Array(6).fill(text).join(","))).toBeNull();
    }
  });

  it("takes a header of 512 characters at most, however much of it is space", () => {
    const list = (length: number) => `${hex}${" ".repeat(length - 128)}${hex}`;
    expect(parse(list(512))).toEqual([hex, hex]);
    expect(parse(list(513))).toBeNull();
  });

  it("pins the encoding, also within a list", () => {
    for (const [pinned, text] of [
      ["hex", hex],
      ["base64", base64],
      ["base64url", base64url],
    ] as const) {
      for (const encoding of ["hex", "base64", "base64url"] as const) {
        expect(parse(text, encoding)).toEqual(pinned === encoding ? [hex] : null);
        expect(parse(`v1=${text}`, encoding)).toEqual(pinned === encoding ? [hex] : null);
        expect(parse(`${text},${text}`, encoding)).toEqual(pinned === encoding ? [hex, hex] : null);
      }
    }
  });
});

describe("signatureEncodingOption()", () => {
  it("takes each encoding, and auto for none", () => {
    const encodings = ["auto", "hex", "base64", "base64url"];
    expect(encodings.map(signatureEncodingOption)).toEqual(encodings);
    expect(signatureEncodingOption(undefined)).toBe("auto");
  });
});

const digits = "17600000000000000";
const arabicIndic = "١٧٦٠٠٠٠٠٠٠";
const fullWidth = "１７６００００００００００";

const FORMATS = ["auto", "s", "ms"] as const;

describe("parseTimestamp()", () => {
  it("takes 10 and 13 digits only", () => {
    const taken = Array.from(digits, (_, length) => length).filter(
      (length) => parseTimestamp(digits.slice(0, length), "auto") !== null,
    );
    expect(taken).toEqual([10, 13]);
    for (const length of taken) expect(parseTimestamp(digits.slice(0, length), "auto")).toBe(1_760_000_000_000);
  });

  it.each([
    ["a sign", "+1760000000 -1760000000 +176000000 -176000000"],
    ["a fraction", "1.76000000 17600000.0 1760000000.5 1760000000.12"],
    ["an exponent or another base", "1.760000e12 0x68e78c00 0x68e78c00000"],
    ["separators", "1_760_000_0 1,760,000, 1760000000,1760000000 2025-10-09"],
    ["words and suffixes", "Infinity10 NaNNaNNaNN 1760000000n 176000000n 176000000²"],
    ["other digits", `${arabicIndic} ${fullWidth} १७६००००००० 𝟏𝟕𝟔𝟎𝟎 176000000０`],
  ])("refuses %s: %s", (_, texts) => {
    for (const text of texts.split(" ")) for (const format of FORMATS) expect(parseTimestamp(text, format)).toBeNull();
  });

  it("refuses white space, invisible characters and nothing", () => {
    const texts =
      " 1760000000|1760000000 | 176000000|176000000 |\t176000000|1760000000\n|176000000\n|\u00a0176000000|1.76e9    |";
    for (const text of [...texts.split("|"), "1760000000, 1760000000", "176000000\u0000"])
      for (const format of FORMATS) expect(parseTimestamp(text, format)).toBeNull();
  });

  it("pins the unit", () => {
    expect(parseTimestamp("1760000000", "s")).toBe(1_760_000_000_000);
    expect(parseTimestamp("1760000000000", "s")).toBeNull();
    expect(parseTimestamp("1760000000123", "ms")).toBe(1_760_000_000_123);
    expect(parseTimestamp("1760000000", "ms")).toBeNull();
  });

  it("lets a function read other texts, but none with a dot, a byte beyond ASCII or over 64 characters", () => {
    const read = (text: string) => Date.parse(text);
    expect(parseTimestamp("2025-10-09T08:53:20Z", read)).toBe(1_760_000_000_000);
    expect(parseTimestamp("Thu, 09 Oct 2025 08:53:20 GMT", read)).toBe(1_760_000_000_000);
    expect(parseTimestamp("2025-10-09T08:53:20.000Z", read)).toBeNull();
    for (const text of ["", "1".repeat(65), "1760000000\u00b2", "17600\n"])
      expect(parseTimestamp(text, () => 1)).toBeNull();
    expect(parseTimestamp("1".repeat(64), () => 1)).toBe(1);
  });

  it("rounds what a function makes of a finer time, as of microseconds: stores keep whole milliseconds", () => {
    expect(parseTimestamp("1760000000123456", (text) => Number(text) / 1_000)).toBe(1_760_000_000_123);
  });

  it.each([
    ["NaN", () => Number.NaN],
    ["Infinity", () => Number.POSITIVE_INFINITY],
    [
      "an error",
      () => {
        throw new RangeError("bad");
      },
    ],
  ])("takes %s from a function as malformed", (_, read) => {
    expect(parseTimestamp("x", read)).toBeNull();
  });
});

describe("checkAge()", () => {
  const now = 1_760_000_000_000;

  it.each([
    [-300_000, null],
    [-300_001, "timestamp_too_old"],
    [300_000, null],
    [300_001, "timestamp_in_future"],
    [0, null],
  ])("judges a timestamp %i ms from now", (offset, expected) => {
    expect(checkAge(now + offset, now, DEFAULT_TOLERANCE)).toBe(expected);
  });
});

describe("timestampFormatOption()", () => {
  it("takes each format, a function, and nothing", () => {
    for (const format of ["auto", "s", "ms", () => 0, undefined]) expect(timestampFormatOption(format)).toBeUndefined();
  });
});

describe("toleranceOption()", () => {
  it.each([[0], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ["300000"], [null], [1.5], [30 * 86_400_000 + 1]])(
    "refuses %s, alone and each way",
    (value) => {
      expect(() => toleranceOption("toleranceMs", value, DEFAULT_TOLERANCE)).toThrow(/"toleranceMs"/);
      expect(() => toleranceOption("toleranceMs", { pastMs: value }, DEFAULT_TOLERANCE)).toThrow(
        /"toleranceMs.pastMs"/,
      );
      expect(() => toleranceOption("toleranceMs", { futureMs: value }, DEFAULT_TOLERANCE)).toThrow(
        /"toleranceMs.futureMs"/,
      );
    },
  );

  it("takes one number for both ways, or each way by itself", () => {
    expect(toleranceOption("t", 1000, DEFAULT_TOLERANCE)).toEqual({ pastMs: 1000, futureMs: 1000 });
    expect(toleranceOption("t", { pastMs: 1 }, DEFAULT_TOLERANCE)).toEqual({ pastMs: 1, futureMs: 300_000 });
    expect(toleranceOption("t", undefined, DEFAULT_TOLERANCE)).toBe(DEFAULT_TOLERANCE);
    expect(() => toleranceOption("t", { past: 1 }, DEFAULT_TOLERANCE)).toThrow(/pastMs/);
  });
});

// Scopes as texts that are stored with what a secret vouched for.

const digest = (id: string) => createHash("sha256").update(id).digest("hex").slice(0, 32);
const a = { secret: SECRET, apiClientId: "a" };
const b = { secret: SECRET, apiClientId: "b" };

function scope(keyring: Keyring): string {
  const key = compileKeyring(keyring, NOW).keys[0];
  if (key === undefined) throw new Error("The keyring is empty.");
  return scopeOf(key);
}

describe("scopeOf()", () => {
  it.each<[string, Keyring, string]>([
    ["a secret for all", SECRET, "any"],
    ["the inbound kind's", { inbound: SECRET, delivery: OTHER_SECRET }, "inbound"],
    ["the delivery kind's", { secret: SECRET, direction: "outbound" }, "delivery"],
    ["both kinds' one", { inbound: SECRET, delivery: SECRET }, "inbound,delivery"],
    ["a client's", a, `any:${digest("a")}`],
    ["a client's of one kind", { ...a, direction: "inbound" }, `inbound:${digest("a")}`],
    ["two clients' one", { current: [a, b] }, `any:${digest("a")},any:${digest("b")}`],
    ["one that is listed twice", { current: SECRET, next: SECRET }, "any"],
  ])("names %s", (_, keyring, expected) => {
    expect(scope(keyring)).toBe(expected);
  });
});

describe("scopeCovers()", () => {
  const events = {
    "inbound a": { direction: "inbound", apiClientId: "a" },
    "inbound b": { direction: "inbound", apiClientId: "b" },
    "outbound a": { direction: "outbound", apiClientId: "a" },
    "outbound b": { direction: "outbound", apiClientId: "b" },
    "a client that is no text": { apiClientId: ["a"] },
    nothing: {},
  };
  const covered = (text: string) =>
    Object.entries(events)
      .filter(([, event]) => scopeCovers(text, event))
      .map(([name]) => name);

  it.each<[string, string[]]>([
    ["any", Object.keys(events)],
    ["inbound", ["inbound a", "inbound b", "a client that is no text", "nothing"]],
    ["delivery", ["outbound a", "outbound b", "a client that is no text", "nothing"]],
    [`any:${digest("a")}`, ["inbound a", "outbound a", "nothing"]],
    [`delivery:${digest("b")}`, ["outbound b", "nothing"]],
    [`inbound:${digest("a")},delivery:${digest("b")}`, ["inbound a", "outbound b", "nothing"]],
  ])("takes %s for what scopeOf() meant (RCV-8)", (text, expected) => {
    expect(covered(text)).toEqual(expected);
  });

  it.each(["", "all", "anything", "not any", "any:", "any:a", `any:${digest("a")}0`, "any:undefined", "unsigned"])(
    "covers nothing by %j",
    (text) => {
      expect(covered(text)).toEqual([]);
    },
  );
});

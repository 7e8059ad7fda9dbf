/** What a secret store takes, and the text it keeps. */
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { SetupError, StoreError } from "../../../src/errors.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  slotsFromText,
  slotsToText,
} from "../../../src/sources/messaging/secret-store.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../../../src/sources/messaging/webhook-kind.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const FULL = {
  current: SECRET,
  previous: [{ secret: OTHER_SECRET, validUntil: NOW }],
  next: { secret: "geheim-ß-秘密-🔑-and-more", since: NOW, rotatedAtBefore: null, hadSecret: true },
  rotatedAt: NOW - 1,
};
const EMPTY = { current: null, previous: [], next: null, rotatedAt: null };
const ORIGIN = { place: "the store", encoding: "utf8" } as const;

describe("checkSlots()", () => {
  it("copies what is right, without the revision of a read", () => {
    expect(checkSlots({ ...FULL, revision: 3 }, "utf8")).toEqual(FULL);
    expect(checkSlots(EMPTY, "utf8")).toEqual(EMPTY);
  });

  // More mistakes, with all of their words, are in setup-errors.test.ts.
  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /slots/],
    ["a misspelled slot", { ...EMPTY, curent: SECRET }, /Did you mean "current"/],
    ["a short secret", { ...EMPTY, current: "short" }, /"slots.current" is 5 bytes long/],
    [
      "a missing current",
      { previous: [], next: null, rotatedAt: null },
      /"slots.current" must be a text of at least 16/,
    ],
    ["a previous that never ends", { ...EMPTY, previous: [{ secret: SECRET, validUntil: Infinity }] }, /validUntil/],
    ["a missing next", { current: null, previous: [] }, /slots.next/],
  ])("refuses %s", (_, value, message) => {
    expect(() => checkSlots(value, "utf8")).toThrow(SetupError);
    expect(() => checkSlots(value, "utf8")).toThrow(message);
  });
});

describe("slotsFromText()", () => {
  it("reads what slotsToText() wrote: one line of JSON with the number of its format", () => {
    expect(slotsFromText(slotsToText(FULL), ORIGIN)).toEqual(FULL);
    expect(JSON.parse(slotsToText(FULL))).toEqual({ oncehook: 1, ...FULL });
    expect(slotsToText(FULL)).not.toContain("\n");
  });

  it("keeps that the service had no secret, whatever is current now", () => {
    const slots = { ...FULL, next: { ...FULL.next, hadSecret: false } };
    expect(slotsFromText(slotsToText(slots), ORIGIN)).toEqual(slots);
  });

  it("reads texts of before rotatedAt and hadSecret were kept", () => {
    const next = { secret: FULL.next.secret, since: NOW, rotatedAtBefore: null };
    const old = (current: string | null) => JSON.stringify({ oncehook: 1, current, previous: [], next });
    const read = { previous: [], rotatedAt: null };
    expect(slotsFromText(old(SECRET), ORIGIN)).toEqual({
      ...read,
      current: SECRET,
      next: { ...next, hadSecret: true },
    });
    expect(slotsFromText(old(null), ORIGIN)).toEqual({ ...read, current: null, next: { ...next, hadSecret: false } });
  });

  it("takes a text's secrets by the store's encoding, so that 16 bytes are 32 hex digits (DLV-14)", () => {
    const text = (current: string) => slotsToText({ ...EMPTY, current });
    const hex = { ...ORIGIN, encoding: "hex" } as const;
    expect(slotsFromText(text("ab".repeat(16)), hex).current).toBe("ab".repeat(16));
    expect(() => slotsFromText(text("ab".repeat(8)), hex)).toThrow(/"encoding"/);
    expect(() => slotsFromText(text(SECRET), hex)).toThrow(/"encoding"/);
  });

  it.each([
    ["a plain secret", () => SECRET],
    ["JSON of something else", () => JSON.stringify({ password: SECRET })],
    ["null", () => "null"],
    ["a cut text", () => slotsToText(FULL).slice(0, -10)],
  ])("refuses %s as unreadable, and shows nothing of it", (_, text) => {
    let refused: unknown;
    try {
      slotsFromText(text(), ORIGIN);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(StoreError);
    expect(refused).toMatchObject({ code: "secret_unreadable", message: expect.stringContaining("the store") });
    expect(inspect(refused, { depth: 9 })).not.toContain(SECRET.slice(0, 8));
  });
});

describe("checkKind() and checkRevision()", () => {
  it("know the two kinds, which their rule names (DLV-1)", () => {
    const kinds = ["inbound", "delivery", "outbound", "", null, undefined];
    expect(kinds.map(isWebhookKind)).toEqual([true, true, false, false, false, false]);
    expect(WEBHOOK_KIND_RULE).toBe('must be "inbound" or "delivery"');
  });

  it("take what there is", () => {
    for (const kind of ["inbound", "delivery"]) expect(checkKind(kind)).toBeUndefined();
    for (const revision of [0, 1, Number.MAX_SAFE_INTEGER]) expect(checkRevision(revision)).toBeUndefined();
  });
});

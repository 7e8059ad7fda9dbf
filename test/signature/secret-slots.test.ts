/** What a secret store takes, and the text it keeps. */
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { SetupError, StoreError } from "../../src/errors.ts";
import { checkSlots, slotsFromText, slotsToText } from "../../src/signature/secret-slots.ts";
import { NOW, OTHER_SECRET, SECRET } from "./openssl.ts";

const FULL = {
  current: SECRET,
  previous: [{ secret: OTHER_SECRET, validUntil: NOW }],
  next: { secret: "geheim-ß-秘密-🔑-and-more", since: NOW, rotatedAtBefore: null },
};
const EMPTY = { current: null, previous: [], next: null };

describe("checkSlots()", () => {
  it("copies what is right, without the revision of a read", () => {
    expect(checkSlots({ ...FULL, revision: 3 })).toEqual(FULL);
    expect(checkSlots(EMPTY)).toEqual(EMPTY);
  });

  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /slots/],
    ["a misspelled slot", { ...EMPTY, curent: SECRET }, /Did you mean "current"/],
    ["a short secret", { ...EMPTY, current: "short" }, /"slots.current" is 5 bytes long/],
    ["a missing current", { previous: [], next: null }, /"slots.current" must be a text, or null/],
    ["a scoped secret", { ...EMPTY, current: { secret: SECRET } }, /"slots.current" must be a text/],
    ["a previous that is no list", { ...EMPTY, previous: FULL.previous[0] }, /"slots.previous" must be a list/],
    ["a previous without an end", { ...EMPTY, previous: [{ secret: SECRET }] }, /"slots.previous\[0\].validUntil"/],
    ["a previous that never ends", { ...EMPTY, previous: [{ secret: SECRET, validUntil: Infinity }] }, /validUntil/],
    ["a missing next", { current: null, previous: [] }, /slots.next/],
    ["a next without a time", { ...EMPTY, next: { secret: SECRET, rotatedAtBefore: null } }, /"slots.next.since"/],
  ])("refuses %s, and shows no secret", (_, value, message) => {
    const refused = (() => {
      try {
        return checkSlots(value);
      } catch (error) {
        return error;
      }
    })();
    expect(refused).toBeInstanceOf(SetupError);
    expect(String(refused)).toMatch(message);
    expect(inspect(refused)).not.toContain(SECRET);
  });
});

describe("slotsFromText()", () => {
  it("reads what slotsToText() wrote", () => {
    expect(slotsFromText(slotsToText(FULL), "the store")).toEqual(FULL);
  });

  it.each([
    ["a plain secret", SECRET],
    ["JSON of something else", JSON.stringify({ password: SECRET })],
    ["a later format", slotsToText(FULL).replace('"oncehook":1', '"oncehook":2')],
    ["null", "null"],
    ["a cut text", slotsToText(FULL).slice(0, -10)],
  ])("refuses %s as unreadable, and shows nothing of it", (_, text) => {
    let refused: unknown;
    try {
      slotsFromText(text, "the store");
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(StoreError);
    expect(refused).toMatchObject({ code: "secret_unreadable", message: expect.stringContaining("the store") });
    expect(inspect(refused, { depth: 9 })).not.toContain(SECRET.slice(0, 8));
  });
});

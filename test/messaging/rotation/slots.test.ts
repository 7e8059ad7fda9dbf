import { describe, expect, it } from "vitest";
import { withCurrent, withNext, withPrevious } from "../../../src/messaging/rotation/slots.ts";
import type { SecretSlots } from "../../../src/sources/messaging/secret-store.ts";

const NOW = 1_760_000_000_000;
const NEXT = { secret: "the-next-secret", since: NOW, rotatedAtBefore: null, hadSecret: true };
const PREVIOUS = [
  { secret: "the-one-before", validUntil: NOW + 2 },
  { secret: "one-before-that", validUntil: NOW + 1 },
  { secret: "one-that-has-ended", validUntil: NOW },
];
const SLOTS: SecretSlots = { current: "the-current-secret", previous: PREVIOUS, next: NEXT, rotatedAt: NOW - 5 };
const REPLACEMENT = { validUntil: NOW + 9, next: null, rotatedAt: NOW - 1, now: NOW };

it("withNext() keeps all but the previous secrets that have ended, and the rotation that is remembered", () => {
  const previous = PREVIOUS.slice(0, 2);
  expect(withNext({ ...SLOTS, next: null }, NEXT, NOW)).toEqual({ ...SLOTS, previous });
});

describe("withCurrent()", () => {
  it("puts the replaced secret before the others that still count", () => {
    const previous = [{ secret: "the-current-secret", validUntil: NOW + 9 }, ...PREVIOUS.slice(0, 2)];
    const slots = { current: NEXT.secret, previous, next: null, rotatedAt: NOW - 1 };
    expect(withCurrent(SLOTS, { ...REPLACEMENT, secret: NEXT.secret })).toEqual(slots);
  });

  it("does not make a secret the previous one of itself", () => {
    const { previous } = withCurrent(SLOTS, { ...REPLACEMENT, secret: "the-current-secret" });
    expect(previous).toEqual(PREVIOUS.slice(0, 2));
  });

  it("takes a secret that becomes current again from the previous ones", () => {
    const { previous } = withCurrent(SLOTS, { ...REPLACEMENT, secret: "the-one-before" });
    expect(previous.map(({ secret }) => secret)).toEqual(["the-current-secret", "one-before-that"]);
  });
});

describe("withPrevious()", () => {
  it("changes neither the current secret nor the rotation that is remembered", () => {
    const slots = withPrevious(SLOTS, { ...REPLACEMENT, next: NEXT, secret: "signed-with-for-a-moment" });
    const previous = [{ secret: "signed-with-for-a-moment", validUntil: NOW + 9 }, ...PREVIOUS.slice(0, 2)];
    expect(slots).toEqual({ ...SLOTS, previous });
  });

  it("has a secret once, with its new end", () => {
    const { previous } = withPrevious(SLOTS, { ...REPLACEMENT, secret: "one-before-that" });
    expect(previous).toEqual([{ secret: "one-before-that", validUntil: NOW + 9 }, PREVIOUS[0]]);
  });

  it("does not make a secret the previous one of itself", () => {
    const { previous } = withPrevious(SLOTS, { ...REPLACEMENT, secret: "the-current-secret" });
    expect(previous).toEqual(PREVIOUS.slice(0, 2));
  });
});

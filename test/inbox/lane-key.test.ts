import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  eventRefText,
  ID_TEXT_RULE,
  type Identified,
  identityOf,
  identityText,
  isIdText,
  isNamed,
  isShared,
  LANE_ORDERS,
  type LaneKey,
  laneKeyText,
  publicId,
} from "../../src/inbox/lane-key.ts";

/** Hostile on purpose: names of orders, and what could end a part of a text. */
const texts = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", ":", '"', '","', '\\"', "null", "a,b", "billing", "sequence", "1", "\0", "é", "[]"),
);
const tenants = fc.option(texts);
const orders = fc.constantFrom(...LANE_ORDERS);
const namedLanes = fc.record({ source: texts, tenant: tenants, name: texts, order: orders });
const lanes: fc.Arbitrary<LaneKey> = fc.oneof(
  namedLanes,
  fc.record({ source: texts, tenant: tenants, name: fc.constant(null), order: fc.constant(null) }),
);
const events: fc.Arbitrary<Identified> = fc.record({
  lane: lanes,
  ownId: fc.option(texts),
  sequence: fc.nat(3),
  eventType: texts,
});

/** What makes two deliveries the same event. */
function partsOf({ lane: { source, tenant, name }, ownId, sequence, eventType }: Identified): readonly unknown[] {
  return ownId == null ? [source, tenant, "in", name, sequence, eventType] : [source, tenant, "own", ownId];
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index]);
}

/** Pairs that are equal in some parts and differ in others. */
function twoOf<T extends object>(of: fc.Arbitrary<T>): fc.Arbitrary<readonly [T, T]> {
  return fc
    .tuple(of, of, fc.infiniteStream(fc.boolean()))
    .map(([one, other, picks]) => [one, mixed(one, other, picks)] as const);
}

function mixed<T extends object>(one: T, other: T, picks: Iterator<boolean>): T {
  const parts = Object.entries(one).map(([name, part]) => {
    const instead: unknown = other[name as keyof T];
    if (typeof part === "object" && part !== null && typeof instead === "object" && instead !== null)
      return [name, mixed(part, instead, picks)];
    return [name, picks.next().value === true ? part : instead];
  });
  return Object.fromEntries(parts) as T;
}

describe("identityOf()", () => {
  const shared: Identified = {
    lane: { source: "ab", tenant: "t", name: "c", order: "position" },
    ...{ ownId: "evt_1", sequence: 1, eventType: "type" },
  };
  const message: Identified = {
    lane: { source: "ab", tenant: "t", name: "c", order: "sequence" },
    ...{ ownId: null, sequence: 1, eventType: "type" },
  };

  it("is the hex SHA-256 of an array of the parts", () => {
    expect(identityOf(shared)).toBe(hash("sha256", '["ab","t","evt_1"]'));
    expect(identityOf(message)).toBe(hash("sha256", '["ab","t","c",1,"type"]'));
    expect(identityOf({ ...message, ownId: undefined })).toBe(identityOf(message));
  });

  it.each<readonly [string, Partial<LaneKey>, Partial<Identified>]>([
    ["another lane", { name: "other" }, {}],
    ["a lane of another order", { order: "arrival" }, {}],
    ["no lane", { name: null, order: null }, { sequence: 0 }],
    ["another place in its lane", {}, { sequence: 2 }],
    ["another type, which may come from an unsigned header", {}, { eventType: "other" }],
  ])("is the same for an event with the same id of its own in %s", (_where, lane, change) => {
    const other = { ...shared, lane: { ...shared.lane, ...lane }, ...change };
    expect(identityOf(other)).toBe(identityOf(shared));
  });

  it.each<readonly [string, Identified, Partial<LaneKey>, Partial<Identified>]>([
    ["the source of an event with an id of its own", shared, { source: "other" }, {}],
    ["its tenant", shared, { tenant: "other" }, {}],
    ["whether it has a tenant", shared, { tenant: null }, {}],
    ["where its source ends", shared, { source: "a", tenant: "bt" }, {}],
    ["its own id", shared, {}, { ownId: "evt_2" }],
    ["the source of an event by sequence", message, { source: "other" }, {}],
    ["its tenant, by sequence", message, { tenant: "other" }, {}],
    ["whether it has a tenant, by sequence", message, { tenant: null }, {}],
    ["its lane", message, { name: "other" }, {}],
    ["its sequence", message, {}, { sequence: 2 }],
    ["its type", message, {}, { eventType: "other" }],
    ["an id of its own, and the name of a lane", message, { name: null, order: null }, { ownId: "c", sequence: 0 }],
  ])("differs where events are equal in all but one: %s", (_part, event, lane, change) => {
    const other = { ...event, lane: { ...event.lane, ...lane }, ...change };
    expect(identityOf(other)).not.toBe(identityOf(event));
  });

  it("is equal for two deliveries of one event alone, whatever the parts are called", () => {
    fc.assert(
      fc.property(twoOf(events), ([one, other]) => {
        const expected = isSame(partsOf(one), partsOf(other));
        expect(identityText(one) === identityText(other)).toBe(expected);
        expect(identityOf(one) === identityOf(other)).toBe(expected);
      }),
    );
  });
});

describe("laneKeyText()", () => {
  const lane = { source: "ab", tenant: "t", name: "c", order: "position" } as const;

  it.each([
    ["the source", { source: "other" }],
    ["the tenant", { tenant: "other" }],
    ["whether there is a tenant", { tenant: null }],
    ["a tenant that is called null", { tenant: "null" }],
    ["the name", { name: "other" }],
    ["the order", { order: "arrival" } as const],
    ["where one part ends", { source: "a", tenant: "bt" }],
  ])("differs where lanes are equal in all but one: %s", (_part, change) => {
    expect(laneKeyText({ ...lane, ...change })).not.toBe(laneKeyText(lane));
  });

  it("is equal for two keys of one lane alone, whatever the parts are called", () => {
    fc.assert(
      fc.property(twoOf(namedLanes), ([one, other]) => {
        const partsOf = ({ source, tenant, name, order }: LaneKey) => [source, tenant, name, order];
        expect(laneKeyText(one) === laneKeyText(other)).toBe(isSame(partsOf(one), partsOf(other)));
        expect(laneKeyText({ order: one.order, name: one.name, tenant: one.tenant, source: one.source })).toBe(
          laneKeyText(one),
        );
      }),
    );
  });
});

it("eventRefText() is equal for two references to one event alone, whatever the parts are called", () => {
  fc.assert(
    fc.property(twoOf(fc.record({ source: texts, tenant: tenants, id: texts })), ([one, other]) => {
      const expected = one.source === other.source && one.tenant === other.tenant && one.id === other.id;
      expect(eventRefText(one) === eventRefText(other)).toBe(expected);
    }),
  );
});

it("isNamed() and isShared() tell lanes of several events, and which of these may be about different people", () => {
  const lane = { source: "billing", tenant: null };
  const told = ([null, ...LANE_ORDERS] as const).map((order) => {
    const key = { ...lane, name: order && "c", order };
    return [order, isNamed(key), isShared(key)];
  });
  expect(told).toEqual([
    [null, false, false],
    ["sequence", true, false],
    ["position", true, true],
    ["arrival", true, true],
  ]);
});

describe("publicId()", () => {
  it("hides what follows from a body", () => {
    expect(publicId("a".repeat(64))).toBe(null);
    expect(publicId(`${"a".repeat(64)}:72d3162e`)).toBe(null);
    expect(publicId("evt_1")).toBe("evt_1");
    expect(publicId("a".repeat(63))).toBe("a".repeat(63));
    expect(publicId("a".repeat(65))).toBe("a".repeat(65));
    expect(publicId("g".repeat(64))).toBe("g".repeat(64));
    expect(publicId(`evt_${"a".repeat(64)}`)).toBe(`evt_${"a".repeat(64)}`);
  });

  it("has nothing to show where there is no id", () => {
    expect(publicId(null)).toBe(null);
  });
});

describe("isIdText()", () => {
  it.each([
    ["one character", "a"],
    ["512 characters", "a".repeat(512)],
    ["NUL and other characters that nobody sees", "\0\n "],
    ["an emoji", "😀"],
    ["1,300 bytes", `${"€".repeat(433)}a`],
    ["433 characters of three bytes", "€".repeat(433)],
  ])("takes %s", (_what, text) => {
    expect(isIdText(text)).toBe(true);
  });

  it.each([
    ["nothing", ""],
    ["513 characters", "a".repeat(513)],
    ["1,301 bytes", `${"€".repeat(433)}é`],
    ["434 characters of three bytes", "€".repeat(434)],
    ["half of a pair", "a\ud83d"],
    ["the other half", "\ude00a"],
    ["a number", 1],
    ["null", null],
    ["undefined", undefined],
    ["a list of a text", ["a"]],
  ])("refuses %s", (_what, value) => {
    expect(isIdText(value)).toBe(false);
  });

  it("takes what its rule says, and nothing else", () => {
    expect(ID_TEXT_RULE).toBe("expected 1 to 512 characters of well-formed Unicode, at most 1300 bytes");
    const unit = fc.constantFrom("a", "é", "€", "😀", "\ud83d");
    const long = fc.string({ unit, minLength: 0, maxLength: 600, size: "max" });
    fc.assert(
      fc.property(long, (text) => {
        const isShort = text.length <= 512 && Buffer.from(text).length <= 1_300;
        expect(isIdText(text)).toBe(text !== "" && isShort && Buffer.from(text).toString() === text);
      }),
    );
  });
});

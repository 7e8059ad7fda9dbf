import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sameContent } from "../../src/internal/json.ts";
import { sized } from "../setup/form.ts";
import { bodies, bytes, sentBody } from "../sources/messaging/examples.ts";

const same = (a: string, b: string) => {
  const result = sameContent(bytes(a), bytes(b));
  expect(sameContent(bytes(b), bytes(a))).toBe(result);
  return result;
};

/** The same value with its keys in reverse order. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, child]) => [name, reversed(child)]),
  );
};

describe("sameContent()", () => {
  it.each([
    ['{"a":1,"b":[2,{"c":null}]}', ' { "b" : [2, {"c":null}],\n"a":1 } '],
    ['{"a":"é😀/"}', '{"\\u0061":"\\u00e9\\ud83d\\ude00\\/"}'],
    ["[1,10,100]", "[1.0,1e1,1E+2]"],
    ["[0]", "[-0]"],
    ["[1e400]", "[2e400]"],
    ["null", "null"],
  ])("takes %s and %s for the same", (a, b) => {
    expect(same(a, b)).toBe(true);
  });

  it.each([
    ['{"a":1}', '{"a":2}'],
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":1}', '{"b":1}'],
    ['{"a":null}', "{}"],
    ['{"a":null}', '{"b":null}'],
    ['{"a":0}', '{"a":false}'],
    ['{"a":""}', '{"a":null}'],
    ['{"toString":1}', '{"a":1}'],
    ["[1,2]", "[2,1]"],
    ["[1]", "[1,1]"],
    ["[]", "{}"],
    ['["a"]', '{"0":"a"}'],
    ["null", "{}"],
    ['{"a":{"b":{"c":1}}}', '{"a":{"b":{"c":2}}}'],
    ['"e\\u0301"', '"é"'],
  ])("tells %s from %s", (a, b) => {
    expect(same(a, b)).toBe(false);
  });

  it.each(["", "{", '{"a":1,"a":1}', '{"__proto__":1}', "\ufeff{}", "[".repeat(65) + "]".repeat(65)])(
    "says no for a body that does not parse, also beside itself: %j",
    (text) => {
      expect(same(text, text)).toBe(false);
      expect(same(text, "{}")).toBe(false);
    },
  );

  it("does not take an inherited field for a body's own", () => {
    Object.defineProperty(Object.prototype, "inherited", { value: 1, configurable: true });
    try {
      expect(sameContent(bytes('{"inherited":1}'), bytes('{"other":1}'))).toBe(false);
    } finally {
      Reflect.deleteProperty(Object.prototype, "inherited");
    }
  });

  it("takes a serialised-again event for the same, and notices any changed field", () => {
    for (const body of Object.values(bodies)) {
      expect(same(body, JSON.stringify(reversed(JSON.parse(body)), null, 2))).toBe(true);
    }
    expect(same(sentBody, sentBody.replace("+15550100002", "+15550100009"))).toBe(false);
  });

  it("agrees with itself on any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.jsonValue({ maxDepth: 5 }), (a, b) => {
        const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
        fc.pre(!`${left}${right}`.includes("__proto__"));
        expect(same(left, JSON.stringify(reversed(JSON.parse(left)), null, 1))).toBe(true);
        if (same(left, right)) expect(JSON.parse(left)).toEqual(JSON.parse(right.replaceAll("-0", "0")));
      }),
      { numRuns: sized({ quick: 200, full: 1_000 }) },
    );
  });
});

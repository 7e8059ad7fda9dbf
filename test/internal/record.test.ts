import { describe, expect, it } from "vitest";
import { isRecord } from "../../src/internal/type-guards.ts";

describe("isRecord()", () => {
  it.each([
    [{}, true],
    [{ a: 1 }, true],
    [[], false],
    [null, false],
    [undefined, false],
    ["text", false],
    [() => {}, false],
  ])("of %j is %s", (value, expected) => {
    expect(isRecord(value)).toBe(expected);
  });
});

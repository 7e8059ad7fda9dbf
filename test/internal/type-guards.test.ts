import { describe, expect, it } from "vitest";
import { isAbortSignal, isRecord } from "../../src/internal/type-guards.ts";

const whole = { aborted: false, addEventListener() {}, throwIfAborted() {} };

describe("isAbortSignal()", () => {
  it.each([
    ["a signal", new AbortController().signal],
    ["one that has aborted", AbortSignal.abort()],
    ["another implementation", whole],
  ])("takes %s", (_, value) => {
    expect(isAbortSignal(value)).toBe(true);
  });

  it.each([
    ["undefined", undefined],
    ["null", null],
    ["a number", 7],
    ["an empty object", {}],
    ["the controller", new AbortController()],
    ["another event target", new EventTarget()],
    ["one that does not tell whether it has aborted", { ...whole, aborted: undefined }],
    ["one that takes no listeners", { ...whole, addEventListener: undefined }],
    ["one that cannot throw its reason", { ...whole, throwIfAborted: undefined }],
  ])("refuses %s", (_, value) => {
    expect(isAbortSignal(value)).toBe(false);
  });
});

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

/** The inspector's bodies, as a parser of the application left them. */
import { describe, expect, it } from "vitest";
import { jsonLeft } from "../../adapters/json-body.ts";

describe("jsonLeft()", () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;

  it.each([
    ["null, which parsers leave for none", null],
    ["what cannot be written as JSON", circular],
  ])("does not believe %s", (_what, value) => {
    expect(jsonLeft(value, 100)).toEqual({ ok: false, reason: "invalid" });
  });
});

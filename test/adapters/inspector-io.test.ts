/** The inspector's bodies, as a parser of the application left them. */
import { describe, expect, it } from "vitest";
import { endStream, jsonLeft } from "../../adapters/inspector-io.ts";

describe("jsonLeft()", () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;

  it.each([
    ["a text", "{}"],
    ["what cannot be written as JSON", circular],
  ])("does not believe %s", (_what, value) => {
    expect(jsonLeft(value, 100)).toEqual({ ok: false, reason: "invalid" });
  });

  it.each([null, undefined])("takes %s, which parsers leave for none, for an empty one", (value) => {
    expect(jsonLeft(value, 100)).toEqual({ ok: false, reason: "empty" });
  });
});

// The end of a stream that nobody reads any more.

const next = () => new Promise<never>(() => {});

describe("endStream()", () => {
  it("passes over an iterator that cannot be ended", () => {
    expect(() => endStream({ next })).not.toThrow();
  });
});

/** The end of a stream that nobody reads any more. */
import { describe, expect, it } from "vitest";
import { endStream } from "../../adapters/inspector-io.ts";

const next = () => new Promise<never>(() => {});

describe("endStream()", () => {
  it("passes over an iterator that cannot be ended", () => {
    expect(() => endStream({ next })).not.toThrow();
  });
});

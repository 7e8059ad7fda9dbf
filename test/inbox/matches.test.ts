import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matcherOf } from "../../src/inbox/matches.ts";
import { sized } from "../setup/form.ts";

const text = fc.string({ maxLength: 12, unit: fc.constantFrom("a", "b", "c") });

describe("matcherOf()", () => {
  it("finds at each place the longest part that stands in a text, and the longest text that is a part", () => {
    fc.assert(
      fc.property(text, fc.array(fc.array(text, { maxLength: 5 }), { maxLength: 3 }), (message, lists) => {
        const match = matcherOf(message);
        for (const texts of lists) {
          const { parts, wholes } = match(texts);
          for (let end = 0; end <= message.length; end++) {
            const ending = Array.from({ length: end + 1 }, (_, from) => message.slice(from, end));
            const longest = (is: (part: string) => boolean) => ending.find(is)?.length ?? 0;
            expect(parts[end]).toBe(longest((part) => texts.some((one) => one.includes(part))));
            expect(wholes[end]).toBe(longest((part) => texts.includes(part)));
          }
        }
      }),
      { numRuns: sized({ quick: 500, full: 5_000 }) },
    );
  });
});

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ruleOf } from "../../src/events/parse.ts";

const rulesOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues.map(ruleOf);

describe("ruleOf()", () => {
  it.each([
    ["a type", z.string(), 5, "expected string"],
    ["one value", z.literal("a"), "SECRET", "expected a"],
    ["several values", z.enum(["a", "b", "c"]), "SECRET", "expected a or b or c"],
    ["a minimum", z.number().min(3), 2, "expected at least 3"],
    ["a maximum", z.number().max(3), 4, "expected at most 3"],
    ["any other rule, by zod's name for it", z.string().regex(/^a$/), "SECRET", "invalid_format"],
  ])("says %s without the value", (_, schema, value, rule) => {
    expect(rulesOf(schema, value)).toEqual([rule]);
  });
});

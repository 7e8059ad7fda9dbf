/** The rule that a value breaks, said in our own words: never a value. */
import type { z } from "zod";

/** zod's own messages can be replaced by the application and could then quote values, so they are not used. */
export function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${issue.expected}`;
    case "invalid_value":
      return `expected ${issue.values.map(String).join(" or ")}`;
    case "too_small":
      return `expected at least ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}`;
    default:
      return issue.code;
  }
}

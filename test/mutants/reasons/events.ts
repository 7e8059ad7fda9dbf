/** Why mutants of parsing live. */
import type { Reason } from "../reason.ts";

export const EVENTS_REASONS: readonly Reason[] = [
  {
    file: "src/internal/json.ts",
    reason: "What does not parse has no value, and undefined is the same as no value of JSON.",
    changes: [["LogicalOperator", "left.ok && right.ok", "left.ok || right.ok"]],
  },
  {
    file: "src/inbox/lane-key.ts",
    reason: "The check that the switch has all cases is the compiler's.",
    changes: [["ConditionalExpression", "default: return lane.tag satisfies never;", "default:"]],
  },
  {
    file: "src/service/parse.ts",
    reason: "The set of known types holds texts only; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof eventType === "string"', "true"]],
  },
  {
    file: "src/internal/json.ts",
    reason: "Buffer.from throws at undefined, with the same result.",
    changes: [["ConditionalExpression", "text === undefined", "false"]],
  },
  {
    file: "src/service/parse.ts",
    reason: "Number.isInteger is false for what is no number; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof sequence === "number"', "true"]],
  },
  {
    file: "src/internal/json.ts",
    reason: "A function that ends without a return gives undefined too.",
    changes: [["BlockStatement", "{ // A detached buffer, or one longer than any string. return undefined; }", "{}"]],
  },
  {
    file: "src/internal/json.ts",
    reason: "Behind the last character there is NaN, which is none of the characters looked for.",
    changes: [["EqualityOperator", "index < length", "index <= length"]],
  },
  {
    file: "src/internal/json.ts",
    reason: "A sum is even where the difference is.",
    changes: [["ArithmeticOperator", "quote - content", "quote + content"]],
  },
  {
    file: "src/internal/json.ts",
    reason: "Of what is no object no keys are counted; not calling for it is for speed.",
    changes: [
      ["LogicalOperator", 'typeof child !== "object" || child === null', 'typeof child !== "object" && child === null'],
      ["ConditionalExpression", 'typeof child !== "object" || child === null', "false"],
      ["ConditionalExpression", 'typeof child !== "object"', "false"],
      ["ConditionalExpression", "child === null", "false"],
    ],
  },
];

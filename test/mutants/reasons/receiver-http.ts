/** Why mutants of src/receiver live: on the way of a delivery, in the options and in `waitFor()`. */
import type { Reason } from "../reason.ts";

export const RECEIVER_HTTP_REASONS: readonly Reason[] = [
  {
    file: "src/receiver/body-limits.ts",
    reason: "Null is above no limit: the check is for the compiler.",
    changes: [["ConditionalExpression", "declared !== null", "true"]],
  },
  {
    file: "src/receiver/body-limits.ts",
    reason: "An absent header is tried as the text `undefined`, which has no digit: the check is for the compiler.",
    changes: [["ConditionalExpression", "text !== undefined", "true"]],
  },
  {
    file: "src/receiver/http.ts",
    reason: "Only a duplicate has `conflict`: the other check is for the compiler.",
    changes: [["ConditionalExpression", 'acceptance.outcome === "duplicate"', "true"]],
  },
  {
    file: "src/receiver/options.ts",
    reason: "Nothing is compared with a default of two choices, only with the other one.",
    changes: [
      ["StringLiteral", '"store"', '""'],
      ["StringLiteral", '"auto"', '""'],
    ],
  },
  {
    file: "src/receiver/body-limits.ts",
    reason: "The least rate is one byte a millisecond, so that it makes no difference to divide by it.",
    changes: [["ArithmeticOperator", "age * LEAST_BYTES_PER_MS", "age / LEAST_BYTES_PER_MS"]],
  },
  {
    file: "src/receiver/upkeep.ts",
    reason: "A turn of the event loop after the last batch too: for speed only.",
    changes: [["ConditionalExpression", "more", "true"]],
  },
  {
    file: "src/receiver/wait-for.ts",
    reason: "An idle lane has no `readyAt`, so that it is due: the case is for the compiler.",
    changes: [
      ["ConditionalExpression", 'status === "idle"', "false"],
      ["StringLiteral", '"idle"', '""'],
    ],
  },
  {
    file: "src/receiver/wait-for.ts",
    reason: "The check that the switch has all cases is the compiler's.",
    changes: [["ConditionalExpression", "default: return status satisfies never;", "default:"]],
  },
  {
    file: "src/receiver/wait-for.ts",
    reason:
      "A text of 32 characters or more differs from every type in more letters than may differ: the bound is for speed.",
    changes: [
      ["ConditionalExpression", "type.length > LONGEST_COMPARED", "false"],
      ["EqualityOperator", "type.length > LONGEST_COMPARED", "type.length >= LONGEST_COMPARED"],
    ],
  },
];

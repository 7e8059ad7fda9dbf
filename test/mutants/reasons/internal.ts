/** Why mutants of src/internal and src/errors.ts live. */
import type { Reason } from "../reason.ts";

export const INTERNAL_REASONS: readonly Reason[] = [
  {
    file: "src/internal/better-sqlite3.ts",
    reason: "JSON.parse reads the bytes of a file as it reads their text.",
    changes: [["StringLiteral", '"utf8"', '""']],
  },
  {
    file: "src/internal/foreign-error.ts",
    reason: "What is thrown at null is caught one line on, with the same result.",
    changes: [
      [
        "OptionalChaining",
        "(thrown as Readonly<Record<string, unknown>> | null | undefined)?.[property]",
        "(thrown as Readonly<Record<string, unknown>> | null | undefined)[property]",
      ],
    ],
  },
  {
    file: "src/internal/foreign-error.ts",
    reason: "A function that ends without a return gives undefined too.",
    changes: [["BlockStatement", "{ return undefined; }", "{}"]],
  },
  {
    file: "src/internal/logger.ts",
    reason: "What is thrown for want of a `catch` is dropped one line on.",
    changes: [["ConditionalExpression", "result instanceof Promise", "true"]],
  },
  {
    file: "src/internal/node-sqlite.ts",
    reason: "A loop over the columns of no row does nothing, and gives it back.",
    changes: [["ConditionalExpression", "row === undefined", "false"]],
  },
  {
    file: "src/internal/node-sqlite.ts",
    reason: "A text without either character is written again as it is: looking first is for speed.",
    changes: [
      ["ConditionalExpression", 'value.includes("\\0") || value.includes(ESCAPE)', "true"],
      ["StringLiteral", '"\\0"', '""'],
    ],
  },
];

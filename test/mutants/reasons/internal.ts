/** Why mutants of src/internal and src/errors.ts live. */
import type { Reason } from "../reason.ts";

export const INTERNAL_REASONS: readonly Reason[] = [
  {
    file: "src/internal/sqlite-driver.ts",
    reason: "JSON.parse reads the bytes of a file as it reads their text.",
    changes: [["StringLiteral", '"utf8"', '""']],
  },
  {
    file: "src/internal/sqlite-driver.ts",
    reason: "It is installed wherever the tests run.",
    changes: [["BlockStatement", "{ return null; }", "{}"]],
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
    file: "src/internal/sqlite-driver.ts",
    reason: "On Node 20, where mutants are tried, there is none.",
    changes: [["ConditionalExpression", "loaded === undefined", "true"]],
  },
  {
    file: "src/internal/sqlite-driver.ts",
    reason: "A loop over the columns of no row does nothing, and gives it back.",
    changes: [["ConditionalExpression", "row === undefined", "false"]],
  },
  {
    file: "src/internal/sqlite-driver.ts",
    reason: "A text without either character is written again as it is: looking first is for speed.",
    changes: [
      ["ConditionalExpression", 'value.includes("\\0") || value.includes(ESCAPE)', "true"],
      ["StringLiteral", '"\\0"', '""'],
    ],
  },
  {
    file: "src/internal/process.ts",
    reason: "What process.kill throws is an error with a code: the checks are for the compiler.",
    changes: [
      ["ConditionalExpression", 'error instanceof Error && "code" in error', "true"],
      ["LogicalOperator", 'error instanceof Error && "code" in error', 'error instanceof Error || "code" in error'],
    ],
  },
  {
    file: "src/internal/process.ts",
    reason: "Linux tells all of this of a process that runs; where a system does not, the tests do not run.",
    changes: [
      ["ConditionalExpression", 'now === ""', "false"],
      ["StringLiteral", '""', '"Stryker was here!"'],
      [
        "MethodExpression",
        '[hostname(), boot, namespace].filter((part) => part !== "")',
        "[hostname(), boot, namespace]",
      ],
      ["ConditionalExpression", 'part !== ""', "true"],
    ],
  },
];

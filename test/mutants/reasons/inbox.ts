/** Why mutants of src/inbox live. */
import type { Reason } from "../reason.ts";

export const INBOX_REASONS: readonly Reason[] = [
  {
    file: "src/inbox/group-commit.ts",
    reason: "A start that is scheduled during a commit does nothing when it runs: not scheduling it is for speed.",
    changes: [["ConditionalExpression", "this.#committing && !this.#mayAcceptInParallel()", "false"]],
  },
  {
    file: "src/inbox/group-commit.ts",
    reason:
      "The caller that scheduled it during a commit had checked, and nothing else takes the waiting accepts meanwhile.",
    changes: [["ConditionalExpression", "this.#mayAcceptInParallel()", "true"]],
  },
  {
    file: "src/inbox/group-commit.ts",
    reason: "A lease names an accept of its batch: the check is for the compiler.",
    changes: [["OptionalChaining", "accepts[index]?.parsed", "accepts[index].parsed"]],
  },
  {
    file: "src/inbox/group-commit.ts",
    reason: "Each batch sets anew whether another one is wanted, before that is read.",
    changes: [["BooleanLiteral", "false", "true"]],
  },
  {
    file: "src/inbox/worker.ts",
    reason: "Only a failure has `permanent`: the other check is for the compiler.",
    changes: [["ConditionalExpression", 'verdict.kind === "failed"', "true"]],
  },
  {
    file: "src/inbox/completion.ts",
    reason: "The check that the switch has all cases is the compiler's.",
    changes: [["ConditionalExpression", "default: return settle satisfies never;", "default:"]],
  },
  {
    file: "src/inbox/copy.ts",
    reason: "Where the two do not hold the same lanes the copy fails, and else it is one whose lanes are counted.",
    changes: [["EqualityOperator", "store === options.to", "store !== options.to"]],
  },
  {
    file: "src/inbox/masking.ts",
    reason:
      "Without the space a label's digits stand closer, so that more is masked: only labels with four such characters in a row differ.",
    changes: [["StringLiteral", '" "', '""']],
  },
  {
    file: "src/inbox/masking.ts",
    reason: "Only a test that says Stryker's own words could tell the list with them from the empty one.",
    changes: [["ArrayDeclaration", "[]", '["Stryker was here"]']],
  },
  {
    file: "src/inbox/gap.ts",
    reason: "From the expected sequence to itself nothing is missing, by the lines that follow too.",
    changes: [["EqualityOperator", "head.sequence <= expected", "head.sequence < expected"]],
  },
  {
    file: "src/inbox/instrumentation.ts",
    reason: "Stryker's words have none of the methods of an instrumentation, and are passed over.",
    changes: [["ArrayDeclaration", "[]", '["Stryker was here"]']],
  },
  {
    file: "src/inbox/instrumentation.ts",
    reason: "Who has no `run` was passed over before: the check is for the compiler.",
    changes: [["OptionalChaining", "observer.run?.(inner)", "observer.run(inner)"]],
  },
  {
    file: "src/inbox/lane.ts",
    reason: "The check that the switch has all cases is the compiler's.",
    changes: [["ConditionalExpression", "default: return request satisfies never;", "default:"]],
  },
  {
    file: "src/inbox/subject.ts",
    reason: "A function that ends without a return gives undefined, which counts as false.",
    changes: [["BlockStatement", "{ return false; }", "{}"]],
  },
  {
    file: "src/inbox/subject.ts",
    reason: "Where nothing is escaped nothing is replaced: looked at first for speed.",
    changes: [
      ["ConditionalExpression", '!written.includes("\\\\")', "false"],
      ["StringLiteral", '"\\\\"', '""'],
    ],
  },
  {
    file: "src/inbox/subject.ts",
    reason: "In bytes that do not hold it only a text with U+FFFD could be found: looked at first for speed.",
    changes: [["ConditionalExpression", "!body.includes(bytes) && !body.includes(BACKSLASH)", "false"]],
  },
  {
    file: "src/inbox/completion.ts",
    reason: "A set of nobody answers as none does; it is let go so that memory does not grow.",
    changes: [["ConditionalExpression", "listeners.size === 0", "false"]],
  },
];

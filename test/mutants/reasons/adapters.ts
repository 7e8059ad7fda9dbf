/** Why mutants of adapters live. */
import type { Reason } from "../reason.ts";

export const ADAPTERS_REASONS: readonly Reason[] = [
  {
    file: "adapters/drain.ts",
    reason: "Whatever stands for a header that is not there is no bearer, and is refused.",
    changes: [["StringLiteral", '""', '"Stryker was here!"']],
  },
  {
    file: "adapters/node-io.ts",
    reason: "Node leaves the header out on HTTP/2 itself, and warns of it once in the life of a process.",
    changes: [["ConditionalExpression", "request.httpVersionMajor > 1", "false"]],
  },
  {
    file: "adapters/node-io.ts",
    reason: "A request that came to a server has a method: the default is for the compiler.",
    changes: [["StringLiteral", '""', '"Stryker was here!"']],
  },
  {
    file: "adapters/node-inspector.ts",
    reason: "A request that came to a server has a method, and every value a name: the defaults are for the compiler.",
    changes: [["StringLiteral", '""', '"Stryker was here!"']],
  },
  {
    file: "adapters/node.ts",
    reason: "A request that came to a server has a target: the default is for the compiler.",
    changes: [["StringLiteral", '""', '"Stryker was here!"']],
  },
  {
    file: "adapters/mounting.ts",
    reason: "The log tells the error's message; its cause is kept for who debugs.",
    changes: [["ObjectLiteral", "{ cause: error, }", "{}"]],
  },
  {
    file: "adapters/mounting.ts",
    reason: "Only an option that is called by Stryker's own words could tell the list with them from the empty one.",
    changes: [["ArrayDeclaration", "[]", '["Stryker was here"]']],
  },
];

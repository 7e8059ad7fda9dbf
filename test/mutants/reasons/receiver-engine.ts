/** Why mutants of src/receiver's engine, of what it takes in and of what it answers live. */
import type { Reason } from "../reason.ts";

export const RECEIVER_ENGINE_REASONS: readonly Reason[] = [
  {
    file: "src/receiver/engine.ts",
    reason: "What is no duplicate has neither a conflict nor a state to be final by: the check is for the compiler.",
    changes: [["ConditionalExpression", 'acceptance.outcome === "duplicate"', "true"]],
  },
  {
    file: "src/receiver/http.ts",
    reason: "Whatever is neither done nor dead is answered alike.",
    changes: [["StringLiteral", '"put_back"', '""']],
  },
];

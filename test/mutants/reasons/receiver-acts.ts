/** Why mutants of the receiver's acts, housekeeping and channels live. */
import type { Reason } from "../reason.ts";

export const RECEIVER_ACTS_REASONS: readonly Reason[] = [
  {
    file: "src/receiver/bulk.ts",
    reason: "It saves a look at the lane: what is settled or not begun is left out below too.",
    changes: [
      ["ConditionalExpression", 'state !== "pending" || attempts === 0', "false"],
      ["LogicalOperator", 'state !== "pending" || attempts === 0', 'state !== "pending" && attempts === 0'],
      ["ConditionalExpression", 'state !== "pending"', "false"],
      ["ConditionalExpression", "attempts === 0", "false"],
    ],
  },
  {
    file: "src/receiver/bulk.ts",
    reason: "In a leased lane one event was begun at least: the check is for the compiler.",
    changes: [
      [
        "OptionalChaining",
        "(begun.find(({ late }) => !late) ?? begun[0])?.id",
        "(begun.find(({ late }) => !late) ?? begun[0]).id",
      ],
    ],
  },
  {
    file: "src/receiver/bulk.ts",
    reason:
      "Whoever acts is the application where `by` is undefined, as where it is absent: the types tell them apart.",
    changes: [["ConditionalExpression", "by === undefined", "false"]],
  },
  {
    file: "src/inbox/instrumentation.ts",
    reason:
      "Without a subscriber nothing is made for the channels anyway: that they do not listen saves the time to ask.",
    changes: [
      ["ConditionalExpression", "deliveries.hasSubscribers || handlers.hasSubscribers", "true"],
      ["ArrowFunction", "() => deliveries.hasSubscribers || handlers.hasSubscribers", "() => undefined"],
    ],
  },
  {
    file: "src/receiver/operator.ts",
    reason: "After an act that was refused there is nothing to look for, and looking in vain changes nothing.",
    changes: [["ConditionalExpression", "result?.ok !== false", "true"]],
  },
];

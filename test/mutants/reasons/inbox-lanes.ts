/** Why mutants of the lanes and of the worker live. */
import type { Reason } from "../reason.ts";

export const INBOX_LANES_REASONS: readonly Reason[] = [
  {
    file: "src/inbox/lane.ts",
    reason: "A lane that waits for a gap has a head: the check is for the compiler.",
    changes: [["ConditionalExpression", "head === null", "false"]],
  },
  {
    file: "src/inbox/lane.ts",
    reason: "An event at the cursor was in its turn, so that no gap is waited for any more when it is leased.",
    changes: [["EqualityOperator", "lane.cursor >= sequence", "lane.cursor > sequence"]],
  },
  {
    file: "src/inbox/lane.ts",
    reason: "An operator cannot end a leased event (`in_progress`), so it is pending.",
    changes: [["ConditionalExpression", 'event?.state === "pending"', "true"]],
  },
  {
    file: "src/inbox/lane-state.ts",
    reason: "A new lane is armed with its first event, whatever its status was before.",
    changes: [["StringLiteral", '"idle"', '""']],
  },
  {
    file: "src/inbox/worker.ts",
    reason: "The batch has no event at the index null, and returns null: the check is for the compiler.",
    changes: [["ConditionalExpression", "lease.acceptIndex === null", "false"]],
  },
];

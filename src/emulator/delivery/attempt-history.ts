/** The attempts that a delivery keeps: few enough, and short enough, that a receiver's long answers do not fill the memory. */
import type { Attempt, Delivery } from "../state/records.ts";

const MOST_ATTEMPTS = 100;
/** Of an answer that is not the newest. */
const OLDER_ANSWER_BYTES = 1_024;
const CUT_MARK = " [cut]";

type History = Pick<Delivery, "attempts" | "droppedAttempts">;

/**
 * A delivery's attempts with one more: only the newest has its whole answer. Of more than 100, the oldest that somebody asked for
 * goes; the scheduled ones, five at the most, stay.
 */
export function withAttempt({ attempts, droppedAttempts }: History, attempt: Attempt): History {
  const all = [...attempts.slice(0, -1), ...attempts.slice(-1).map(withCutAnswer), attempt];
  if (all.length <= MOST_ATTEMPTS) return { attempts: all, droppedAttempts };
  const oldest = all.findIndex(({ trigger }) => trigger !== "schedule");
  return { attempts: all.toSpliced(Math.max(0, oldest), 1), droppedAttempts: droppedAttempts + 1 };
}

/** How many were made, with those that are no longer kept. */
export function countOf({ attempts, droppedAttempts }: History): number {
  return attempts.length + droppedAttempts;
}

/** An answer that was cut before is short enough. */
function withCutAnswer(attempt: Attempt): Attempt {
  const bytes = Buffer.from(attempt.responseBody);
  if (bytes.length <= OLDER_ANSWER_BYTES) return attempt;
  // A character that the limit cuts in two is left out.
  const kept = bytes.subarray(0, OLDER_ANSWER_BYTES - CUT_MARK.length);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(kept, { stream: true });
  return { ...attempt, responseBody: text + CUT_MARK };
}

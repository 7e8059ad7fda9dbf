/** The steps of bulk work, and what is said of them: counted, then done, stopped or failed. Pure. */
import { count as written } from "./parts/format.js";

/**
 * `counts` are those of the step that ended last, `upTo` is the newest row that was counted; `isLeaving`: asked to close while it runs.
 *
 * @import { BulkLine } from "../api.ts"
 * @typedef {Readonly<Record<string, number>>} Counts
 * @typedef {"counting" | "counted" | "running" | "done" | "stopped" | "failed"} Step
 * @typedef {{ step: Step, done: number, total: number, counts: Counts, code: string, upTo?: number, isLeaving: boolean }} BulkState
 * @typedef {BulkLine | { kind: "count" | "run" | "stop" | "leave" | "stay" }} BulkAction
 */

/** @type {BulkState} */
export const COUNTING = { step: "counting", done: 0, total: 0, counts: {}, code: "", isLeaving: false };

/** What comes out of turn changes nothing. @param {BulkState} state @param {BulkAction} action @returns {BulkState} */
export function bulkStep(state, action) {
  const { kind, ...facts } = action;
  const runs = state.step === "running";
  const goesOn = runs || state.step === "counting";
  if (kind === "count") return runs ? state : COUNTING;
  if (kind === "run") return state.step === "counted" ? { ...COUNTING, step: "running" } : state;
  if (kind === "leave" || kind === "stay") return { ...state, isLeaving: runs && kind === "leave" };
  if (!goesOn || (kind === "stop" && !runs)) return state;
  if (kind === "progress") return { ...state, ...facts };
  if (kind === "done" && action.dryRun === runs) return state;
  const step = kind === "stop" ? "stopped" : kind === "failed" ? "failed" : runs ? "done" : "counted";
  return { ...state, ...facts, step, isLeaving: false };
}

/** What the act was done on, or would be. */
const MAIN = ["replayed", "discarded", "unblocked"];

/** What is said of others, behind "is" or "are". @type {Record<string, string>} */
const WORDS = {
  in_progress: "being handled now",
  body_pruned: "without a body by now",
  not_found: "gone",
  wrong_state: "no longer in that state",
  invalid_event: "still no event",
};

/** @param {Counts} counts @returns {number} */
export function mainCount(counts) {
  return MAIN.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}

/** `4,812 would be replayed, 188 are superseded.` @param {Counts} counts @param {{ dryRun: boolean }} of */
export function countsText(counts, { dryRun }) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const texts = parts.map(([name, count]) => {
    const verb = MAIN.includes(name)
      ? dryRun
        ? "would be"
        : count === 1
          ? "was"
          : "were"
      : count === 1
        ? "is"
        : "are";
    return `${written(count)} ${verb} ${WORDS[name] ?? name.replaceAll("_", " ")}`;
  });
  return texts.length === 0 ? "Nothing matches." : `${texts.join(", ")}.`;
}

/** What is told of a step. @param {BulkState} state @returns {string} */
export function told({ step, done, total, counts, code }) {
  if (step === "counting") return "Counting…";
  if (step === "running") return "Working…";
  if (step === "failed") return `It did not get to its end: ${code.replace(/\.$/, "")}. Ask again for the rest.`;
  if (step === "stopped") return `Stopped after about ${written(done)} of ${written(total)}. Ask again for the rest.`;
  return countsText(counts, { dryRun: step === "counted" });
}

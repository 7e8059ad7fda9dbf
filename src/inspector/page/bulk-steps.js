/** The steps of bulk work, and what is said of them: counted, then done, stopped or failed. Pure. */

import { count as written } from "./parts/format.js";

/** @typedef {import("../api.ts").BulkLine} BulkLine */
/** @typedef {Readonly<Record<string, number>>} Counts */

/**
 * @typedef {object} BulkState
 * @property {"counting" | "counted" | "running" | "ended"} step
 * @property {number} done
 * @property {number} total
 * @property {Counts} counts of the step that ended last
 * @property {"done" | "stopped" | "failed" | null} end
 * @property {string} message what to do about a failure
 * @property {boolean} isLeaving asked to close while it runs
 */

/**
 * @typedef {{ kind: "count" | "run" | "stop" | "leave" | "stay" } | { kind: "line", line: BulkLine }
 *   | { kind: "broken", message: string }} BulkStepAction
 */

/** @type {BulkState} */
export const COUNTING = { step: "counting", done: 0, total: 0, counts: {}, end: null, message: "", isLeaving: false };

/** @param {BulkState} state @param {BulkStepAction} action @returns {BulkState} */
export function bulkStep(state, action) {
  const runs = state.step === "running";
  switch (action.kind) {
    case "count":
      return runs ? state : COUNTING;
    case "run":
      return state.step === "counted" ? { ...COUNTING, step: "running", counts: state.counts } : state;
    case "stop":
      return runs ? ended(state, { end: "stopped" }) : state;
    case "leave":
      return runs ? { ...state, isLeaving: true } : state;
    case "stay":
      return { ...state, isLeaving: false };
    case "broken":
      return runs || state.step === "counting" ? ended(state, { end: "failed", message: action.message }) : state;
    case "line":
      return runs || state.step === "counting" ? afterLine(state, action.line) : state;
  }
}

/** @param {BulkState} state @param {BulkLine} line @returns {BulkState} */
function afterLine(state, line) {
  if (line.kind === "progress") return { ...state, done: line.done, total: line.total };
  if (line.kind === "failed") return ended(state, { end: "failed", message: failureText(line.code) });
  const { counts, dryRun } = line;
  if (dryRun !== (state.step === "counting")) return state;
  return dryRun ? { ...state, step: "counted", counts } : ended(state, { end: "done", counts });
}

/** @param {BulkState} state @param {Partial<BulkState>} facts @returns {BulkState} */
function ended(state, facts) {
  return { ...state, step: "ended", isLeaving: false, ...facts };
}

/** @param {string} code */
function failureText(code) {
  return `The inbox could not go on (${code}). Ask again for the rest.`;
}

/** What the act was done on, or would be. */
const MAIN = ["replayed", "discarded", "unblocked"];

/** How one and how many are told. @type {Record<string, [string, string]>} */
const WORDS = {
  superseded: ["is superseded", "are superseded"],
  in_progress: ["is being handled now", "are being handled now"],
  body_pruned: ["has no body any more", "have no body any more"],
  not_found: ["is gone", "are gone"],
  wrong_state: ["was changed by somebody else", "were changed by somebody else"],
  invalid_event: ["is still no event", "are still no event"],
};

/** @param {Counts} counts @returns {number} */
export function mainCount(counts) {
  return MAIN.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
}

/** "4,812 would be replayed, 188 are superseded." @param {Counts} counts @param {{ dryRun: boolean }} of */
export function countsText(counts, { dryRun }) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  if (parts.length === 0) return "Nothing matches.";
  return `${parts.map(([name, count]) => `${written(count)} ${words(name, count, dryRun)}`).join(", ")}.`;
}

/** @param {string} name @param {number} count @param {boolean} dryRun */
function words(name, count, dryRun) {
  if (MAIN.includes(name)) return `${dryRun ? "would be" : count === 1 ? "was" : "were"} ${name}`;
  return WORDS[name]?.[count === 1 ? 0 : 1] ?? name.replaceAll("_", " ");
}

/** Null without a rate. @param {number} count @param {string} ratePerSecond as it was typed @returns {number | null} */
export function secondsNeeded(count, ratePerSecond) {
  const rate = Number(ratePerSecond);
  return rate > 0 ? Math.ceil(count / rate) : null;
}

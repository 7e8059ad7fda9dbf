/** What held events back, and for how long: events that waited for the same at the same time are told of together. */
import { duration } from "../parts/format.js";
import { whatOf } from "./story.js";

/**
 * @typedef {import("../../api.ts").DrawnGap} DrawnGap
 * @typedef {Omit<import("../../api.ts").DrawnHold, "from" | "to"> & { from: number, to: number, who: number[] }} Wait
 * @typedef {{ kind: string, since: number, until: number | null, text: string }} Band
 */

/** Below it, that another event is handled first is no story. */
const TURN_MS = 1_000;
/** From so many kinds of waiting on, all gaps at a time are one. */
const MANY = 6;

/** @param {import("../../api.ts").Drawing} drawing @returns {Band[]} */
export function bandsOf({ events, gaps, now }) {
  const waits = [
    ...events.flatMap(({ sequence, held }) =>
      held ? [{ ...held, from: held.from ?? 0, to: held.to ?? 0, who: [sequence] }] : [],
    ),
    ...gaps.map(({ from, to, since, until }) => ({
      reason: /** @type {const} */ ("gap"),
      from,
      to,
      since,
      until,
      who: [],
    })),
  ].filter(({ reason, since, until }) => reason !== "turn" || (until ?? now) - since >= TURN_MS);
  waits.sort((a, b) => a.since - b.since);
  const together = joined(waits, (a, b) => a.from <= b.to && b.from <= a.to);
  const shown = together.length < MANY ? together : joined(together, () => true);
  return shown.map((wait) => bandOf(wait, gaps));
}

/** @param {Wait[]} waits @param {(a: Wait, b: Wait) => boolean} isSame @returns {Wait[]} */
function joined(waits, isSame) {
  /** @type {Wait[]} */
  const groups = [];
  for (const wait of waits) {
    const at = groups.findIndex((one) => one.reason === wait.reason && isSame(one, wait) && endOf(one) >= wait.since);
    const group = groups[at];
    if (group === undefined) groups.push(wait);
    else {
      const until = Math.max(endOf(group), endOf(wait));
      groups[at] = {
        ...group,
        from: Math.min(group.from, wait.from),
        to: Math.max(group.to, wait.to),
        until: until === Infinity ? null : until,
        who: [...group.who, ...wait.who],
      };
    }
  }
  return groups;
}

/** @param {{ until: number | null }} wait */
const endOf = ({ until }) => until ?? Infinity;

/** @param {Wait} wait @param {readonly DrawnGap[]} gaps @returns {Band} */
function bandOf({ reason, from, to, since, until, who }, gaps) {
  const gap = gaps.find(
    (one) => one.from <= to && from <= one.to && one.since <= (until ?? Infinity) && endOf(one) >= since,
  );
  const ending = until === null ? "open" : gap?.skipped ? "skipped" : "filled";
  const names = who.length > 3 ? `${who.length} events` : who.join(", ");
  const waited = until === null ? (who.length > 1 ? "wait" : "waits") : `waited ${duration(until - since)}`;
  const text = `${names} ${waited} ${whatOf({ reason, from, to })}`.trim();
  if (reason !== "gap") return { kind: reason, since, until, text };
  const end = { open: "still missing", skipped: "given up", filled: "then it came" }[ending];
  return { kind: `gap ${ending}`, since, until, text: `${text}: ${end}` };
}

/** What held events back, and for how long: those that waited for the same at the same time are told of together. */
import { duration } from "../parts/format.js";
import { whatOf } from "./story.js";

/**
 * @typedef {import("../../api.ts").DrawnHold["reason"]} Reason
 * @typedef {{ reason: Reason, from: number, to: number, since: number, end: number, who: number[], gap?: import("../../api.ts").DrawnGap }} Wait
 * @typedef {{ kind: string, since: number, until: number | null, text: string }} Band
 */

/** Below it, that another event is handled first is no story. */
const TURN_MS = 1_000;

/** @param {import("../../api.ts").Drawing} drawing @returns {Band[]} */
export function bandsOf({ events, gaps, now }) {
  /** @param {{ from: number | null, to: number | null, since: number, until: number | null }} span @param {Pick<Wait, "reason" | "who" | "gap">} facts @returns {Wait} */
  const wait = ({ from, to, since, until }, facts) => ({
    ...facts,
    from: from ?? 0,
    to: to ?? 0,
    since,
    end: until ?? Infinity,
  });
  const waits = [
    ...events.flatMap(({ sequence, held }) => (held ? [wait(held, { reason: held.reason, who: [sequence] })] : [])),
    ...gaps.map((gap) => wait(gap, { reason: "gap", who: [], gap })),
  ].filter(({ reason, since, end }) => reason !== "turn" || Math.min(end, now) - since >= TURN_MS);
  /** @type {Wait[]} */
  const groups = [];
  for (const one of waits.sort((a, b) => a.since - b.since)) {
    const group = groups.find((other) => isSame(one, other));
    if (group === undefined) groups.push(one);
    else {
      group.from = Math.min(group.from, one.from);
      group.to = Math.max(group.to, one.to);
      group.end = Math.max(group.end, one.end);
      group.who.push(...one.who);
      // One that was given up is what the message tells of the others too.
      if (!group.gap || one.gap?.skipped) group.gap = one.gap;
    }
  }
  return groups.map(bandOf);
}

/** @param {Wait} a @param {Wait} b */
const isSame = (a, b) => a.reason === b.reason && a.from <= b.to && b.from <= a.to && a.since <= b.end;

/** @param {Wait} wait @returns {Band} */
function bandOf({ reason, from, to, since, end, who, gap }) {
  const until = end === Infinity ? null : end;
  const names = who.length > 3 ? `${who.length} events` : who.join(", ");
  const waited = until !== null ? `waited ${duration(until - since)}` : who.length > 1 ? "wait" : "waits";
  const text = `${names} ${waited} ${whatOf({ reason, from, to })}`;
  if (gap === undefined) return { kind: until === null ? "open" : reason, since, until, text };
  const [kind, ending] =
    until === null ? ["open", "still missing"] : gap.skipped ? ["skipped", "given up"] : ["filled", "then it came"];
  return { kind, since, until, text: `${text}: ${ending}` };
}

/** What happened to a message, in sentences that say what the drawing shows. */
import { clockTime, duration } from "../parts/format.js";

/**
 * @typedef {import("../../api.ts").Drawing} Drawing
 * @typedef {import("../../api.ts").DrawnEvent} DrawnEvent
 * @typedef {import("../../api.ts").DrawnHold} DrawnHold
 * @typedef {import("../../api.ts").Message} Message
 */

/** What the events that end a message tell. @type {Readonly<Record<string, string>>} */
const ENDS = { "message.delivery": "Delivered", "message.failed": "Not delivered", "message.inbound": "Received" };

const ORDINALS = ["", "first", "second", "third"];

/** `2`, or `2–4` @param {{ from: number | null, to: number | null }} range */
export const rangeOf = ({ from, to }) => (from === to ? `${from}` : `${from}–${to}`);

/** What has no place in a sequence has the number 0. @param {DrawnEvent} event */
const nameOf = ({ eventType, sequence }) => (sequence === 0 ? eventType : `${eventType} (${sequence})`);

/**
 * Did the customer get that message, and why not?
 *
 * @param {Drawing} drawing
 * @param {string | null} [code] why it failed
 * @returns {string}
 */
export function summaryOf({ events, gaps, now }, code = null) {
  const news = events.toSorted((a, b) => b.sequence - a.sequence || b.id - a.id);
  const end = news.find(({ eventType }) => eventType in ENDS);
  const why = code !== null && end?.eventType === "message.failed" ? `: ${code}` : "";
  if (end) return `${ENDS[end.eventType]}${why}. ${nameOf(end)} ${fateOf(end, now)}.`;
  const gap = gaps.find(({ until }) => until === null);
  if (gap) return `Not known yet: ${missing(gap)}, waited for since ${clockTime(gap.since, now)}.`;
  const told = news.find(({ state }) => state === "dead") ?? news[0];
  if (told === undefined) return "Nothing of it is kept.";
  const unknown = told.eventType.startsWith("message.") ? "Not known yet: " : "";
  return `${unknown}${nameOf(told)} ${fateOf(told, now)}.`;
}

/** @param {import("../../api.ts").DrawnGap} gap */
const missing = (gap) =>
  gap.from === gap.to ? `sequence ${gap.from} is missing` : `sequences ${rangeOf(gap)} are missing`;

/** How a message stands. @param {Pick<Message, "status" | "readyAt" | "drawing">} message @returns {string} */
export function statusOf({ status, readyAt, drawing: { events, gaps, now } }) {
  const until = readyAt === null ? "" : ` until ${clockTime(readyAt, now)}`;
  const gap = gaps.find((one) => one.until === null);
  const dead = events.filter(({ state }) => state === "dead").length;
  if (status === "gap") return `Waits for ${gap ? `sequence ${rangeOf(gap)}` : "a missing event"}${until}`;
  if (status === "blocked") return "Blocked behind a dead letter";
  if (status === "leased") return "Is being handled";
  if (status === "backoff")
    return `Failed, and is tried again ${readyAt === null ? "" : `at ${clockTime(readyAt, now)}`}`;
  if (status === "ready") return "Is about to be handled";
  if (dead > 0) return dead === 1 ? "All settled, with a dead letter" : `All settled, with ${dead} dead letters`;
  return events.every(({ outcome }) => outcome === "handled") ? "All handled" : "All settled";
}

/** @param {import("../../api.ts").DrawnEnd} end */
export function endOf({ state, eventType }) {
  const words = { ended: "Ended", open: "All settled", waiting: "Waits", blocked: "Blocked", failed: "Dead letter" };
  return (state === "ended" && ENDS[eventType ?? ""]) || words[state];
}

/** What became of an event, as the end of a sentence. @param {DrawnEvent} event @param {number} now @returns {string} */
export function fateOf(event, now) {
  const { state, outcome, held, attempts, attemptCount, finishedAt, startedAt } = event;
  const at = ` at ${clockTime(finishedAt, now)}`;
  const tries = attemptCount === 1 ? "" : `, at attempt ${attemptCount}`;
  const code = attempts.at(-1)?.errorCode;
  if (state === "late") return "came late, and was recorded without being handled";
  if (state === "discarded") return `was discarded${at}`;
  if (state === "dead") return `is a dead letter: handling it failed${at}${tries}${code ? `, ${code}` : ""}`;
  if (outcome === "unhandled")
    return `came at ${clockTime(event.acceptedAt, now)}, and the application has no handler for it`;
  if (state === "done")
    return `${event.late ? "came late, and " : ""}was handled${at}${event.replayed ? " by a replay" : tries}`;
  if (held?.until === null) return `waits ${whatOf(held)} since ${clockTime(held.since, now)}`;
  if (code) return `failed with ${code}, and is tried again`;
  return startedAt === null || event.replayed ? "waits to be handled" : "is being handled";
}

/** `held 2.1 s for 2` @param {DrawnHold} hold @param {number} now */
export function holdOf(hold, now) {
  const { since, until } = hold;
  return until === null
    ? `held ${whatOf(hold)} since ${clockTime(since, now)}`
    : `held ${duration(until - since)} ${whatOf(hold)}`;
}

/** @param {{ reason: DrawnHold["reason"], from: number | null, to: number | null }} hold */
export const whatOf = (hold) =>
  ({ gap: `for ${rangeOf(hold)}`, turn: "for its turn", blocked: "behind a dead letter" })[hold.reason];

/** All that the picture tells of an event. @param {DrawnEvent} event @param {Drawing} drawing @returns {string} */
export function eventWords(event, { events, now }) {
  const { arrival, held } = event;
  const place = ORDINALS[arrival] ?? `number ${arrival}`;
  return [
    `${event.sequence} ${event.eventType}`,
    `arrived ${clockTime(event.acceptedAt, now)} ${place} of ${events.length}`,
    ...marksOf(event),
    ...(held && held.until !== null ? [holdOf(held, now)] : []),
    fateOf(event, now),
  ].join(", ");
}

/** @param {DrawnEvent} event @returns {string[]} */
export function marksOf({ duplicates, conflict, late, replayed }) {
  const repeats = duplicates === 1 ? "1 duplicate" : `${duplicates} duplicates`;
  const marks = { [repeats]: duplicates > 0, conflict, late, replayed };
  return Object.keys(marks).filter((mark) => marks[mark]);
}

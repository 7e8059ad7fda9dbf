/** What happened to a message, in sentences that say what the drawing shows. */
import { clockTime, duration } from "../parts/format.js";

/**
 * @typedef {import("../../api.ts").Drawing} Drawing
 * @typedef {import("../../api.ts").DrawnEvent} DrawnEvent
 * @typedef {import("../../api.ts").DrawnHold} DrawnHold
 */

/** What the events that end a message tell. No object: an event type may be one's own name, such as `constructor`. */
const ENDS = new Map([
  ["message.delivery", "Delivered"],
  ["message.failed", "Not delivered"],
  ["message.inbound", "Received"],
]);

/** `2`, or `2–4` @param {{ from: number | null, to: number | null }} range */
export const rangeOf = ({ from, to }) => (from === to ? `${from}` : `${from}–${to}`);

/** What has no place in a sequence has the number 0. @param {DrawnEvent} event */
const nameOf = ({ eventType, sequence }) => (sequence === 0 ? eventType : `${eventType} (${sequence})`);

/**
 * Did the customer get that message, and why not?
 *
 * @param {Drawing} drawing
 * @param {string | null} [code] why it failed
 */
export function summaryOf({ events, gaps, now }, code = null) {
  const news = events.toSorted((a, b) => b.sequence - a.sequence || b.id - a.id);
  const end = news.find(({ eventType }) => ENDS.has(eventType));
  const gap = gaps.find(({ until }) => until === null);
  const told = end ?? news.find(({ state }) => state === "dead") ?? news[0];
  if (told === undefined) return "Nothing of it is kept.";
  if (end === undefined && gap) {
    const missing = gap.from === gap.to ? `sequence ${gap.from} is` : `sequences ${rangeOf(gap)} are`;
    return `Not known yet: ${missing} missing, waited for since ${clockTime(gap.since, now)}.`;
  }
  const why = code !== null && end?.eventType === "message.failed" ? `: ${code}` : "";
  const answer = end ? `${ENDS.get(end.eventType)}${why}. ` : told.sequence > 0 ? "Not known yet: " : "";
  return `${answer}${nameOf(told)} ${fateOf(told, now)}.`;
}

/** How a message stands. @param {Pick<import("../../api.ts").Message, "status" | "readyAt" | "drawing">} message */
export function statusOf({ status, readyAt, drawing: { events, gaps, now } }) {
  const gap = gaps.find(({ until }) => until === null);
  const at = readyAt === null ? "soon" : clockTime(readyAt, now);
  const dead = events.filter(({ state }) => state === "dead").length;
  const settled = events.every(({ outcome }) => outcome === "handled") ? "All handled" : "All settled";
  return {
    gap: `Waits for ${gap ? `sequence ${rangeOf(gap)}` : "a missing event"} until ${at}`,
    blocked: "Blocked behind a dead letter",
    leased: "Is being handled",
    backoff: `Failed, and is tried again at ${at}`,
    ready: "Is about to be handled",
    idle: dead > 1 ? `${settled}, with ${dead} dead letters` : dead > 0 ? `${settled}, with a dead letter` : settled,
  }[status];
}

/** Nothing where there is no order. @param {Pick<import("../../api.ts").Message, "tag" | "cursor">} message */
export function cursorOf({ tag, cursor }) {
  if (tag !== "outbound") return "";
  return cursor === null ? "none handed out" : `cursor ${cursor}`;
}

/** @param {import("../../api.ts").DrawnEnd} end */
export function endOf({ state, eventType }) {
  const words = { ended: "Ended", open: "All settled", waiting: "Waits", blocked: "Blocked", failed: "Dead letter" };
  return (state === "ended" && ENDS.get(eventType ?? "")) || words[state];
}

/** What became of an event, as the end of a sentence. @param {DrawnEvent} event @param {number} now */
export function fateOf(
  { state, outcome, held, attempts, attemptCount, acceptedAt, finishedAt, startedAt, late, replayed },
  now,
) {
  const at = ` at ${clockTime(finishedAt, now)}`;
  const tries = attemptCount > 1 ? `, at attempt ${attemptCount}` : "";
  const code = attempts.at(-1)?.errorCode;
  if (state === "late") return "came late, and was recorded without being handled";
  if (state === "discarded") return `was discarded${at}`;
  if (state === "dead") return `is a dead letter: handling it failed${at}${tries}${code ? `, ${code}` : ""}`;
  if (outcome === "unhandled")
    return `came at ${clockTime(acceptedAt, now)}, and the application has no handler for it`;
  if (state === "done") return `${late ? "came late, and " : ""}was handled${at}${replayed ? " by a replay" : tries}`;
  if (held?.until === null) return `waits ${whatOf(held)} since ${clockTime(held.since, now)}`;
  if (code) return `failed with ${code}, and is tried again`;
  return startedAt === null || replayed ? "waits to be handled" : "is being handled";
}

/** `held 2.1 s for 2` @param {DrawnHold} hold @param {number} now */
export function holdOf(hold, now) {
  const { since, until } = hold;
  const what = whatOf(hold);
  return until === null ? `held ${what} since ${clockTime(since, now)}` : `held ${duration(until - since)} ${what}`;
}

/** @param {Pick<DrawnHold, "reason" | "from" | "to">} hold */
export const whatOf = (hold) =>
  ({ gap: `for ${rangeOf(hold)}`, turn: "in line", blocked: "behind a dead letter" })[hold.reason];

/** All that the picture tells of an event. @param {DrawnEvent} event @param {Drawing} drawing */
export function eventWords(event, { events, now }) {
  const { arrival, held } = event;
  const place = ["first", "second", "third"][arrival - 1] ?? `number ${arrival}`;
  return [
    `${event.sequence} ${event.eventType}`,
    `arrived ${clockTime(event.acceptedAt, now)} ${place} of ${events.length}`,
    ...marksOf(event),
    ...(held && held.until !== null ? [holdOf(held, now)] : []),
    fateOf(event, now),
  ].join(", ");
}

/** @param {DrawnEvent} event @returns {string[]} */
export function marksOf(event) {
  const { duplicates } = event;
  const repeats = `${duplicates} duplicate${duplicates === 1 ? "" : "s"}`;
  return duplicates > 0 ? [repeats, ...flagsOf(event)] : flagsOf(event);
}

/** @param {DrawnEvent} event */
export function flagsOf({ conflict, late, replayed }) {
  return Object.entries({ conflict, late, replayed }).flatMap(([flag, isSet]) => (isSet ? [flag] : []));
}

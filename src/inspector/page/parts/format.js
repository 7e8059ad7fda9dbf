/** Times, ages and counts in words that are quick to read. Times are epoch milliseconds, shown in the browser's time zone. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LONGEST_ID = 12;
const NUMBER = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const FRACTION = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });

/** `2026-11-22 13:09:16.204` @param {number | null} ms @returns {string} */
export function time(ms) {
  return ms === null ? "–" : `${dateOf(ms)} ${clockOf(ms)}.${pad(new Date(ms).getMilliseconds(), 3)}`;
}

/** `13:09:16` today, with its date before on another day. @param {number | null} ms @param {number} [now] @returns {string} */
export function clockTime(ms, now = Date.now()) {
  if (ms === null) return "–";
  return dateOf(ms) === dateOf(now) ? clockOf(ms) : `${dateOf(ms).slice(5)} ${clockOf(ms)}`;
}

/** How long ago: `3 s ago`. Clocks differ, so what lies ahead is now. @param {number | null} ms @param {number} [now] @returns {string} */
export function age(ms, now = Date.now()) {
  if (ms === null) return "never";
  return now - ms < SECOND ? "now" : `${duration(now - ms)} ago`;
}

/** `340 ms`, `2.5 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h` @param {number | null} ms @returns {string} */
export function duration(ms) {
  if (ms === null) return "–";
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${Math.floor(ms / 100) / 10} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, [MINUTE, "min"], [SECOND, "s"]);
  return ms < DAY ? pair(ms, [HOUR, "h"], [MINUTE, "min"]) : pair(ms, [DAY, "d"], [HOUR, "h"]);
}

/** `12,408`; below ten with a tenth. @param {number} n @returns {string} */
export function count(n) {
  return (Math.abs(n) < 10 ? FRACTION : NUMBER).format(n);
}

/** The beginning and the end of an id, which is what people compare. @param {string} id @returns {string} */
export function shortId(id) {
  return id.length <= LONGEST_ID ? id : `${id.slice(0, 6)}…${id.slice(-4)}`;
}

/** @param {number} ms @param {[number, string]} large @param {[number, string]} small @returns {string} */
function pair(ms, [large, largeName], [small, smallName]) {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest === 0 ? "" : ` ${rest} ${smallName}`}`;
}

/** @param {number} ms @returns {string} */
function dateOf(ms) {
  const date = new Date(ms);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** @param {number} ms @returns {string} */
function clockOf(ms) {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => pad(part)).join(":");
}

/** @param {number} part @param {number} [length] @returns {string} */
function pad(part, length = 2) {
  return `${part}`.padStart(length, "0");
}

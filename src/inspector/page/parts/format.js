/** Times, ages and counts in few words. Times are epoch milliseconds, shown in the browser's time zone. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `2026-11-22 13:09:16.204` @param {number | null} ms */
export function time(ms) {
  return ms === null ? "–" : local(ms).replace("T", " ");
}

/** `13:09:16` today, else `11-22 13:09:16`. @param {number | null} ms @param {number} [now] */
export function clockTime(ms, now = Date.now()) {
  const isToday = local(ms ?? 0).slice(0, 10) === local(now).slice(0, 10);
  return time(ms).slice(isToday ? 11 : 5, 19) || "–";
}

/** `3 s ago`. Clocks differ, so what lies ahead is now. @param {number | null} ms @param {number} [now] */
export function age(ms, now = Date.now()) {
  if (ms === null) return "never";
  return now - ms < SECOND ? "now" : `${duration(now - ms)} ago`;
}

/** `340 ms`, `2.5 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h` @param {number | null} ms */
export function duration(ms) {
  if (ms === null) return "–";
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < MINUTE) return `${ms < 10 * SECOND ? Math.floor(ms / 100) / 10 : Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, [MINUTE, "min"], [SECOND, "s"]);
  return ms < DAY ? pair(ms, [HOUR, "h"], [MINUTE, "min"]) : pair(ms, [DAY, "d"], [HOUR, "h"]);
}

/** `12,408`; below ten with a tenth. Not by `Intl`, whose first use takes a tenth of the time to the first rows. @param {number} n */
export function count(n) {
  return `${n < 10 ? Math.round(n * 10) / 10 : Math.round(n)}`.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** The beginning and the end of an id, which is what people compare. @param {string} id */
export function shortId(id) {
  return id.length <= 12 ? id : `${id.slice(0, 6)}…${id.slice(-4)}`;
}

/** @param {number} ms @param {[number, string]} large @param {[number, string]} small */
function pair(ms, [large, name], [small, smallName]) {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${name}${rest ? ` ${rest} ${smallName}` : ""}`;
}

/** `2026-11-22T13:09:16.204`; the number itself where no date can hold what a sender calls a time. @param {number} ms */
function local(ms) {
  return new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE).toJSON()?.slice(0, -1) ?? `${ms}`;
}

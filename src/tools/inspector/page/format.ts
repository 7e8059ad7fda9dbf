/** Times, durations, counts and names as short texts. Times are epoch milliseconds, shown in the browser's time zone. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Unit = readonly [ms: number, name: string];

const UNITS: readonly Unit[] = [
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** `2026-11-22 13:09:16.204` */
export function formatTime(ms: number | null): string {
  return ms === null ? "–" : localIso(ms).replace("T", " ");
}

/** `13:09:16` today, `11-22 13:09:16` on any other day. */
export function formatClock(ms: number | null, now = Date.now()): string {
  if (ms === null) return "–";
  const isToday = localIso(ms).slice(0, 10) === localIso(now).slice(0, 10);
  return formatTime(ms).slice(isToday ? 11 : 5, 19);
}

/** `3 min ago`, in whole units. The clocks of server and browser differ, so a time in the future counts as now. */
export function formatAge(ms: number | null, now = Date.now()): string {
  if (ms === null) return "never";
  const [size, name] = UNITS.find(([unit]) => now - ms >= unit) ?? [];
  return size === undefined ? "now" : `${Math.floor((now - ms) / size)} ${name} ago`;
}

/** `340 ms`, `2.5 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h` */
export function formatDuration(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${Math.floor(ms / 100) / 10} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return inTwoUnits(ms, [MINUTE, "min"], [SECOND, "s"]);
  if (ms < DAY) return inTwoUnits(ms, [HOUR, "h"], [MINUTE, "min"]);
  return inTwoUnits(ms, [DAY, "d"], [HOUR, "h"]);
}

/** `12,408`; with a tenth below ten. Without `Intl`: its first use takes a tenth of the time to the first rows. */
export function formatCount(n: number): string {
  const rounded = n < 10 ? Math.round(n * 10) / 10 : Math.round(n);
  return `${rounded}`.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** The name of a lane, or the id of an event by itself. */
export function nameOf(lane: string | null, ownId: string | null | undefined): string {
  return lane ?? ownId ?? "no id";
}

/** `stripe`, or with a tenant `service · apc_1` */
export function sourceOf({ source, tenant }: { readonly source: string; readonly tenant: string | null }): string {
  return tenant === null ? source : `${source} · ${tenant}`;
}

function inTwoUnits(ms: number, [large, largeName]: Unit, [small, smallName]: Unit): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest > 0 ? ` ${rest} ${smallName}` : ""}`;
}

/** `2026-11-22T13:09:16.204`. The number itself if it is outside of what a `Date` can hold: senders choose some times. */
function localIso(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE);
  return Number.isNaN(local.getTime()) ? `${ms}` : local.toISOString().slice(0, -1);
}

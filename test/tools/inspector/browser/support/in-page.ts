/** What watches inside a page, from before its first line: as text, since it runs in the browser. Not in the empty page before it. */

/**
 * Keeps in `window.watched`: programs that ran which should not, refusals of the content security policy, layout shifts (their sum),
 * frames and tasks that took long, and when the first row of a list was drawn.
 */
export const WATCH = `if (location.protocol !== "about:") {
  const watched = { executions: 0, violations: [], shift: 0, shifts: [], longestFrameMs: 0, longestTaskMs: 0, frames: 0, firstRowAt: null };
  Object.defineProperty(window, "watched", { value: watched });
  let drawn;
  Object.defineProperty(window, "firstRow", { value: new Promise((resolve) => { drawn = resolve; }) });
  Object.defineProperty(window, "hacked", { get: () => watched.executions > 0, set: () => { watched.executions += 1; } });
  document.addEventListener("securitypolicyviolation", (event) => watched.violations.push(event.violatedDirective + " " + event.blockedURI));
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      // What follows an act of the person was asked for.
      if (entry.hadRecentInput) continue;
      watched.shift += entry.value;
      watched.shifts.push(entry.value.toFixed(5) + " " + entry.sources.map(({ node }) => (node && (node.id || node.className || node.nodeName)) || "?").join(","));
    }
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) watched.longestTaskMs = Math.max(watched.longestTaskMs, entry.duration);
  }).observe({ type: "longtask", buffered: true });
  let before = null;
  const frame = (now) => {
    if (before !== null) watched.longestFrameMs = Math.max(watched.longestFrameMs, now - before);
    before = now;
    watched.frames += 1;
    if (watched.firstRowAt === null && document.querySelector("tbody [data-row]") !== null) drawn(watched.firstRowAt = performance.now());
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}`;

/** What it keeps. */
export interface Watched {
  executions: number;
  readonly violations: readonly string[];
  shift: number;
  readonly shifts: readonly string[];
  longestFrameMs: number;
  longestTaskMs: number;
  frames: number;
  /** Milliseconds since the navigation began. */
  readonly firstRowAt: number | null;
}

/** For `page.evaluate`. */
export const READ_WATCHED = "window.watched";
/** When it was, once a row of a list is drawn. The page's policy keeps what asks again and again from running. */
export const FIRST_ROW = "window.firstRow";
/** Forgets what was before. */
export const FORGET_WATCHED =
  "Object.assign(window.watched, { shift: 0, longestFrameMs: 0, longestTaskMs: 0, frames: 0 }), window.watched.shifts.length = 0";

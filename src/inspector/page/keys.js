/** What the keyboard does, wherever the focus is. */
import { useListener } from "./parts/listen.js";
import { go } from "./router.js";
import { useRef } from "./vendor/htm-preact.js";

const CHORD_MS = 1_500;
const STEPS = new Map([
  ["j", 1],
  ["ArrowDown", 1],
  ["k", -1],
  ["ArrowUp", -1],
]);

/** @param {Readonly<Record<string, string>>} views by the key after `g` @param {() => void} onHelp */
export function useKeys(views, onHelp) {
  const chordAt = useRef(-CHORD_MS);
  useListener(window, "keydown", (/** @type {KeyboardEvent} */ event) => {
    const { key, timeStamp, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTaken(target)) return;
    const view = timeStamp - chordAt.current < CHORD_MS ? views[key] : undefined;
    chordAt.current = key === "g" ? timeStamp : -CHORD_MS;
    if (view) go(view);
    else if (key === "?") onHelp();
    else if (key === "/") document.getElementById("search")?.focus();
    else if (!step(STEPS.get(key), key, target)) return;
    event.preventDefault();
  });
}

/** Arrows scroll the page unless a row has the focus. @param {number | undefined} by @param {string} key @param {unknown} target */
function step(by, key, target) {
  if (by === undefined) return false;
  /** @type {NodeListOf<HTMLElement>} */
  const found = document.querySelectorAll("[data-row]");
  const rows = [...found];
  const at = rows.findIndex((row) => target instanceof Node && (row.closest("tr") ?? row).contains(target));
  if (at < 0 && key.startsWith("Arrow")) return false;
  const next = rows.at(at < 0 ? Math.min(by, 0) && -1 : Math.max(0, at + by));
  next?.focus();
  return next !== undefined;
}

/** Keys belong to whoever writes, and to an open dialog. @param {unknown} target */
function isTaken(target) {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof Element && target.closest("input:not([type=checkbox]), select, textarea, summary") !== null;
}

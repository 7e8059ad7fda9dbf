/** What the keyboard does, wherever the focus is. */
import { go } from "./router.js";
import { useEffect } from "./vendor/htm-preact.js";

const CHORD_MS = 1_500;

/** @param {{ views: readonly { view: string, key: string }[], onHelp: () => void }} props */
export function useKeys({ views, onHelp }) {
  useEffect(() => {
    let chordAt = Number.NEGATIVE_INFINITY;
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const isChord = event.timeStamp - chordAt < CHORD_MS;
      chordAt = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      const view = isChord ? views.find(({ key }) => key === event.key) : undefined;
      if (view !== undefined) go(view.view);
      else if (!act(event, onHelp)) return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** @param {KeyboardEvent} event @param {() => void} onHelp @returns {boolean} whether the key means something */
function act({ key, target }, onHelp) {
  if (key === "?") onHelp();
  else if (key === "/") document.getElementById("search")?.focus();
  else if (key === "j" || key === "ArrowDown") return step(1, { key, target });
  else if (key === "k" || key === "ArrowUp") return step(-1, { key, target });
  else return false;
  return true;
}

/** Arrows scroll the page, unless a row has the focus. @param {1 | -1} by @param {{ key: string, target: EventTarget | null }} event */
function step(by, { key, target }) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.findIndex(
    (row) => row === target || row.closest("tr")?.contains(target instanceof Node ? target : null),
  );
  if (at < 0 && key.startsWith("Arrow")) return false;
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  if (next instanceof HTMLElement || next instanceof SVGElement) next.focus();
  return next !== undefined;
}

/** Keys belong to whoever writes, and to an open dialog. @param {EventTarget | null} target */
function isBusy(target) {
  if (document.querySelector("dialog[open]") !== null) return true;
  return target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]") !== null;
}

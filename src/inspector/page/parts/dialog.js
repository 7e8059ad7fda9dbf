/** A question or an answer over the page. The browser keeps the focus in it; after it, whatever opened it has it again. */
import { html, useLayoutEffect, useRef } from "../vendor/htm-preact.js";
import { useListener } from "./listen.js";

/** Those that are open; the keyboard belongs to the last. @type {unknown[]} */
const open = [];

/** @param {{ title: string, onClose: () => void, children?: unknown }} props */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    open.push(shown);
    return () => {
      open.splice(open.indexOf(shown), 1);
      shown?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  // Chromium closes a dialog at a second Esc, whatever is said to its `cancel`. The focus may be nowhere: what had it may be gone.
  useListener(document, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && !event.defaultPrevented && open.at(-1) === dialog.current) cancel(event);
  });
  return html`<dialog ref=${dialog} aria-label=${title} onCancel=${cancel}>
    <div class="head">
      <h2>${title}</h2>
      <button class="quiet" aria-label="Close" onClick=${onClose}>✕</button>
    </div>
    ${children}
  </dialog>`;
}

/**
 * Asked before something is done: `verb` stands on the button that does it.
 *
 * @param {{ title: string, verb: string, danger?: boolean, onClose: () => void, onConfirm: (event: { currentTarget: HTMLButtonElement }) => unknown, children?: unknown }} props
 */
export function Confirm({ title, verb, danger, onClose, onConfirm, children }) {
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${children}</p>
    <p class="choices">
      <button onClick=${onClose}>Cancel</button>
      <button class=${danger ? "danger" : "primary"} onClick=${onConfirm}>${verb}</button>
    </p>
  <//>`;
}

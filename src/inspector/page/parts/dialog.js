/** A question or an answer over the page. The browser keeps the focus in it; when it closes, whatever opened it has it again. */
import { html, useLayoutEffect, useMemo, useRef } from "../vendor/htm-preact.js";

let opened = 0;

/** @param {{ title: string, onClose: () => void, children?: unknown }} props */
export function Dialog({ title, onClose, children }) {
  /** @type {import("../vendor/htm-preact.js").Ref<HTMLDialogElement | null>} */
  const dialog = useRef(null);
  const titleId = useMemo(() => `dialog-${++opened}`, []);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const shown = dialog.current;
    shown?.showModal();
    return () => {
      shown?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return html`<dialog
    ref=${dialog}
    aria-labelledby=${titleId}
    onCancel=${(/** @type {Event} */ event) => {
      event.preventDefault();
      onClose();
    }}
    onClick=${(/** @type {MouseEvent} */ event) => event.target === dialog.current && onClose()}
  >
    <div class="dialog-box">
      <header>
        <h2 id=${titleId}>${title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick=${onClose}>✕</button>
      </header>
      ${children}
    </div>
  </dialog>`;
}

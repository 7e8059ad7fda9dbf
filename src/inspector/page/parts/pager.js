/** From page to page of a list. It lies above the list, where it stays while rows come and go. */
import { html } from "../vendor/htm-preact.js";

/** @param {{ of?: string, onNewest?: (() => void) | null, onPrevious?: (() => void) | null, onNext?: (() => void) | null }} props null for what there is not */
export function Pager({ of, onNewest, onPrevious, onNext }) {
  // Not disabled: the focus would be lost at the end of the list.
  const step = (/** @type {string} */ name, /** @type {(() => void) | null | undefined} */ press) =>
    html`<button aria-disabled=${press ? null : "true"} onClick=${press}>${name}</button>`;
  return html`<nav aria-label=${of ? `Pages of ${of}` : "Pages"}>
    ${step("Newest", onNewest)}${step("Previous", onPrevious)}${step("Next", onNext)}
  </nav>`;
}

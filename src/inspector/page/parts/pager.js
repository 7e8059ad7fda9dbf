/** From page to page of a list. It lies above the list, where it stays while rows come and go. */
import { html } from "../vendor/htm-preact.js";

/** @param {{ onNewest?: (() => void) | null, onPrevious?: (() => void) | null, onNext?: (() => void) | null, children?: unknown }} props null for what there is not */
export function Pager({ onNewest = null, onPrevious = null, onNext = null, children }) {
  return html`<nav class="pager" aria-label="Pages">
    <span class="pager-shown">${children}</span>
    <${Step} onPress=${onNewest}>Newest<//>
    <${Step} onPress=${onPrevious}>Previous<//>
    <${Step} onPress=${onNext}>Next<//>
  </nav>`;
}

/** It stays focusable at the end of the list, so that the focus is not lost there. @param {{ onPress: (() => void) | null, children?: unknown }} props */
function Step({ onPress, children }) {
  return html`<button type="button" aria-disabled=${onPress === null ? "true" : null} onClick=${() => onPress?.()}>${children}</button>`;
}

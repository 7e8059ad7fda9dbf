/** What is said when something went wrong, and when there is nothing. */
import { html } from "../vendor/htm-preact.js";

export const BROKEN = "Something went wrong on this page.";

/** @param {{ error: unknown, onRetry?: () => void }} props nothing without an error */
export function ErrorNote({ error, onRetry }) {
  if (!error) return null;
  return html`<p class="note bad" role="alert">
    ${error instanceof Error ? error.message : BROKEN}
    ${onRetry && html` <button onClick=${onRetry}>Try again</button>`}
  </p>`;
}

/** @param {{ children?: unknown }} props */
export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

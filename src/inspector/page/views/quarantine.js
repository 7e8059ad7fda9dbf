/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function QuarantineView() {
  return html`<h1>QuarantineView</h1>`;
}

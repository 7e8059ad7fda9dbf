/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function DeadView() {
  return html`<h1>DeadView</h1>`;
}

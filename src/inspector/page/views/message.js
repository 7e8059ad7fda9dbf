/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function MessageView() {
  return html`<h1>MessageView</h1>`;
}

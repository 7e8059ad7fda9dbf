/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function EventsView() {
  return html`<h1>EventsView</h1>`;
}

/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function OverviewView() {
  return html`<h1>OverviewView</h1>`;
}

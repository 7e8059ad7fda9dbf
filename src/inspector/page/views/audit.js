/** Not there yet. */
import { html } from "../vendor/htm-preact.js";

export function AuditView() {
  return html`<h1>AuditView</h1>`;
}

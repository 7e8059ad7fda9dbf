/** Who did what: the newest acts first. */
import { get } from "../api.js";
import { EventLink, Listed, usePages } from "../listed.js";
import { useLive } from "../live.js";
import { time } from "../parts/format.js";
import { href } from "../router.js";
import { html } from "../vendor/htm-preact.js";

/** @typedef {import("../../api.ts").AuditRecord} AuditRecord */

/** @type {import("../parts/table.js").Column<AuditRecord>[]} */
const COLUMNS = [
  ["when", "When", ({ at }) => time(at)],
  ["who", "Who", ({ by }) => html`<span title=${by}>${by}</span>`],
  ["did", "Act", ({ act }) => act.replaceAll("_", " ")],
  ["what", "Detail", ({ detail }) => linked(detail)],
];

/** `event 7`, `lane 7` and `quarantine 7` lead there. @param {string} detail */
function linked(detail) {
  const [, kind, id] = /^(event|lane|quarantine) (\d+)$/.exec(detail) ?? [];
  if (kind === "event") return html`<${EventLink} id=${Number(id)} />`;
  if (kind === undefined) return detail;
  const [view, name] = kind === "lane" ? ["message", "message"] : ["quarantine", "quarantined body"];
  return html`<a href=${href(view, Number(id))}>${name} ${id}</a>`;
}

export function AuditView() {
  const pages = usePages((_after, signal) => get("api/audit", signal), useLive().changed);
  const table = { caption: "Acts, the newest first", columns: COLUMNS };
  return html`<div class="head"><h1>Audit</h1></div>
    <${Listed} isWhole pages=${pages} empty="Nobody has acted yet." table=${table} />`;
}

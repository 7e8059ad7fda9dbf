/** The page: what is around every view, and which view is open. */
import { useKeys } from "./keys.js";
import { startLive, useLive } from "./live.js";
import { Dialog } from "./parts/dialog.js";
import { ErrorNote } from "./parts/error.js";
import { count } from "./parts/format.js";
import { href, useRoute } from "./router.js";
import { Search } from "./search.js";
import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/htm-preact.js";
import { AuditView } from "./views/audit.js";
import { DeadView } from "./views/dead.js";
import { EventsView } from "./views/events.js";
import { MessageView } from "./views/message.js";
import { OverviewView } from "./views/overview.js";
import { QuarantineView } from "./views/quarantine.js";

/** @typedef {import("./router.js").Route} Route */

/** In the order of the header; `g` and the key open it. */
const VIEWS = [
  { view: "events", title: "Events", key: "e", of: EventsView },
  { view: "dead", title: "Dead letters", key: "d", of: DeadView },
  { view: "quarantine", title: "Quarantine", key: "q", of: QuarantineView },
  { view: "overview", title: "Overview", key: "o", of: OverviewView },
  { view: "audit", title: "Audit", key: "a", of: AuditView },
];
const MESSAGE = { view: "message", title: "Message", key: "", of: MessageView };

function Page() {
  const route = useRoute();
  const [isHelping, setHelping] = useState(false);
  useKeys({ views: VIEWS, onHelp: () => setHelping(true) });
  const open = [...VIEWS, MESSAGE].find(({ view }) => view === route.view) ?? VIEWS[0] ?? MESSAGE;
  useEffect(() => {
    document.title = `${open.title}${route.id === null ? "" : ` ${route.id}`} · oncehook inspector`;
  }, [open.title, route.id]);
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Header} view=${open.view} onHelp=${() => setHelping(true)} />
    <main id="main" tabindex="-1"><${View} key=${`${open.view}/${route.id ?? ""}`} of=${open.of} route=${route} /></main>
    ${isHelping && html`<${Keys} onClose=${() => setHelping(false)} />`}`;
}

/** Its address must not become a view's. @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** A view that fails takes nothing with it. @param {{ of: unknown, route: Route }} props */
function View({ of, route }) {
  const [error, again] = useErrorBoundary();
  if (error != null) return html`<h1>This view failed</h1><${ErrorNote} error=${error} onRetry=${again} />`;
  return html`<${of} id=${route.id} params=${route.params} />`;
}

/** @param {{ view: string, onHelp: () => void }} props */
function Header({ view, onHelp }) {
  const { overview } = useLive();
  /** @type {Readonly<Record<string, number | undefined>>} */
  const counts = { dead: overview?.gauges.dead, quarantine: overview?.gauges.quarantined };
  return html`<header class="page-header">
    <p class="brand">oncehook <span class="place">${overview?.location ?? "inspector"}</span></p>
    <${Search} />
    <${Connection} />
    <button type="button" class="quiet" aria-label="Keys" title="Keys (?)" onClick=${onHelp}>?</button>
    <nav aria-label="Views">
      ${VIEWS.map(
        (one) => html`<a key=${one.view} href=${href(one.view)} aria-current=${one.view === view ? "page" : null}>
          ${one.title}${counts[one.view] === undefined ? null : html` <span class="count">${count(counts[one.view] ?? 0)}</span>`}
        </a>`,
      )}
    </nav>
  </header>`;
}

function Connection() {
  const { connected, ended, overview } = useLive();
  const said = ended ? "Signed out" : connected ? "Live" : overview === null ? "Connecting" : "Connection lost";
  return html`<p class=${`connection ${connected ? "good" : "warn"}`} role="status" aria-live="polite">${said}</p>`;
}

/** @param {{ onClose: () => void }} props */
function Keys({ onClose }) {
  const rows = [
    ["/", "Search"],
    ["j k ↓ ↑", "Next and previous row"],
    ["Enter", "Open the row"],
    ...VIEWS.map(({ key, title }) => [`g ${key}`, title]),
    ["?", "This list"],
    ["Esc", "Close a dialog"],
  ];
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">${rows.map(([keys, does]) => html`<div key=${keys}><dt><kbd>${keys}</kbd></dt><dd>${does}</dd></div>`)}</dl>
  <//>`;
}

const root = document.getElementById("page");
if (root !== null) {
  root.textContent = "";
  startLive();
  render(html`<${Page} />`, root);
}

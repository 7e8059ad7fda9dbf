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

/** @type {Readonly<Record<string, [title: string, view: unknown]>>} */
const VIEWS = {
  events: ["Events", EventsView],
  dead: ["Dead letters", DeadView],
  quarantine: ["Quarantine", QuarantineView],
  overview: ["Overview", OverviewView],
  audit: ["Audit", AuditView],
};
/** @type {typeof VIEWS} */
const ALL = { ...VIEWS, message: ["Message", MessageView] };
const BY_KEY = Object.fromEntries(Object.keys(VIEWS).map((view) => [view.charAt(0), view]));

function Page() {
  const { view, id, params } = useRoute();
  const [isHelping, setHelping] = useState(false);
  const help = () => setHelping(true);
  useKeys(BY_KEY, help);
  const name = Object.hasOwn(ALL, view) ? view : "events";
  const [title, of] = ALL[name] ?? [];
  const key = `${name}/${id ?? ""}`;
  useEffect(() => {
    document.title = `${title} ${id ?? ""} · oncehook inspector`;
    // What was pressed has gone with its view, or its work is done.
    if (document.activeElement?.matches("body, #search")) focusMain();
  }, [key]);
  return html`<a class="skip" href="#main" onClick=${focusMain}>Skip to the content</a>
    <${Header} open=${name} onHelp=${help} />
    <main id="main" tabindex="-1"><${View} key=${key} of=${of} id=${id} params=${params} /></main>
    ${isHelping && html`<${Keys} onClose=${() => setHelping(false)} />`}`;
}

/** Without its address, which would be taken for a view's. @param {Event} [event] */
function focusMain(event) {
  event?.preventDefault();
  document.getElementById("main")?.focus();
}

/** A view that fails takes nothing with it. @param {{ of: unknown }} props */
function View({ of, ...props }) {
  const [error, again] = useErrorBoundary();
  if (error) return html`<h1>This view failed</h1><${ErrorNote} error=${error} onRetry=${again} />`;
  return html`<${of} ...${props} />`;
}

/** @param {{ open: string, onHelp: () => void }} props */
function Header({ open, onHelp }) {
  const { overview, connected, ended, refusal } = useLive();
  const { dead, quarantined: quarantine } = overview?.gauges ?? {};
  /** @type {Readonly<Record<string, number | undefined>>} */
  const counts = { dead, quarantine };
  const state = ended ? "Signed out" : connected ? "Live" : (refusal ?? (overview ? "Connection lost" : "Connecting"));
  return html`<header class="page-header">
    <p>oncehook <span class="muted">${overview?.location ?? "inspector"}</span></p>
    <${Search} />
    <p class=${`connection ${connected ? "good" : "warn"}`} role="status">${state}</p>
    <button class="quiet" aria-label="Keys" onClick=${onHelp}>?</button>
    <nav aria-label="Views">${Object.entries(VIEWS).map(
      ([view, [title]]) => html`<a key=${view} href=${href(view)} aria-current=${view === open ? "page" : null}>
        ${title}${counts[view] !== undefined && html` <span class="muted">${count(counts[view])}</span>`}
      </a>`,
    )}</nav>
  </header>`;
}

/** @param {{ onClose: () => void }} props */
function Keys({ onClose }) {
  const rows = [
    ["/", "Search"],
    ["j k ↓ ↑", "Next and previous row"],
    ["Enter", "Open the row"],
    ...Object.entries(BY_KEY).map(([key, view]) => [`g ${key}`, VIEWS[view]?.[0]]),
    ["?", "This list"],
  ];
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">${rows.map(([keys, does]) => html`<div key=${keys}><dt><kbd>${keys}</kbd></dt><dd>${does}</dd></div>`)}</dl>
  <//>`;
}

/** What had the focus last: when an answer takes it away, whoever uses the keyboard stays in the view. @type {EventTarget | null} */
let focused = null;
addEventListener("focusin", ({ target }) => {
  focused = target;
});
new MutationObserver(() => {
  if (document.activeElement === document.body && focused instanceof Node && !focused.isConnected)
    document.getElementById("main")?.focus({ preventScroll: true });
}).observe(document.body, { childList: true, subtree: true });

const root = document.getElementById("page");
if (root) {
  root.textContent = "";
  startLive();
  render(html`<${Page} />`, root);
}

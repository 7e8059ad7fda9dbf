/** The head of the page: the connection, the search, the tabs and the keyboard. */
import type { TargetedSubmitEvent } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Lookup, LookupMatch } from "../api.ts";
import { post } from "./api.ts";
import { formatCount, nameOf, sourceOf } from "./format.ts";
import { type Live, useLive } from "./live.ts";
import { type Column, DataTable, Dialog, ErrorNote, StateBadge, useListener, When } from "./parts.tsx";
import { go, href, ifStillWanted } from "./router.ts";

export interface Tab {
  readonly name: string;
  readonly title: string;
  /** Opens it, after `g`. */
  readonly key: string;
}

export interface PageHeaderProps {
  readonly tabs: readonly Tab[];
  /** The name of the open one. */
  readonly open: string;
  readonly onHelp: () => void;
}

export function PageHeader({ tabs, open, onHelp }: PageHeaderProps) {
  useKeys(tabs, onHelp);
  const live = useLive();
  const { overview, connected } = live;
  return (
    <header class="page-header">
      <p>
        oncehook <span class="muted">{overview?.location ?? "inspector"}</span>
      </p>
      <Search />
      <p class={`connection ${connected ? "good" : "warn"}`} role="status">
        {connectionText(live)}
      </p>
      <button type="button" class="quiet" aria-label="Keys" onClick={onHelp}>
        ?
      </button>
      <nav aria-label="Views">
        {tabs.map(({ name, title }) => (
          <a key={name} href={href(name)} aria-current={name === open ? "page" : undefined}>
            {title} <TabCount name={name} live={live} />
          </a>
        ))}
      </nav>
    </header>
  );
}

function connectionText({ overview, connected, ended }: Live): string {
  if (ended) return "Signed out";
  if (connected) return "Live";
  return overview === null ? "Connecting" : "Connection lost";
}

function TabCount({ name, live: { overview } }: { readonly name: string; readonly live: Live }) {
  if (overview === null) return null;
  const { dead, quarantined } = overview.gauges;
  const counts: Readonly<Record<string, number>> = { dead, quarantine: quarantined };
  const n = counts[name];
  return n === undefined ? null : <span class="muted">{formatCount(n)}</span>;
}

const COLUMNS: readonly Column<LookupMatch>[] = [
  { name: "lane", title: "Lane or id", cell: ({ lane, newest }) => nameOf(lane, newest.ownId) },
  { name: "source", minor: true, title: "Source", cell: sourceOf },
  { name: "found", minor: true, title: "Found by", cell: ({ found }) => found },
  { name: "state", title: "Newest event", cell: ({ newest }) => <StateBadge state={newest.state} /> },
  { name: "time", minor: true, title: "Accepted", cell: ({ newest }) => <When at={newest.acceptedAt} /> },
];

/** The name of a lane, an id, a reference or a whole number leads to its lane. */
function Search() {
  const [found, setFound] = useState<Lookup | null>(null);
  const [error, setError] = useState<unknown>(null);
  const close = () => {
    setFound(null);
    setError(null);
  };
  const search = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = event.currentTarget.querySelector("input")?.value.trim() ?? "";
    if (text === "") return;
    try {
      const answer = await ifStillWanted(post<Lookup>("api/lookup", { text }));
      const [only, other] = answer.matches;
      if (only !== undefined && other === undefined) go("lane", only.laneId);
      else setFound(answer);
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <>
      <search class="search">
        <form onSubmit={search}>
          <input
            id="search"
            type="search"
            autocomplete="off"
            spellcheck={false}
            maxLength={256}
            aria-label="Lane, id, reference or whole number"
            placeholder="Lane, id, reference or number ( / )"
            // So that typing replaces the last search.
            onFocus={({ currentTarget }) => currentTarget.select()}
          />
        </form>
      </search>
      {(found !== null || error !== null) && (
        <Dialog title="Search" onClose={close}>
          <ErrorNote error={error} />
          {found && <Matches found={found} onOpen={close} />}
        </Dialog>
      )}
    </>
  );
}

function Matches({ found: { matches, more }, onOpen }: { readonly found: Lookup; readonly onOpen: () => void }) {
  if (matches.length === 0)
    return (
      <p role="status">No lane has this name, id, reference or number. Write it in full: a part of it finds nothing.</p>
    );
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click too, and bubbles to here */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the links in it are interactive */}
      <div onClick={onOpen}>
        <DataTable
          caption="Lanes found"
          columns={COLUMNS}
          rows={matches}
          hrefOf={({ laneId }) => href("lane", laneId)}
        />
      </div>
      {more && <p>There are more; these are the newest.</p>}
    </>
  );
}

/** The list of keys. */
export function Keys({ tabs, onClose }: { readonly tabs: readonly Tab[]; readonly onClose: () => void }) {
  const rows: readonly (readonly [keys: string, does: string])[] = [
    ["/", "Search"],
    ["j k ↓ ↑", "Next and previous row"],
    ["Enter", "Open the row"],
    ...tabs.map(({ key, title }) => [`g ${key}`, title] as const),
    ["?", "This list"],
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {rows.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** The longest time between `g` and the key after it. */
const CHORD_MS = 1_500;
const STEPS = new Map([
  ["j", 1],
  ["ArrowDown", 1],
  ["k", -1],
  ["ArrowUp", -1],
]);

/** What the keyboard does, wherever the focus is. */
function useKeys(tabs: readonly Tab[], onHelp: () => void): void {
  const chordAt = useRef(-CHORD_MS);
  useListener<KeyboardEvent>(window, "keydown", (event) => {
    const { key, timeStamp, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTaken(target)) return;
    const isChord = timeStamp - chordAt.current < CHORD_MS;
    const tab = isChord ? tabs.find((one) => one.key === key) : undefined;
    chordAt.current = key === "g" ? timeStamp : -CHORD_MS;
    if (tab !== undefined) go(tab.name);
    else if (key === "?") onHelp();
    else if (key === "/") document.getElementById("search")?.focus();
    else if (!moveToRow(key, target)) return;
    event.preventDefault();
  });
}

/** Returns true if there was a row to move to. Arrows scroll the page unless a row has the focus. */
function moveToRow(key: string, target: EventTarget | null): boolean {
  const step = STEPS.get(key);
  if (step === undefined) return false;
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.findIndex((row) => target instanceof Node && (row.closest("tr") ?? row).contains(target));
  if (at < 0 && key.startsWith("Arrow")) return false;
  const first = step > 0 ? 0 : -1;
  const next = rows.at(at < 0 ? first : Math.max(0, at + step));
  next?.focus();
  return next !== undefined;
}

/** Keys belong to a field that somebody writes in, and to an open dialog. */
function isTaken(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  return target instanceof Element && target.closest("input:not([type=checkbox]), select, textarea, summary") !== null;
}

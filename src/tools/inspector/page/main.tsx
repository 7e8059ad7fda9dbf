/** The page: the open view, and what is the same around every view. */
import { type ComponentType, render } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { clearSaid } from "./acts.tsx";
import { DeadLettersView } from "./dead-letters.tsx";
import { EventsView } from "./events.tsx";
import { Keys, PageHeader, type Tab } from "./header.tsx";
import { LaneView } from "./lane.tsx";
import { startLive } from "./live.ts";
import { AuditView, OverviewView } from "./overview.tsx";
import { ErrorNote } from "./parts.tsx";
import { QuarantineView } from "./quarantine.tsx";
import { type OpenView, useRoute } from "./router.ts";

type ViewProps = Pick<OpenView, "id" | "params">;

interface View {
  readonly name: string;
  readonly title: string;
  readonly Content: ComponentType<ViewProps>;
}

const EVENTS: View = { name: "events", title: "Events", Content: EventsView };
const LANE: View = { name: "lane", title: "Lane", Content: LaneView };
/** The views with a tab. */
const TABBED: readonly View[] = [
  EVENTS,
  { name: "dead", title: "Dead letters", Content: DeadLettersView },
  { name: "quarantine", title: "Quarantine", Content: QuarantineView },
  { name: "overview", title: "Overview", Content: OverviewView },
  { name: "audit", title: "Audit", Content: AuditView },
];
const TABS: readonly Tab[] = TABBED.map(({ name, title }) => ({ name, title, key: name.charAt(0) }));

function Page() {
  const { view: named, id, params } = useRoute();
  const [isHelping, setHelping] = useState(false);
  const { name, title, Content } = [...TABBED, LANE].find((view) => view.name === named) ?? EVENTS;
  useEffect(() => {
    document.title = `${title} ${id ?? ""} · oncehook inspector`;
    // The element that had the focus went away with its view, or was the search field.
    if (document.activeElement?.matches("body, #search")) focusMain();
  }, [title, id]);
  const skip = (event: Event) => {
    // The address of the link would be taken for a view.
    event.preventDefault();
    focusMain();
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on this page */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <PageHeader tabs={TABS} open={name} onHelp={() => setHelping(true)} />
      <main id="main" tabindex={-1}>
        <Bounded key={`${name}/${id ?? ""}`} Content={Content} id={id} params={params} />
      </main>
      {isHelping && <Keys tabs={TABS} onClose={() => setHelping(false)} />}
    </>
  );
}

/** If a view throws, the rest of the page stays. */
function Bounded({ Content, ...props }: ViewProps & Pick<View, "Content">) {
  const [error, retry] = useErrorBoundary();
  if (!error) return <Content {...props} />;
  return (
    <>
      <h1>This view failed</h1>
      <ErrorNote error={error} onRetry={retry} />
    </>
  );
}

function focusMain(options?: FocusOptions): void {
  document.getElementById("main")?.focus(options);
}

/** When an answer removes the element with the focus, the keyboard stays in the view. */
function keepFocus(): void {
  let focused: EventTarget | null = null;
  addEventListener("focusin", ({ target }) => {
    focused = target;
  });
  const observer = new MutationObserver(() => {
    const isLost = document.activeElement === document.body && focused instanceof Node && !focused.isConnected;
    if (isLost) focusMain({ preventScroll: true });
  });
  observer.observe(document.body, { childList: true, subtree: true });
}

function start(root: HTMLElement): void {
  root.replaceChildren();
  keepFocus();
  for (const type of ["click", "hashchange"]) addEventListener(type, clearSaid, true);
  startLive();
  render(<Page />, root);
}

const root = document.getElementById("page");
if (root !== null) start(root);

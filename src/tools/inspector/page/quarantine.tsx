/** The quarantine: bodies that were signed correctly but are not valid events. */
import { useRef, useState } from "preact/hooks";
import type { QuarantineDetail, QuarantinePage, QuarantineShape } from "../api.ts";
import { ActButtons, type ActName, say, sayWhy, useRights } from "./acts.tsx";
import { get, post } from "./api.ts";
import { BulkButton } from "./bulk.tsx";
import { formatCount, formatTime, sourceOf } from "./format.ts";
import { BodyText, FactList } from "./lane.tsx";
import { EventLink, Listed, PER_PAGE, useNews, usePages } from "./lists.tsx";
import { useData } from "./live.ts";
import { type Column, ErrorNote, Options, StateBadge, When } from "./parts.tsx";
import { go, href } from "./router.ts";

const BODY_ACTS: readonly ActName[] = ["replay_quarantined", "discard_quarantined"];
const WHAT =
  "These deliveries were signed correctly, but their bodies are not valid events. They are kept until somebody replays or discards them.";
const STATES = ["held", "replayed", "discarded", "any"];
/** Those of the parser. */
const REASONS = [
  "any",
  "invalid_event",
  "invalid_json",
  "not_an_object",
  "invalid_utf8",
  "byte_order_mark",
  "too_deep",
  "forbidden_key",
  "duplicate_key",
];
const MOST_PAGES = 20;

interface Filter {
  readonly state: string;
  readonly reason: string;
}

export interface QuarantineViewProps {
  readonly id: number | null;
  readonly params: Readonly<Record<string, string>>;
}

export function QuarantineView({ id, params: { state = "held", reason = "any" } }: QuarantineViewProps) {
  if (id !== null) return <Detail id={id} />;
  const filter = { state, reason };
  return (
    <>
      <div class="head">
        <h1>Quarantine</h1>
      </div>
      <p>{WHAT}</p>
      <p class="acts">
        <Choice name="state" values={STATES} filter={filter} />
        <Choice name="reason" values={REASONS} filter={filter} />
      </p>
      <List key={`${state} ${reason}`} filter={filter} />
    </>
  );
}

interface ChoiceProps {
  readonly name: keyof Filter;
  readonly values: readonly string[];
  readonly filter: Filter;
}

function Choice({ name, values, filter }: ChoiceProps) {
  const choose = (value: string) => go("quarantine", null, { ...filter, [name]: value });
  return (
    <label>
      With the {name}{" "}
      <select value={filter[name]} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <Options values={values} />
      </select>
    </label>
  );
}

/** The server cannot filter by reason: this reads page after page, up to a limit. */
async function load({ state, reason }: Filter, after: number | undefined, signal: AbortSignal) {
  const items: QuarantineShape[] = [];
  let from = after;
  for (let pages = 1; ; pages++) {
    const query = `limit=${PER_PAGE}${state === "any" ? "" : `&state=${state}`}${from ? `&after=${from}` : ""}`;
    const page = await get<QuarantinePage>(`api/quarantine?${query}`, signal);
    items.push(...page.items.filter((item) => reason === "any" || item.reason === reason));
    from = page.next ?? undefined;
    if (reason === "any" || !from || items.length >= PER_PAGE || pages === MOST_PAGES)
      return { items, next: page.next };
  }
}

const COLUMNS: readonly Column<QuarantineShape>[] = [
  { name: "event", title: "Reason", cell: ({ reason }) => reason },
  { name: "count", minor: true, title: "Bytes", cell: ({ bytes }) => formatCount(bytes) },
  { name: "at", title: "Accepted", cell: ({ acceptedAt }) => <When at={acceptedAt} /> },
  { name: "count", minor: true, title: "Secret", cell: ({ slot }) => slot },
  { name: "state", title: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { name: "acts", title: "Actions", cell: (row) => <BodyActs row={row} /> },
];

function List({ filter }: { readonly filter: Filter }) {
  const pages = usePages((after, signal) => load(filter, after, signal), useNews("quarantined", "quarantined"));
  const { reason } = filter;
  const isAny = reason === "any";
  const what = isAny ? "held bodies" : `held bodies with the reason ${reason}`;
  const table = {
    caption: "Quarantined bodies",
    columns: COLUMNS,
    hrefOf: ({ id }: QuarantineShape) => href("quarantine", id),
  };
  return (
    <>
      <p class="acts">
        {BODY_ACTS.map((act) => (
          <BulkButton key={act} act={act} which="all" what={what} work={isAny ? {} : { reason }} />
        ))}
      </p>
      <Listed pages={pages} empty="No body has this state and reason." table={table} />
    </>
  );
}

interface BodyActsProps {
  readonly row: QuarantineShape;
  readonly onDone?: () => void;
}

function BodyActs({ row: { id, state }, onDone }: BodyActsProps) {
  if (state !== "held") return null;
  return <ActButtons acts={BODY_ACTS} of={`api/quarantine/${id}`} about={`body ${id}`} onDone={onDone} />;
}

function Detail({ id }: { readonly id: number }) {
  const { data: row, error, reload } = useData((signal) => get<QuarantineDetail>(`api/quarantine/${id}`, signal), [id]);
  const { revealed, canReveal, flip } = useReveal(id);
  return (
    <>
      <div class="head">
        <h1>Quarantined body {id}</h1>
        <a href={href("quarantine")}>All</a>
      </div>
      <p>{WHAT}</p>
      <ErrorNote error={error} onRetry={reload} />
      {row && (
        <section class="panel">
          <div class="head">
            <h2>Delivery</h2>
            <BodyActs row={row} onDone={reload} />
          </div>
          <FactList isColumn of={factsOf(row, (revealed ?? row).digest)} />
          <button type="button" aria-disabled={canReveal ? undefined : true} onClick={flip}>
            {revealed ? "Mask" : "Reveal"}
          </button>
          <BodyText event={revealed ?? row} />
        </section>
      )}
    </>
  );
}

function useReveal(id: number) {
  const { canReveal, refused } = useRights();
  const [revealed, setRevealed] = useState<QuarantineDetail | null>(null);
  // Each reveal is in the audit: a second press asks for no second one, and "Mask" is not undone by it.
  const isAsked = useRef(false);
  const reveal = async () => {
    if (isAsked.current) return;
    isAsked.current = true;
    await post<QuarantineDetail>(`api/quarantine/${id}/reveal`, {}).then(setRevealed, sayWhy);
    isAsked.current = false;
  };
  const flip = () => {
    if (revealed) setRevealed(null);
    else if (canReveal) void reveal();
    else say(refused("You may not see numbers and texts."));
  };
  return { revealed, canReveal, flip };
}

function factsOf(row: QuarantineDetail, digest: string | null) {
  return {
    State: (
      <>
        <StateBadge state={row.state} />{" "}
        {row.replayedAs && (
          <>
            as <EventLink id={row.replayedAs} />
          </>
        )}
      </>
    ),
    Reason: row.reason,
    Source: sourceOf(row),
    Secret: `${row.slot}, which covers ${row.kinds.length === 0 ? "all kinds of events" : row.kinds.join(", ")}`,
    "Signed (verified)": formatTime(row.signedAt),
    Accepted: formatTime(row.acceptedAt),
    Trace: <code>{row.trace ?? "–"}</code>,
    Digest: <code>{digest ?? "shown with the body"}</code>,
  };
}

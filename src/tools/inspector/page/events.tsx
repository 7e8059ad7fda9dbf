/** The live list of events, the newest first, with its filters. */
import type { TargetedEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { EventPage, EventShape } from "../api.ts";
import { download, post } from "./api.ts";
import { type FilterTexts, fromAddress, queryOf, toAddress } from "./filter.ts";
import { FirstRun } from "./first-run.tsx";
import { formatDuration, nameOf, sourceOf } from "./format.ts";
import { useData, useLive } from "./live.ts";
import { type Column, DataTable, Empty, ErrorNote, Options, Pager, StateBadge, When } from "./parts.tsx";
import { go, href, ifStillWanted } from "./router.ts";

const LIMIT = 50;
const AIMING_MS = 2_000;

/** Rows have no keys: if they moved down, the layout would shift. */
const COLUMNS: readonly Column<EventShape>[] = [
  { name: "state", title: "State", cell: (event) => <StateBadge {...event} /> },
  { name: "type", title: "Event type", cell: ({ eventType }) => eventType },
  {
    name: "source",
    minor: true,
    title: "Source",
    cell: (event) => <span title={sourceOf(event)}>{sourceOf(event)}</span>,
  },
  {
    name: "lane",
    title: "Lane or id",
    isLink: true,
    cell: ({ lane, ownId, eventType, sequence }) => (
      <>
        {nameOf(lane, ownId)}
        <span class="sr-only">
          {" "}
          {eventType} {sequence}
        </span>
      </>
    ),
  },
  { name: "count", minor: true, title: "Sequence", cell: ({ sequence }) => sequence || "–" },
  { name: "time", title: "Accepted", cell: ({ acceptedAt }) => <When at={acceptedAt} /> },
  {
    name: "took",
    minor: true,
    title: "Done after",
    cell: ({ acceptedAt, finishedAt }) => formatDuration(finishedAt && finishedAt - acceptedAt),
  },
  { name: "attempts", minor: true, title: "Attempts", cell: ({ attempts }) => attempts },
  {
    name: "repeats",
    minor: true,
    title: "Duplicates",
    cell: ({ duplicates, conflict }) => `${duplicates || "–"}${conflict ? " conflict" : ""}`,
  },
  { name: "error", minor: true, title: "Error", cell: ({ errorCode }) => errorCode },
];

export function EventsView({ params: { after, ...filters } }: { readonly params: FilterTexts }) {
  const [isPaused, setPaused] = useState(false);
  const [isHeld, holding] = useHold();
  const { items, next, error, isEmpty, reload } = useEvents(filters, after, isPaused || isHeld);
  const [failure, setFailure] = useState<unknown>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what failed on another list is no longer shown
  useEffect(() => setFailure(null), [JSON.stringify([after, filters])]);
  const open = (id: number | null) => go("events", null, { ...filters, after: id });
  const back = () => ifStillWanted(pageBefore(filters, items[0])).then(open, setFailure);
  const hasFilter = Object.values(filters).some(Boolean);
  const save = () => saveCsv(filters).then(() => setFailure(null), setFailure);
  return (
    <>
      <div class="head">
        <h1>Events</h1>
        <Flow isPaused={isPaused} isHeld={isHeld} />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
        <button type="button" title="What matches, up to 10,000 events" onClick={save}>
          CSV
        </button>
        <Pager
          onNewest={after ? () => open(null) : null}
          onPrevious={after ? back : null}
          onNext={next === null ? null : () => open(next)}
        />
      </div>
      <Filters params={filters} />
      <ErrorNote error={failure ?? error} onRetry={failure ? null : reload} />
      <div class="list events" {...holding}>
        <DataTable caption="Events, the newest first" columns={COLUMNS} rows={items} hrefOf={addressOf} />
        {isEmpty &&
          (after || hasFilter ? <Empty>No event matches. Clear the filters to see all events.</Empty> : <FirstRun />)}
      </div>
    </>
  );
}

function addressOf({ laneId, id }: EventShape): string {
  return href("lane", laneId, { event: id });
}

function Flow({ isPaused, isHeld }: { readonly isPaused: boolean; readonly isHeld: boolean }) {
  const { connected } = useLive();
  let text = connected ? "Follows new events" : "Not connected";
  if (isHeld) text = "Held while you choose";
  if (isPaused) text = "Paused";
  return <span class="flow muted">{text}</span>;
}

/** The page of events to show. While `held`, an answer to a request that was already sent is not shown either. */
function useEvents(filters: FilterTexts, after: string | undefined, held: boolean) {
  const key = JSON.stringify([after, filters]);
  const load = async (signal: AbortSignal) => {
    const query = { ...queryOf(filters), limit: LIMIT, ...(after && { after: Number(after) }) };
    return { ...(await post<EventPage>("api/events", query, signal)), key };
  };
  const { data: newest, error, reload } = useData(load, [key], { held });
  const shown = useRef(newest);
  if (!held || shown.current?.key !== key) shown.current = newest;
  const page = shown.current;
  // The list before stays until the answer comes. If an error comes instead, it is not the answer to this question.
  const isOther = Boolean(error) && page?.key !== key;
  const items = isOther ? [] : (page?.items ?? []);
  const next = isOther ? null : (page?.next ?? null);
  return { items, next, error, reload, isEmpty: page !== null && !error && items.length === 0 };
}

async function saveCsv(filters: FilterTexts): Promise<void> {
  await download("api/events", { ...queryOf(filters), format: "csv" }, "events.csv");
}

/** The `after` of the page before; null for the newest page. */
async function pageBefore(filters: FilterTexts, first: EventShape | undefined): Promise<number | null> {
  if (first === undefined) return null;
  const query = { ...queryOf(filters), order: "oldest", after: first.id, limit: LIMIT };
  const { items, next } = await post<EventPage>("api/events", query);
  return next === null ? null : (items.at(-1)?.id ?? 0) + 1;
}

/** While a row has the focus, or the pointer moves over the list, no row may change. */
function useHold() {
  const [isFocused, setFocused] = useState(false);
  const [isAiming, setAiming] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const aim = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setAiming(false), AIMING_MS);
    setAiming(true);
  };
  const holding = { onFocusIn: () => setFocused(true), onFocusOut: () => setFocused(false), onPointerMove: aim };
  return [isFocused || isAiming, holding] as const;
}

interface Field {
  readonly name: string;
  readonly title: string;
  /** For a choice; without it the field is a text. */
  readonly options?: readonly string[];
  readonly isTime?: boolean;
}

const FIELDS: readonly Field[] = [
  {
    name: "state",
    title: "State",
    options: ["pending", "done", "handled", "unhandled", "filtered", "dead", "late", "discarded"],
  },
  { name: "type", title: "Event type" },
  { name: "lane", title: "Lane" },
  { name: "id", title: "Id" },
  { name: "error", title: "Error code" },
];
const MORE_FIELDS: readonly Field[] = [
  { name: "source", title: "Source" },
  { name: "tenant", title: "Tenant" },
  { name: "reference", title: "Reference" },
  { name: "peer", title: "Number, whole" },
  { name: "late", title: "Late", options: ["yes", "no"] },
  { name: "conflict", title: "Conflict", options: ["yes", "no"] },
  { name: "from", title: "Accepted from", isTime: true },
  { name: "to", title: "Accepted to", isTime: true },
];

/** A text counts once its field is left, or Enter is pressed. */
function Filters({ params }: { readonly params: FilterTexts }) {
  const given = JSON.stringify(params);
  const [draft, setDraft] = useState<FilterTexts>({});
  // The date fields are made only when somebody opens them: they would delay the first rows.
  const [isOpen, setOpen] = useState(false);
  // Only on a narrow page: elsewhere they are always shown.
  const [isUnfolded, unfold] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the address changes, it holds what was written
  useEffect(() => setDraft({}), [given]);
  const apply = (texts: FilterTexts) => {
    const news = Object.entries(texts).map(([name, text]) => [name, toAddress(name, text.trim())]);
    go("events", null, { ...params, ...Object.fromEntries(news) });
  };
  const fieldOf = (field: Field) => (
    <FilterField
      key={field.name}
      field={field}
      value={draft[field.name] ?? fromAddress(params[field.name] ?? "")}
      onInput={(text) => setDraft({ ...draft, [field.name]: text })}
      onChange={(text) => apply({ [field.name]: text })}
    />
  );
  const submit = (event: Event) => {
    event.preventDefault();
    apply(draft);
  };
  const used = (fields: readonly Field[]) => {
    const count = fields.filter(({ name }) => params[name]).length;
    return count > 0 && ` (${count} set)`;
  };
  return (
    <form class={isUnfolded ? "filters" : "filters folded"} onSubmit={submit}>
      <button type="button" class="fold" aria-expanded={isUnfolded} onClick={() => unfold(!isUnfolded)}>
        Filters{used([...FIELDS, ...MORE_FIELDS])}
      </button>
      {FIELDS.map(fieldOf)}
      <button type="submit">Filter</button>
      <button type="button" aria-disabled={given === "{}" || undefined} onClick={() => go("events")}>
        Clear
      </button>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>More filters{used(MORE_FIELDS)}</summary>
        {isOpen && <div>{MORE_FIELDS.map(fieldOf)}</div>}
      </details>
    </form>
  );
}

interface FilterFieldProps {
  readonly field: Field;
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly onChange: (text: string) => void;
}

function FilterField({ field: { name, title, options, isTime }, value, onInput, onChange }: FilterFieldProps) {
  if (options !== undefined)
    return (
      <label>
        {title}
        <select name={name} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          <option value="">any</option>
          <Options values={options} />
        </select>
      </label>
    );
  const handlers = {
    onInput: ({ currentTarget }: TargetedEvent<HTMLInputElement>) => onInput(currentTarget.value),
    onChange: ({ currentTarget }: TargetedEvent<HTMLInputElement>) => onChange(currentTarget.value),
  };
  if (isTime)
    return (
      <label>
        {title}
        <input type="datetime-local" name={name} value={value} {...handlers} />
      </label>
    );
  return (
    <label>
      {title}
      <input
        type="text"
        name={name}
        value={value}
        maxLength={256}
        autocomplete="off"
        // A spell checker may send the text to another machine.
        spellcheck={false}
        {...handlers}
      />
    </label>
  );
}

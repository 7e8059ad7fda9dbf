/** Dead letters: by error, one by one and in bulk; and the lanes that are blocked behind one. */
import { useEffect, useState } from "preact/hooks";
import type { ErrorGroup, ErrorGroups, EventPage, EventShape, LanePage, SummaryShape } from "../api.ts";
import { ActButtons, type ActName } from "./acts.tsx";
import { get, post } from "./api.ts";
import { BulkButton } from "./bulk.tsx";
import { formatClock, formatCount, nameOf } from "./format.ts";
import { EventLink, Listed, PER_PAGE, useNews, usePages } from "./lists.tsx";
import { useLive } from "./live.ts";
import { type Column, When } from "./parts.tsx";
import { href } from "./router.ts";

const EVENT_ACTS: readonly ActName[] = ["replay", "discard"];

interface Props {
  readonly code: string | undefined;
}

export function DeadLettersView({ params: { code } }: { readonly params: Readonly<Record<string, string>> }) {
  return (
    <>
      <div class="head">
        <h1>Dead letters</h1>
      </div>
      <p>The last attempt to handle these events failed. Fix the cause, then replay them.</p>
      <Groups code={code} />
      <Letters key={code} code={code} />
      <Blocked />
    </>
  );
}

const GROUP_COLUMNS: readonly Column<ErrorGroup>[] = [
  { name: "event", title: "Code", cell: ({ errorCode }) => errorCode ?? "none" },
  { name: "error", title: "Error", cell: ({ error }) => <Clipped text={error ?? ""} /> },
  { name: "count", title: "Count", cell: (group) => formatCount(group.count) },
  { name: "at", minor: true, title: "Oldest", cell: ({ oldestAt }) => formatClock(oldestAt) },
  { name: "at", minor: true, title: "Newest", cell: ({ newestAt }) => formatClock(newestAt) },
  { name: "acts", title: "Example", cell: ({ exampleId }) => <EventLink id={exampleId} /> },
];

/** A text that may be too long for its cell. */
function Clipped({ text }: { readonly text: string }) {
  return <span title={text}>{text}</span>;
}

/** The server reads all dead letters for this list. If there are many, it is not loaded again for each new one. */
function Groups({ code }: Props) {
  const dead = useLive().overview?.gauges.dead ?? 0;
  const each = useNews("dead", "deadLettered");
  const news = dead > 2_000 ? Math.round(dead / 1_000) : each;
  const pages = usePages((_after, signal) => get<ErrorGroups>("api/groups", signal), news);
  const table = {
    caption: "Errors",
    columns: GROUP_COLUMNS,
    keyOf: ({ errorCode, error }: ErrorGroup) => `${errorCode} ${error}`,
    hrefOf: ({ errorCode }: ErrorGroup) =>
      errorCode ? href("dead", null, { code: errorCode === code ? null : errorCode }) : null,
  };
  return (
    <section class="groups">
      <h2>By error</h2>
      <Listed isWhole pages={pages} empty="No errors." table={table} />
    </section>
  );
}

function Letters({ code }: Props) {
  const [picked, pick] = useState<readonly number[]>([]);
  const query = { states: ["dead"], ...(code && { errorCode: code }) };
  const pages = usePages(
    (after, signal) => post<EventPage>("api/events", { ...query, after, limit: PER_PAGE }, signal),
    useNews("dead", "deadLettered"),
    picked.length > 0,
  );
  const ids = (pages.rows ?? []).map(({ id }) => id);
  // Only rows that the user sees can be acted on.
  const chosen = picked.filter((id) => ids.includes(id));
  useEffect(() => {
    if (chosen.length < picked.length) pick(chosen);
  });
  const isAll = chosen.length > 0 && chosen.length === ids.length;
  const what = code ? `dead letters with the code ${code}` : "dead letters";
  const pathsFor = (act: ActName) => chosen.toSorted((a, b) => a - b).map((id) => `api/events/${id}/${act}`);
  return (
    <section>
      <h2>
        {code ? `With the code ${code}` : "All"} {code && <a href={href("dead")}>Show all</a>}
      </h2>
      <p class="acts">
        {EVENT_ACTS.map((act) => (
          <BulkButton key={act} act={act} which="all" what={what} work={{ query }} />
        ))}
        <label>
          <input type="checkbox" checked={isAll} onChange={() => pick(isAll ? [] : ids)} /> {formatCount(chosen.length)}{" "}
          selected
        </label>
        {EVENT_ACTS.map((act) => (
          <BulkButton key={act} act={act} which="selected" what={what} paths={pathsFor(act)} />
        ))}
      </p>
      <Listed
        pages={pages}
        empty="No dead letters. An event is listed here when its last attempt has failed."
        table={{ caption: what, columns: letterColumns(chosen, pick) }}
      />
    </section>
  );
}

function letterColumns(
  chosen: readonly number[],
  pick: (ids: readonly number[]) => void,
): readonly Column<EventShape>[] {
  const flip = (id: number) => pick(chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id]);
  return [
    {
      name: "choose",
      title: "✓",
      cell: ({ id }) => (
        <input
          type="checkbox"
          aria-label={`Select event ${id}`}
          checked={chosen.includes(id)}
          onChange={() => flip(id)}
        />
      ),
    },
    {
      name: "event",
      title: "Event",
      cell: ({ eventType, sequence }) => `${eventType} #${sequence}`,
    },
    {
      name: "lane",
      title: "Lane or id",
      cell: ({ id, laneId, lane, ownId }) => (
        <a data-row href={href("lane", laneId, { event: id })}>
          {nameOf(lane, ownId)}
        </a>
      ),
    },
    { name: "error", title: "Error", cell: ({ errorCode, error }) => <Clipped text={`${errorCode}: ${error}`} /> },
    { name: "at", minor: true, title: "Failed", cell: ({ finishedAt }) => <When at={finishedAt} /> },
    {
      name: "acts",
      title: "Actions",
      cell: ({ id }) => <ActButtons acts={EVENT_ACTS} of={`api/events/${id}`} about={`event ${id}`} />,
    },
  ];
}

const BLOCKED_COLUMNS: readonly Column<SummaryShape>[] = [
  {
    name: "lane",
    title: "Lane or id",
    cell: ({ laneId, lane, newest }) => (
      <a data-row href={href("lane", laneId)}>
        {nameOf(lane, newest.ownId)}
      </a>
    ),
  },
  { name: "error", title: "Newest event", cell: ({ newest }) => `${newest.eventType} #${newest.sequence}` },
  { name: "at", minor: true, title: "Accepted", cell: ({ newest }) => <When at={newest.acceptedAt} /> },
  {
    name: "acts",
    title: "Actions",
    cell: ({ laneId, lane, newest }) => (
      <ActButtons acts={["unblock"]} of={`api/lanes/${laneId}`} about={lane ?? newest.ownId ?? `lane ${laneId}`} />
    ),
  },
];

function Blocked() {
  const pages = usePages(
    (after, signal) => post<LanePage>("api/lanes", { statuses: ["blocked"], after, limit: PER_PAGE }, signal),
    useNews("blockedLanes", "deadLettered"),
  );
  return (
    <section>
      <h2>Blocked lanes</h2>
      <p class="acts">
        <BulkButton act="unblock" which="all" what="lanes" work={{}} />
      </p>
      <Listed
        pages={pages}
        empty="No lane is blocked. With onDead: &quot;block&quot;, a lane stops at its dead letter until you act."
        table={{ caption: "Blocked lanes", columns: BLOCKED_COLUMNS }}
      />
    </section>
  );
}

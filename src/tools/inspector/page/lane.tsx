/** One lane: whether the customer got the message, why not, and everything that happened on the way. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { DrawnEvent, DrawnGap, LaneDetail, LaneEvent } from "../api.ts";
import { ActButtons, type ActName, Asking, CopyButton, sayWhy, useRights } from "./acts.tsx";
import { get, post } from "./api.ts";
import { formatClock, formatDuration, formatTime, nameOf } from "./format.ts";
import { useData } from "./live.ts";
import { type Column, Confirm, DataTable, ErrorNote, StateBadge } from "./parts.tsx";
import { href } from "./router.ts";
import { fateOf, holdOf, marksOf, progressOf, rangeOf, statusOf, summaryOf } from "./story.ts";
import { Timeline } from "./timeline.tsx";

/** The acts that make a lane go on, by its status. */
const GO_ON: Partial<Readonly<Record<LaneDetail["status"], readonly ActName[]>>> = {
  blocked: ["unblock"],
  gap: ["release"],
};

export interface LaneViewProps {
  readonly id: number | null;
  readonly params: Readonly<Record<string, string>>;
}

export function LaneView({ id, params }: LaneViewProps) {
  const { data, error, reload } = useData((signal) => get<LaneDetail>(`api/lanes/${id}`, signal), [id]);
  const [revealed, setRevealed] = useState<LaneDetail | null>(null);
  const seen = useRef(0);
  const note = <ErrorNote error={error} onRetry={reload} />;
  if (data === null)
    return (
      <>
        <div class="head">
          <h1>Lane</h1>
        </div>
        {note}
        <div class="panel timeline-space" />
      </>
    );
  const { drawing, events, laneId } = data;
  const known = revealed ?? data;
  const shown = events.find((event) => event.id === (Number(params.event) || seen.current)) ?? events.at(-1);
  // A newer event does not replace the one that the user reads.
  seen.current = shown?.id ?? 0;
  const drawn = drawing.events.find((event) => event.id === shown?.id);
  // Replaces the address, so that each event looked at is not one more step back.
  const onSelect = (event: number) => location.replace(href("lane", id, { event }));
  return (
    <>
      {note}
      <Head lane={data} known={known} reload={reload} onReveal={setRevealed} />
      <section class="panel">
        <h2>What happened</h2>
        <Timeline drawing={drawing} selected={shown?.id ?? null} onSelect={onSelect} />
      </section>
      {shown && drawn && (
        <EventDetail event={withRevealed(shown, known)} drawn={drawn} now={drawing.now} reload={reload} />
      )}
      <StoryList laneId={laneId} drawing={drawing} />
    </>
  );
}

/** The event as it is now, with the body and the digests that were revealed. */
function withRevealed(event: LaneEvent, known: LaneDetail): LaneEvent {
  const { body, digest, ownId, identity } = known.events.find(({ id }) => id === event.id) ?? event;
  return { ...event, body, digest, ownId, identity };
}

interface HeadProps {
  readonly lane: LaneDetail;
  /** The same lane, revealed if the user asked for it. */
  readonly known: LaneDetail;
  readonly reload: () => void;
  readonly onReveal: (next: LaneDetail | null) => void;
}

function Head({ lane, known, reload, onReveal }: HeadProps) {
  const { laneId, source, tenant, status, drawing, readyAt } = lane;
  const name = lane.lane ?? known.events[0]?.ownId ?? null;
  const progress = progressOf(lane);
  const facts = {
    Source: source,
    ...(tenant !== null && { Tenant: tenant }),
    "Other party": known.peer ?? "–",
    Reference: known.externalReference ?? "–",
    Status: statusOf(lane),
    ...(progress !== null && { Reached: progress }),
    ...(lane.more && { Events: "only those next to the cursor: it has more" }),
  };
  return (
    <>
      <div class="head">
        <h1>
          {lane.lane === null ? "Event" : "Lane"} <code>{nameOf(name, null)}</code>
        </h1>
        {name && <CopyButton text={name} label="Copy id" />}
        <Reveal laneId={laneId} isRevealed={known.revealed} onReveal={onReveal} />
        <ActButtons acts={GO_ON[status] ?? []} of={`api/lanes/${laneId}`} onDone={reload} />
      </div>
      <p class="summary">
        <b>{summaryOf(drawing, { code: failureCode(lane), readyAt })}</b>
      </p>
      <FactList of={facts} />
    </>
  );
}

/** Why it failed, from the masked body of `message.failed`. */
function failureCode({ events }: LaneDetail): string | null {
  const body = events.findLast(({ eventType }) => eventType === "message.failed")?.body;
  if (!body || !("masked" in body)) return null;
  const { masked } = body as { masked: { data?: { error?: { code?: unknown } | null } | null } | null };
  const code = masked?.data?.error?.code;
  return typeof code === "string" ? code : null;
}

interface RevealProps {
  readonly laneId: number;
  readonly isRevealed: boolean;
  readonly onReveal: (next: LaneDetail | null) => void;
}

function Reveal({ laneId, isRevealed, onReveal }: RevealProps) {
  const { canReveal } = useRights();
  if (!canReveal) return null;
  if (isRevealed)
    return (
      <button type="button" onClick={() => onReveal(null)}>
        Hide numbers and texts
      </button>
    );
  const ask = (close: () => void) => {
    const reveal = () => {
      close();
      post<LaneDetail>(`api/lanes/${laneId}/reveal`, {}).then(onReveal, sayWhy);
    };
    return (
      <Confirm title="Reveal numbers and texts?" verb="Reveal" onClose={close} onConfirm={reveal}>
        The audit keeps that you looked at this lane.
      </Confirm>
    );
  };
  return <Asking label="Reveal numbers and texts" ask={ask} />;
}

export interface FactListProps {
  readonly of: Readonly<Record<string, ComponentChildren>>;
  /** In one column. Default: in as many as there is room for. */
  readonly isColumn?: boolean;
}

export function FactList({ of, isColumn }: FactListProps) {
  return (
    <dl class={isColumn ? "facts" : "facts columns"}>
      {Object.entries(of).map(([name, fact]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

interface EventDetailProps {
  readonly event: LaneEvent;
  readonly drawn: DrawnEvent;
  readonly now: number;
  readonly reload: () => void;
}

/** Everything that is known of one event: its times, its attempts and its body. */
function EventDetail({ event, drawn, now, reload }: EventDetailProps) {
  const { id, state, hasBody } = event;
  const about = `${event.sequence || ""} ${event.eventType}`.trim();
  const acts: ActName[] = [];
  if (state !== "pending" && hasBody) acts.push("replay");
  if (state === "pending" || state === "dead") acts.push("discard");
  return (
    <section class="panel">
      <div class="head">
        <h2>Event {about}</h2>
        <ActButtons key={id} acts={acts} about={about} of={`api/events/${id}`} onDone={reload} />
      </div>
      <FactList of={factsOf(event, drawn, now)} />
      <h3>
        Attempts: {drawn.attemptCount || "none yet"}
        {drawn.attemptCount > 0 && drawn.attempts.length === 0 && ", none failed"}
      </h3>
      <ol>
        {drawn.attempts.map(({ attempt, at, durationMs, errorCode, error }) => (
          <li key={attempt} value={attempt}>
            {formatTime(at)} after {formatDuration(durationMs)}: <code>{errorCode}</code> {error}
          </li>
        ))}
      </ol>
      <BodyText event={event} />
    </section>
  );
}

function factsOf(event: LaneEvent, drawn: DrawnEvent, now: number): Readonly<Record<string, ComponentChildren>> {
  const [, traceId = "–", parentId = "–"] = event.trace?.split("-") ?? [];
  return {
    State: (
      <>
        <StateBadge {...event} /> It {fateOf(drawn, now)}.
      </>
    ),
    ...(event.ownId !== null && { Id: event.ownId }),
    Occurred: formatTime(event.occurredAt),
    "Signed, verified": formatTime(event.signedAt),
    Accepted: formatTime(event.acceptedAt),
    Started: formatTime(event.startedAt),
    Finished: formatTime(event.finishedAt),
    Duplicates: `${event.duplicates}${event.conflict ? ", one with other content" : ""}`,
    "Trace id": traceId,
    "Parent id": parentId,
    Identity: event.identity ?? "shown with the body",
    Digest: event.digest ?? "shown with the body",
  };
}

/** The bodies of a lane are shown up to 16 MiB together, those of its newest events first. */
export function BodyText({ event }: { readonly event: Pick<LaneEvent, "body" | "bytes" | "hasBody"> }) {
  const { body, bytes, hasBody } = event;
  if (body === null) return <h3>Body: {hasBody ? "too large to be shown with the others" : "no longer kept"}</h3>;
  const [kind, text] = bodyText(body);
  return (
    <>
      <h3>
        Body: {bytes} bytes, {kind}
      </h3>
      {/* biome-ignore lint/a11y/useSemanticElements: it scrolls, so it has a name and can have the focus */}
      <pre class="panel" tabindex={0} role="region" aria-label="Body">
        {text}
      </pre>
    </>
  );
}

function bodyText(body: NonNullable<LaneEvent["body"]>): [kind: string, text: string] {
  if ("masked" in body) return ["only what its source shows", JSON.stringify(body.masked, null, 2)];
  return "text" in body ? ["exactly as it came", body.text] : ["binary, in base64", body.base64];
}

interface StoryListProps {
  readonly laneId: number;
  readonly drawing: LaneDetail["drawing"];
}

/** The facts of the drawing as a table: for screen readers, and to copy. */
function StoryList({ laneId, drawing }: StoryListProps) {
  return useMemo(() => {
    const { events, gaps, now } = drawing;
    return (
      <section class="panel story-list">
        <h2>The story as a list</h2>
        <DataTable
          caption="Events in the order of their arrival"
          columns={storyColumns(now)}
          hrefOf={({ id }) => href("lane", laneId, { event: id })}
          rows={events}
        />
        {gaps.map((gap) => (
          <p key={gap.from}>
            Missing since {formatClock(gap.since, now)}: {rangeOf(gap)}. {endOfGap(gap, now)}
          </p>
        ))}
      </section>
    );
  }, [laneId, drawing]);
}

function storyColumns(now: number): readonly Column<DrawnEvent>[] {
  return [
    { name: "event", title: "Event", cell: ({ sequence, eventType }) => `${sequence || ""} ${eventType}` },
    {
      name: "arrived",
      title: "Arrived",
      cell: (event) => [formatTime(event.acceptedAt), ...marksOf(event)].join(", "),
    },
    { name: "held", title: "Waited", cell: ({ held }) => (held ? holdOf(held, now) : "no") },
    { name: "started", title: "Started", cell: ({ startedAt }) => formatTime(startedAt) },
    { name: "state", title: "State", cell: (event) => <StateBadge {...event} /> },
    { name: "fate", title: "Result", cell: (event) => fateOf(event, now) },
  ];
}

function endOfGap({ until, skipped, filledAt }: DrawnGap, now: number): string {
  if (until === null) return "Still waited for.";
  if (!skipped) return `Came by ${formatClock(until, now)}.`;
  const end = `Skipped at ${formatClock(until, now)}`;
  return filledAt === null ? `${end}.` : `${end}, and came at ${formatClock(filledAt, now)}.`;
}

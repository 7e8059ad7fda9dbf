/** One message: whether the customer got it, why not, and everything that happened on the way. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { DrawnEvent, DrawnGap, Message, MessageEvent } from "../api.ts";
import { ActButtons, type ActName, Asking, CopyButton, sayWhy, useRights } from "./acts.tsx";
import { get, post } from "./api.ts";
import { formatClock, formatDuration, formatTime } from "./format.ts";
import { useData } from "./live.ts";
import { type Column, Confirm, DataTable, ErrorNote, StateBadge } from "./parts.tsx";
import { href } from "./router.ts";
import { fateOf, holdOf, marksOf, progressOf, rangeOf, statusOf, summaryOf } from "./story.ts";
import { Timeline } from "./timeline.tsx";

/** The acts that make a message go on, by its status. */
const GO_ON: Partial<Readonly<Record<Message["status"], readonly ActName[]>>> = {
  blocked: ["unblock"],
  gap: ["release"],
};

export interface MessageViewProps {
  readonly id: number | null;
  readonly params: Readonly<Record<string, string>>;
}

export function MessageView({ id, params }: MessageViewProps) {
  const { data, error, reload } = useData((signal) => get<Message>(`api/messages/${id}`, signal), [id]);
  const [revealed, setRevealed] = useState<Message | null>(null);
  const seen = useRef(0);
  const note = <ErrorNote error={error} onRetry={reload} />;
  if (data === null)
    return (
      <>
        <div class="head">
          <h1>Message</h1>
        </div>
        {note}
        <div class="panel timeline-space" />
      </>
    );
  const { drawing, events, lane } = data;
  const known = revealed ?? data;
  const shown = events.find((event) => event.id === (Number(params.event) || seen.current)) ?? events.at(-1);
  // A newer event does not replace the one that the user reads.
  seen.current = shown?.id ?? 0;
  const drawn = drawing.events.find((event) => event.id === shown?.id);
  // Replaces the address, so that each event looked at is not one more step back.
  const onSelect = (event: number) => location.replace(href("message", id, { event }));
  return (
    <>
      {note}
      <Head message={data} known={known} reload={reload} onReveal={setRevealed} />
      <section class="panel">
        <h2>What happened</h2>
        <Timeline drawing={drawing} selected={shown?.id ?? null} onSelect={onSelect} />
      </section>
      {shown && drawn && (
        <EventDetail event={withRevealed(shown, known)} drawn={drawn} now={drawing.now} reload={reload} />
      )}
      <StoryList lane={lane} drawing={drawing} />
    </>
  );
}

/** The event as it is now, with the body and the digests that were revealed. */
function withRevealed(event: MessageEvent, known: Message): MessageEvent {
  const { body, digest, identity } = known.events.find(({ id }) => id === event.id) ?? event;
  return { ...event, body, digest, identity };
}

interface HeadProps {
  readonly message: Message;
  /** The same message, revealed if the user asked for it. */
  readonly known: Message;
  readonly reload: () => void;
  readonly onReveal: (next: Message | null) => void;
}

function Head({ message, known, reload, onReveal }: HeadProps) {
  const { lane, status, drawing, readyAt } = message;
  const { messageId } = known;
  const progress = progressOf(message);
  const facts = {
    [message.tag === "single" ? "Source" : "API client"]: message.apiClientId || "–",
    "Other party": known.peer ?? "–",
    Reference: known.externalReference ?? "–",
    Status: statusOf(message),
    ...(progress !== null && { Reached: progress }),
    ...(message.more && { Events: "only those next to the cursor: it has more" }),
  };
  return (
    <>
      <div class="head">
        <h1>
          Message <code>{messageId || "no id"}</code>
        </h1>
        {messageId && <CopyButton text={messageId} label="Copy id" />}
        <Reveal lane={lane} isRevealed={known.revealed} onReveal={onReveal} />
        <ActButtons acts={GO_ON[status] ?? []} of={`api/messages/${lane}`} onDone={reload} />
      </div>
      <p class="summary">
        <b>{summaryOf(drawing, { code: failureCode(message), readyAt })}</b>
      </p>
      <FactList of={facts} />
    </>
  );
}

/** Why it failed, from the masked body of `message.failed`. */
function failureCode({ events }: Message): string | null {
  const body = events.findLast(({ eventType }) => eventType === "message.failed")?.body;
  if (!body || !("masked" in body)) return null;
  const { masked } = body as { masked: { data?: { error?: { code?: unknown } | null } | null } | null };
  const code = masked?.data?.error?.code;
  return typeof code === "string" ? code : null;
}

interface RevealProps {
  readonly lane: number;
  readonly isRevealed: boolean;
  readonly onReveal: (next: Message | null) => void;
}

function Reveal({ lane, isRevealed, onReveal }: RevealProps) {
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
      post<Message>(`api/messages/${lane}/reveal`, {}).then(onReveal, sayWhy);
    };
    return (
      <Confirm title="Reveal numbers and texts?" verb="Reveal" onClose={close} onConfirm={reveal}>
        The audit keeps that you looked at this message.
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
  readonly event: MessageEvent;
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

function factsOf(event: MessageEvent, drawn: DrawnEvent, now: number): Readonly<Record<string, ComponentChildren>> {
  const [, traceId = "–", parentId = "–"] = event.trace?.split("-") ?? [];
  return {
    State: (
      <>
        <StateBadge {...event} /> It {fateOf(drawn, now)}.
      </>
    ),
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

/** The bodies of a message are shown up to 16 MiB together, those of its newest events first. */
export function BodyText({ event }: { readonly event: Pick<MessageEvent, "body" | "bytes" | "hasBody"> }) {
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

function bodyText(body: NonNullable<MessageEvent["body"]>): [kind: string, text: string] {
  if ("masked" in body) return ["only what its source shows", JSON.stringify(body.masked, null, 2)];
  return "text" in body ? ["exactly as it came", body.text] : ["binary, in base64", body.base64];
}

interface StoryListProps {
  readonly lane: number;
  readonly drawing: Message["drawing"];
}

/** The facts of the drawing as a table: for screen readers, and to copy. */
function StoryList({ lane, drawing }: StoryListProps) {
  return useMemo(() => {
    const { events, gaps, now } = drawing;
    return (
      <section class="panel story-list">
        <h2>The story as a list</h2>
        <DataTable
          caption="Events in the order of their arrival"
          columns={storyColumns(now)}
          hrefOf={({ id }) => href("message", lane, { event: id })}
          rows={events}
        />
        {gaps.map((gap) => (
          <p key={gap.from}>
            Missing since {formatClock(gap.since, now)}: {rangeOf(gap)}. {endOfGap(gap, now)}
          </p>
        ))}
      </section>
    );
  }, [lane, drawing]);
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

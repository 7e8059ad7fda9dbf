/**
 * The drawing of a lane: above, what arrived when; below, what was handled when; between them, what was waited for. Where that is too
 * wide, the events are drawn one below the other.
 */
import type { TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Drawing, DrawnEvent } from "../api.ts";
import { formatClock } from "./format.ts";
import { type Bar, halfOf, layout, pauseText, ROWS, repeatsOf, type Story } from "./layout.ts";
import { endOf, eventWords, holdWords } from "./story.ts";

/** The width of the rows' names. */
const NAMES_WIDTH = 62;

export interface TimelineProps {
  readonly drawing: Drawing;
  readonly selected: number | null;
  readonly onSelect: (id: number) => void;
}

type Placed = ReturnType<typeof layout>;

interface PictureProps extends TimelineProps {
  readonly placed: Placed;
}

export function Timeline(props: TimelineProps) {
  const { drawing } = props;
  const [box, room] = useWidth();
  const placed = useMemo(() => layout(drawing, room - NAMES_WIDTH), [drawing, room]);
  const fits = placed.width <= room - NAMES_WIDTH;
  return (
    <div class="timeline" ref={box}>
      {/* Not before the width is known, which is before anything is painted. */}
      {room > 0 && (fits ? <Picture placed={placed} {...props} /> : <Rail placed={placed} {...props} />)}
    </div>
  );
}

function Picture({ placed, drawing, selected, onSelect }: PictureProps) {
  // When only the selection changes, the shapes stay as they are.
  const { marks, words, backdrop } = useMemo(() => {
    const marks = placed.stories.map((story) => ({
      id: story.event.id,
      label: eventWords(story.event, drawing),
      shapes: <Shapes {...story} />,
    }));
    const words = placed.stories.map((story) => <Words key={story.event.id} {...story} />);
    return { marks, words, backdrop: <Backdrop placed={placed} drawing={drawing} /> };
  }, [placed, drawing]);
  const { width, height, top } = placed;
  return (
    <>
      <div class="picture">
        <svg width={NAMES_WIDTH} height={height} aria-hidden="true">
          <text class="strong" y={ROWS.mark + 4}>
            Arrived
          </text>
          <text class="strong" y={(ROWS.bands + top) / 2 - 4}>
            Waited
          </text>
          <text class="strong" y={top + 16}>
            Handled
          </text>
        </svg>
        {/* biome-ignore lint/a11y/useSemanticElements: HTML has no group for shapes */}
        <svg
          role="group"
          aria-label={`Timeline of ${marks.length} events`}
          width={width}
          height={height}
          onKeyDown={onKey}
        >
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can have the focus */}
          <g aria-hidden="true">{backdrop}</g>
          {marks.map(({ id, label, shapes }) => (
            // biome-ignore lint/a11y/useSemanticElements: SVG has no button
            <g
              key={id}
              class={id === selected ? "story selected" : "story"}
              role="button"
              tabindex={id === selected ? 0 : -1}
              aria-pressed={id === selected}
              aria-label={label}
              onClick={() => onSelect(id)}
            >
              {shapes}
            </g>
          ))}
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can have the focus */}
          <g class="words" aria-hidden="true">
            {words}
          </g>
        </svg>
      </div>
      <Legend />
    </>
  );
}

/** The events from top to bottom, each with what it waited for and its attempts. Its words need no legend. */
function Rail({ placed, drawing, selected, onSelect }: PictureProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form
    <div class="rail" role="group" aria-label={`Timeline of ${placed.stories.length} events`} onKeyDown={onKey}>
      {placed.stories.map(({ event, name, flags, bars }) => (
        <button
          key={event.id}
          type="button"
          class={event.id === selected ? "story selected" : "story"}
          tabindex={event.id === selected ? 0 : -1}
          aria-pressed={event.id === selected}
          onClick={() => onSelect(event.id)}
        >
          <span class="sr-only">{markText(event)}</span>
          <svg viewBox={`0 ${ROWS.mark - 15} 60 30`} width="60" height="30" aria-hidden="true">
            <path class="mark" d={markPath(30, event)} />
            <text class="middle strong" x="30" y={ROWS.mark + 5}>
              {markText(event)}
            </text>
          </svg>
          <b>
            {name} <span class="warn">{[repeatsOf(event), flags].filter(Boolean).join(" ")}</span>
          </b>
          <span class="muted">{formatClock(event.acceptedAt, drawing.now)}</span>
          {event.held && <Step kind="waited" text={holdWords(event.held, drawing)} />}
          {bars.map(({ kind, word, to }, index) => (
            <Step
              key={index}
              kind={kind}
              text={kind === "failed" ? `failed: ${word}` : word}
              time={formatClock(to, drawing.now)}
            />
          ))}
        </button>
      ))}
    </div>
  );
}

function Step({ kind, text, time = "" }: { readonly kind: string; readonly text: string; readonly time?: string }) {
  return (
    <>
      <Icon kind={kind} />
      <span>{text}</span>
      <span class="muted">{time}</span>
    </>
  );
}

/** A ref for an element, and the width of that element, also after it changes. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(element.current?.clientWidth ?? 0));
    if (element.current !== null) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}

/** Arrows go from event to event; Enter and the space bar press one. */
function onKey(event: TargetedKeyboardEvent<Element>): void {
  const { key, target, currentTarget } = event;
  if (!(target instanceof SVGElement || target instanceof HTMLElement)) return;
  if (key === "Enter" || key === " ") target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else {
    const all = [...currentTarget.querySelectorAll<SVGElement | HTMLElement>(".story")];
    const next = neighbourOf(all, all.indexOf(target), key);
    if (next === undefined) return;
    next.focus();
  }
  event.preventDefault();
}

function neighbourOf<T extends Element>(all: readonly T[], at: number, key: string): T | undefined {
  switch (key) {
    case "ArrowRight":
    case "ArrowDown":
      return all[at + 1];
    case "ArrowLeft":
    case "ArrowUp":
      return all[at - 1];
    case "Home":
      return all[0];
    case "End":
      return all.at(-1);
    default:
      return undefined;
  }
}

/** Everything that does not belong to a single event. */
function Backdrop({ placed, drawing }: Pick<PictureProps, "placed" | "drawing">) {
  const { pauses, ticks, bands, stories, end, now, height, top } = placed;
  return (
    <>
      {pauses.map(({ x1, x2, ms }) => (
        <g key={x1}>
          <rect class="pause" x={x1 + 2} y={ROWS.axis} width={x2 - x1 - 4} height={height - ROWS.axis} />
          <text class="small" x={(x1 + x2) / 2} y={ROWS.axis - 5}>
            {pauseText(ms)}
          </text>
        </g>
      ))}
      <path class="axis" d={`M0 ${ROWS.axis}H${end}M0 ${ROWS.mark}H${end}M0 ${top + 12}H${end + 14}`} />
      {ticks.map(({ x, text }) => (
        <g key={x}>
          <path class="axis" d={`M${x} ${ROWS.axis - 4}v8`} />
          <text class="small" x={x} y="14">
            {text}
          </text>
        </g>
      ))}
      {stories.map(({ event, x, y, bars: [bar] }) => bar && <Way key={event.id} from={x} to={bar.x1 + 12} y={y} />)}
      {bands.map(({ kind, x1, x2, y, text }, index) => (
        <g key={index} class={`${kind === "turn" ? "muted" : "warn"} ${kind}`}>
          <rect x={x1} y={y} width={x2 - x1} height={ROWS.band - 3} rx="4" />
          <text x={x1 + 8} y={y + 14}>
            {text}
          </text>
        </g>
      ))}
      {now !== null && (
        <>
          <path class="way open" d={`M${now} ${ROWS.axis}V${height}`} />
          <text class="small" x={now} y="14">
            now
          </text>
        </>
      )}
      <g class="muted">
        <rect x={end + 14} y={top} width="108" height={ROWS.bar} rx="4" />
        <text class="middle strong" x={end + 68} y={top + 16}>
          {endOf(drawing.end)}
        </text>
      </g>
    </>
  );
}

/** The line from an event's mark to its first bar. */
function Way({ from, to, y }: { readonly from: number; readonly to: number; readonly y: number }) {
  const start = ROWS.mark + 13;
  const middle = (start + y) / 2;
  return <path class="way" d={`M${from} ${start}C${from} ${middle} ${to} ${middle} ${to} ${y}`} />;
}

/** An event outside of a sequence has the number 0. */
function markText({ sequence }: DrawnEvent): string {
  return sequence === 0 ? "•" : `${sequence}`;
}

/** A box with round ends, or with pointed ones for a late event. */
function markPath(x: number, event: DrawnEvent): string {
  const half = halfOf(event);
  const top = ROWS.mark - 13;
  const start = `M${x - half + 7} ${top}h${2 * half - 14}`;
  const back = `h${14 - 2 * half}`;
  return event.late
    ? `${start}l7 13l-7 13${back}l-7-13l7-13z`
    : `${start}q8 0 8 8v10q0 8-8 8${back}q-8 0-8-8v-10q0-8 8-8z`;
}

function Shapes({ event, x, bars, y }: Story) {
  return (
    <>
      <path class="mark" d={markPath(x, event)} />
      {event.conflict && <Shape kind="conflict" x={x - halfOf(event) - 15} y={ROWS.mark - 6} />}
      {bars.map((bar, index) => (
        <BarShape key={index} bar={bar} before={bars[index - 1]} y={y} />
      ))}
    </>
  );
}

/** With a line from the bar before it. */
function BarShape({ bar: { kind, x1, x2 }, before, y }: { bar: Bar; before: Bar | undefined; y: number }) {
  return (
    <>
      {before && <path class="muted open" d={`M${before.x2} ${y + 12}H${x1}`} />}
      <g class={`${SHAPES[kind]?.colour} ${kind}`}>
        <rect x={x1} y={y} width={x2 - x1} height={ROWS.bar} rx="4" />
        <Shape kind={kind} x={x1 + 7} y={y + 6} />
      </g>
    </>
  );
}

/** Apart from the shapes: as part of the button, they would have to be part of its label. */
function Words({ event, name, flags, x, bars, y }: Story) {
  return (
    <>
      <text class="middle strong" x={x} y={ROWS.mark + 5}>
        {markText(event)}
      </text>
      <text class="middle" x={x} y={ROWS.mark - 32}>
        {name}
      </text>
      <text class="middle flag" x={x} y={ROWS.mark - 19}>
        {flags}
      </text>
      <text class="flag" x={x + halfOf(event) + 3} y={ROWS.mark + 14}>
        {repeatsOf(event)}
      </text>
      {bars.map(({ x1, text }) => (
        <text key={x1} x={x1 + 24} y={y + 16}>
          {text}
        </text>
      ))}
    </>
  );
}

interface ShapeOf {
  readonly colour: string;
  /** Strokes in a box of 12 by 12. */
  readonly path: string;
  /** For the legend. */
  readonly meaning?: string;
}

const RING = "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9";

/** Each shape differs from the others without its colour. */
const SHAPES: Readonly<Record<string, ShapeOf>> = {
  handled: { colour: "good", path: "M1.5 6.5l3 3l6-7", meaning: "handled" },
  failed: { colour: "bad", path: "M2 2l8 8M10 2l-8 8", meaning: "failed attempt" },
  dead: { colour: "bad", path: "M4 1h4l3 3v4l-3 3h-4l-3-3v-4zM4 4l4 4M8 4l-4 4", meaning: "dead letter" },
  unhandled: { colour: "muted", path: RING, meaning: "no handler" },
  filtered: { colour: "muted", path: "M1 2h10l-4 4.5v4l-2-1v-3z", meaning: "filtered" },
  discarded: { colour: "muted", path: `${RING}M3 9l6-6`, meaning: "discarded" },
  late: { colour: "warn", path: "M6 1l5 5l-5 5l-5-5z", meaning: "late: only recorded" },
  open: { colour: "wait", path: `${RING}M6 3.5v3l2 1`, meaning: "in progress" },
  before: { colour: "muted", path: "M3 2l6 4l-6 4z" },
  waited: { colour: "warn", path: "M4 2v8M8 2v8" },
  conflict: { colour: "warn", path: "M6 1l5.5 10h-11zM6 4.5v3M6 9v.5", meaning: "came again with other content" },
};

function Shape({ kind, x = 0, y = 0 }: { readonly kind: string; readonly x?: number; readonly y?: number }) {
  const { colour, path } = SHAPES[kind] ?? {};
  return <path class={colour} d={path} transform={`translate(${x} ${y})`} />;
}

function Icon({ kind }: { readonly kind: string }) {
  return (
    <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <Shape kind={kind} />
    </svg>
  );
}

/** What the shapes of the drawing mean. */
function Legend() {
  return (
    <ul class="legend" aria-label="Shapes of the drawing">
      {Object.entries(SHAPES).map(
        ([kind, { meaning }]) =>
          meaning && (
            <li key={kind}>
              <Icon kind={kind} /> {meaning}
            </li>
          ),
      )}
      <li>
        <b class="warn">×2</b> came twice
      </li>
      <li>
        <svg width="24" height="12" aria-hidden="true">
          <rect class="pause" width="24" height="12" />
        </svg>{" "}
        a long time, shortened
      </li>
    </ul>
  );
}

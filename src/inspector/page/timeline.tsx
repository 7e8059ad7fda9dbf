/** The drawing of a message: above, what arrived when; below, what was handled when; between them, what was waited for. */
import type { TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Drawing, DrawnEvent } from "../api.ts";
import { formatClock, formatDuration } from "./format.ts";
import { type Bar, layout, ROWS, type Story, shortened } from "./layout.ts";
import { endOf, eventWords } from "./story.ts";

export interface TimelineProps {
  readonly drawing: Drawing;
  readonly cursor: string;
  readonly selected: number | null;
  readonly onSelect: (id: number) => void;
}

export function Timeline({ drawing, cursor, selected, onSelect }: TimelineProps) {
  const [box, room] = useWidth();
  // When only the selection changes, the shapes stay as they are.
  const { placed, marks, words, backdrop } = useMemo(() => {
    const placed = layout(drawing, room);
    const marks = placed.stories.map((story) => ({
      id: story.event.id,
      label: eventWords(story.event, drawing),
      shapes: <Shapes {...story} />,
    }));
    const words = placed.stories.map((story) => <Words key={story.event.id} {...story} />);
    return { placed, marks, words, backdrop: <Backdrop placed={placed} drawing={drawing} cursor={cursor} /> };
  }, [drawing, room, cursor]);
  const { width, height, top } = placed;
  return (
    <div class="timeline">
      <svg width="62" height={height} aria-hidden="true">
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
      <div class="timeline-box" ref={box}>
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
    </div>
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
function onKey(event: TargetedKeyboardEvent<SVGSVGElement>): void {
  const { key, target, currentTarget } = event;
  if (!(target instanceof SVGElement)) return;
  if (key === "Enter" || key === " ") target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else {
    const all = [...currentTarget.querySelectorAll<SVGElement>(".story")];
    const next = neighbourOf(all, all.indexOf(target), key);
    if (next === undefined) return;
    next.focus();
  }
  event.preventDefault();
}

function neighbourOf(all: readonly SVGElement[], at: number, key: string): SVGElement | undefined {
  switch (key) {
    case "ArrowRight":
      return all[at + 1];
    case "ArrowLeft":
      return all[at - 1];
    case "Home":
      return all[0];
    case "End":
      return all.at(-1);
    default:
      return undefined;
  }
}

interface BackdropProps {
  readonly placed: ReturnType<typeof layout>;
  readonly drawing: Drawing;
  readonly cursor: string;
}

/** Everything that does not belong to a single event. */
function Backdrop({ placed, drawing, cursor }: BackdropProps) {
  const { pauses, ticks, bands, stories, end, now, height, top } = placed;
  return (
    <>
      {pauses.map(({ x1, x2, ms }) => (
        <g key={x1}>
          <rect class="pause" x={x1 + 2} y={ROWS.axis} width={x2 - x1 - 4} height={height - ROWS.axis} />
          <text class="small" x={(x1 + x2) / 2} y={ROWS.axis - 5}>
            ⋯ {formatDuration(ms)}
          </text>
        </g>
      ))}
      <path class="axis" d={`M0 ${ROWS.axis}H${end}M0 ${ROWS.mark}H${end}M0 ${top + 12}H${end + 14}`} />
      {ticks.map(({ x, at }, index) => (
        <g key={x}>
          <path class="axis" d={`M${x} ${ROWS.axis - 4}v8`} />
          <text class="small" x={x} y="14">
            {tickText(at, ticks[index - 1]?.at, drawing.now)}
          </text>
        </g>
      ))}
      {stories.map(({ event, x, y, bars: [bar] }) => bar && <Way key={event.id} from={x} to={bar.x1 + 12} y={y} />)}
      {bands.map(({ kind, x1, x2, y, text, textX }, index) => (
        <g key={index} class={`${kind === "turn" ? "muted" : "warn"} ${kind}`}>
          <rect x={x1} y={y} width={Math.max(2, x2 - x1)} height={ROWS.band - 3} />
          <text class="halo" x={textX} y={y + 14}>
            {text}
          </text>
        </g>
      ))}
      {now !== null && (
        <>
          <path class="way open" d={`M${now} ${ROWS.axis}V${height}`} />
          <text class="small" x={now} y={ROWS.axis - 5}>
            now
          </text>
        </>
      )}
      <g class="muted">
        <rect x={end + 14} y={top - 9} width="108" height="42" rx="4" />
        <text class="strong" x={end + 24} y={top + 8}>
          {endOf(drawing.end)}
        </text>
        <text x={end + 24} y={top + 24}>
          {cursor}
        </text>
      </g>
    </>
  );
}

function tickText(at: number, before: number | undefined, now: number): string {
  const text = formatClock(at, now);
  return before !== undefined && formatClock(before, now) === text ? `+${formatDuration(at - before)}` : text;
}

/** The line from an event's mark to its first bar. */
function Way({ from, to, y }: { readonly from: number; readonly to: number; readonly y: number }) {
  const start = ROWS.mark + 13;
  const middle = (start + y) / 2;
  return <path class="way" d={`M${from} ${start}C${from} ${middle} ${to} ${middle} ${to} ${y}`} />;
}

/** Half the width of an event's mark. */
function halfOf({ sequence }: DrawnEvent): number {
  return `${sequence}`.length * 4 + 9;
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
function Words({ event, flags, x, bars, y }: Story) {
  const { sequence, eventType, duplicates } = event;
  return (
    <>
      <text class="middle strong" x={x} y={ROWS.mark + 5}>
        {sequence}
      </text>
      <text class="middle" x={x} y={ROWS.mark - 32}>
        {shortened(eventType.replace(/^message\./, ""))}
      </text>
      <text class="middle flag" x={x} y={ROWS.mark - 19}>
        {flags}
      </text>
      {duplicates > 0 && (
        <text class="flag" x={x + halfOf(event) + 3} y={ROWS.mark + 14}>
          ×{duplicates + 1}
        </text>
      )}
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
  discarded: { colour: "muted", path: `${RING}M3 9l6-6`, meaning: "discarded" },
  late: { colour: "warn", path: "M6 1l5 5l-5 5l-5-5z", meaning: "late: only recorded" },
  open: { colour: "wait", path: `${RING}M6 3.5v3l2 1`, meaning: "in progress" },
  before: { colour: "muted", path: "M3 2l6 4l-6 4z" },
  conflict: { colour: "warn", path: "M6 1l5.5 10h-11zM6 4.5v3M6 9v.5", meaning: "came again with other content" },
};

function Shape({ kind, x = 0, y = 0 }: { readonly kind: string; readonly x?: number; readonly y?: number }) {
  const { colour, path } = SHAPES[kind] ?? {};
  return <path class={colour} d={path} transform={`translate(${x} ${y})`} />;
}

/** What the shapes of the drawing mean. */
export function Legend() {
  return (
    <ul class="legend" aria-label="Shapes of the drawing">
      {Object.entries(SHAPES).map(
        ([kind, { meaning }]) =>
          meaning && (
            <li key={kind}>
              <svg width="12" height="12" aria-hidden="true">
                <Shape kind={kind} />
              </svg>{" "}
              {meaning}
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

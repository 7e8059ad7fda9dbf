/** The drawing of a message: what arrived when, above; what was handed out when, below; and what was waited for between. */
import { clockTime, duration } from "../parts/format.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { layout, ROWS } from "./layout.js";
import { colourOf, Shape } from "./legend.js";
import { endOf, eventWords } from "./story.js";
import { cut } from "./stretches.js";

/** @typedef {import("./layout.js").Story} Story @typedef {import("../../api.ts").Drawing} Drawing */

/** @param {{ drawing: Drawing, cursor: string, selected: number | null, onSelect: (id: number) => void }} props */
export function Timeline({ drawing, cursor, selected, onSelect }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    const measure = new ResizeObserver(() => setRoom(box.current?.clientWidth ?? 0));
    if (box.current) measure.observe(box.current);
    return () => measure.disconnect();
  }, []);
  // What is drawn is kept as it is while only the selection changes.
  const { width, height, stories, top, words, backdrop } = useMemo(() => {
    const placed = layout(drawing, room);
    const marks = placed.stories.map((story) => ({
      ...story.event,
      label: eventWords(story.event, drawing),
      drawn: html`<${Shapes} ...${story} />`,
    }));
    const words = placed.stories.map((story) => html`<${Words} ...${story} />`);
    return { ...placed, stories: marks, words, backdrop: html`<${Backdrop} ...${{ placed, drawing, cursor }} />` };
  }, [drawing, room, cursor]);
  return html`<div class="timeline">
    <svg width="62" height=${height} aria-hidden="true">
      <text class="strong" y=${ROWS.mark + 4}>Arrived</text>
      <text class="strong" y=${(ROWS.bands + top) / 2 - 4}>Waited</text>
      <text class="strong" y=${top + 16}>Handled</text>
    </svg>
    <div class="timeline-box" ref=${box}>
      <svg role="group" aria-label=${`Timeline of ${stories.length} events`} width=${width} height=${height} onKeyDown=${step}>
        <g aria-hidden="true">${backdrop}</g>
        ${stories.map(
          ({ id, label, drawn }) => html`<g
            key=${id}
            class=${id === selected ? "story selected" : "story"}
            role="button"
            tabindex=${id === selected ? 0 : -1}
            aria-pressed=${`${id === selected}`}
            aria-label=${label}
            onClick=${() => onSelect(id)}
          >${drawn}</g>`,
        )}
        <g class="words" aria-hidden="true">${words}</g>
      </svg>
    </div>
  </div>`;
}

/** Arrows go from event to event; Enter and the space bar press one. @param {KeyboardEvent} event */
function step(event) {
  const { key, target, currentTarget } = event;
  if (!(currentTarget instanceof Element) || !(target instanceof SVGElement)) return;
  const all = [...currentTarget.querySelectorAll(".story")];
  const at = all.indexOf(target);
  /** @type {Record<string, Element | undefined>} */
  const keys = { ArrowRight: all[at + 1], ArrowLeft: all[at - 1], Home: all[0], End: all.at(-1) };
  const next = keys[key];
  if (key === "Enter" || key === " ") target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else if (next instanceof SVGElement) next.focus();
  else return;
  event.preventDefault();
}

/** All that belongs to no single event. @param {{ placed: ReturnType<typeof layout>, drawing: Drawing, cursor: string }} props */
function Backdrop({ placed: { pauses, ticks, bands, stories, end, now, height, top }, drawing, cursor }) {
  return html`
    ${pauses.map(
      ({
        x1,
        x2,
        ms,
      }) => html`<rect class="pause" x=${x1 + 2} y=${ROWS.axis} width=${x2 - x1 - 4} height=${height - ROWS.axis} />
      <text class="small" x=${(x1 + x2) / 2} y=${ROWS.axis - 5}>⋯ ${duration(ms)}</text>`,
    )}
    <path class="axis" d=${`M0 ${ROWS.axis}H${end}M0 ${ROWS.mark}H${end}M0 ${top + 12}H${end + 14}`} />
    ${ticks.map(
      ({ x, at }, index) => html`<path class="axis" d=${`M${x} ${ROWS.axis - 4}v8`} />
      <text class="small" x=${x} y="14">${tickText(at, ticks[index - 1]?.at, drawing.now)}</text>`,
    )}
    ${stories.map(({ x, y, bars: [bar] }) => bar && html`<path class="way" d=${wayOf(x, bar.x1 + 12, y)} />`)}
    ${bands.map(
      ({ kind, x1, x2, y, text, textX }) => html`<g class=${`${kind === "turn" ? "muted" : "warn"} ${kind}`}>
      <rect x=${x1} y=${y} width=${Math.max(2, x2 - x1)} height=${ROWS.band - 3} />
      <text class="halo" x=${textX} y=${y + 14}>${text}</text>
    </g>`,
    )}
    ${now !== null && html`<path class="way open" d=${`M${now} ${ROWS.axis}V${height}`} /><text class="small" x=${now} y=${ROWS.axis - 5}>now</text>`}
    <g class="muted"><rect x=${end + 14} y=${top - 9} width="108" height="42" rx="4" />
      <text class="strong" x=${end + 24} y=${top + 8}>${endOf(drawing.end)}</text>
      <text x=${end + 24} y=${top + 24}>${cursor}</text></g>`;
}

/** @param {number} at @param {number | undefined} before @param {number} now */
function tickText(at, before, now) {
  const text = clockTime(at, now);
  return before !== undefined && clockTime(before, now) === text ? `+${duration(at - before)}` : text;
}

/** @param {number} from @param {number} to @param {number} y */
function wayOf(from, to, y) {
  const middle = (ROWS.mark + 13 + y) / 2;
  return `M${from} ${ROWS.mark + 13}C${from} ${middle} ${to} ${middle} ${to} ${y}`;
}

/** @param {import("../../api.ts").DrawnEvent} event half of its mark */
const halfOf = ({ sequence }) => `${sequence}`.length * 4 + 9;

/** @param {Story} props */
function Shapes({ event, x, bars, y }) {
  const half = halfOf(event);
  const top = ROWS.mark - 13;
  const [right, left] = event.late ? ["l7 13l-7 13", "l-7-13l7-13"] : ["q8 0 8 8v10q0 8-8 8", "q-8 0-8-8v-10q0-8 8-8"];
  return html`<path class="mark" d=${`M${x - half + 7} ${top}h${2 * half - 14}${right}h${14 - 2 * half}${left}z`} />
    ${event.conflict && html`<${Shape} kind="conflict" x=${x - half - 15} y=${top + 7} />`}
    ${bars.map(
      (
        { kind, x1, x2 },
        index,
      ) => html`${index > 0 && html`<path class="muted open" d=${`M${bars[index - 1]?.x2} ${y + 12}H${x1}`} />`}
      <g class=${`${colourOf(kind)} ${kind}`}>
        <rect x=${x1} y=${y} width=${x2 - x1} height=${ROWS.bar} rx="4" />
        <${Shape} kind=${kind} x=${x1 + 7} y=${y + 6} />
      </g>`,
    )}`;
}

/** Apart from the shapes: what a button is called would have to begin with them. @param {Story} props */
function Words({ event, flags, x, bars, y }) {
  const { sequence, eventType, duplicates } = event;
  return html`<text class="middle strong" x=${x} y=${ROWS.mark + 5}>${sequence}</text>
    <text class="middle" x=${x} y=${ROWS.mark - 32}>${cut(eventType.replace(/^message\./, ""))}</text>
    <text class="middle flag" x=${x} y=${ROWS.mark - 19}>${flags}</text>
    ${duplicates > 0 && html`<text class="flag" x=${x + halfOf(event) + 3} y=${ROWS.mark + 14}>×${duplicates + 1}</text>`}
    ${bars.map(({ x1, text }) => html`<text x=${x1 + 24} y=${y + 16}>${text}</text>`)}`;
}

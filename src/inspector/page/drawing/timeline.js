/** The drawing of a message: what arrived when, above; what was handed out when, below; and what was waited for between. */
import { clockTime, duration } from "../parts/format.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { layout, ROWS } from "./layout.js";
import { Shape } from "./legend.js";
import { endOf, eventWords } from "./story.js";
import { cut } from "./stretches.js";

/**
 * @typedef {import("./layout.js").Story} Story
 * @typedef {ReturnType<typeof layout>} Layout
 */

/**
 * @param {object} props
 * @param {import("../../api.ts").Drawing} props.drawing
 * @param {number | null} props.cursor
 * @param {number | null} props.selected the id of an event
 * @param {(id: number) => void} props.onSelect
 */
export function Timeline({ drawing, cursor, selected, onSelect }) {
  /** @type {import("../vendor/htm-preact.js").Ref<HTMLElement | null>} */
  const box = useRef(null);
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    if (box.current === null) return;
    const measure = new ResizeObserver(([entry]) => setRoom(entry?.contentRect.width ?? 0));
    measure.observe(box.current);
    return () => measure.disconnect();
  }, []);
  const placed = useMemo(() => layout(drawing, room), [drawing, room]);
  const { width, height, stories } = placed;
  const first = stories.some(({ event }) => event.id === selected) ? selected : stories[0]?.event.id;
  const viewBox = `0 0 ${width} ${height}`;
  return html`<div class="timeline">
    <svg class="lanes" width="62" height=${height} aria-hidden="true">
      <text x="0" y=${ROWS.mark + 4}>Arrived</text>
      <text x="0" y=${(ROWS.bands + placed.handlingY) / 2 - 4}>Waited</text>
      <text x="0" y=${placed.handlingY + 16}>Handled</text>
    </svg>
    <div class="timeline-box" ref=${box}>
      <svg role="group" aria-label=${`Timeline of ${drawing.events.length} events`} width=${width} height=${height} viewBox=${viewBox} onKeyDown=${step}>
        <g aria-hidden="true"><${Backdrop} placed=${placed} drawing=${drawing} cursor=${cursor} /></g>
        ${stories.map((story) => {
          const { id } = story.event;
          return html`<g
            key=${id}
            class=${id === selected ? "story selected" : "story"}
            role="button"
            tabindex=${id === first ? 0 : -1}
            aria-pressed=${id === selected}
            aria-label=${eventWords(story.event, drawing)}
            onClick=${() => onSelect(id)}
            data-id=${id}
          ><${Arrival} story=${story} /><${Handling} story=${story} /></g>`;
        })}
      </svg>
    </div>
  </div>`;
}

/** @type {Readonly<Record<string, (at: number, last: number) => number>>} */
const STEPS = {
  ArrowRight: (at, last) => Math.min(last, at + 1),
  ArrowLeft: (at) => Math.max(0, at - 1),
  Home: () => 0,
  End: (_, last) => last,
};

/** Arrows go from event to event; Enter and the space bar press one. @param {KeyboardEvent} event */
function step(event) {
  const { key, target, currentTarget } = event;
  if (!(currentTarget instanceof Element) || !(target instanceof SVGElement)) return;
  const all = [...currentTarget.querySelectorAll(".story")];
  const at = all.indexOf(target);
  const next = all[STEPS[key]?.(at, all.length - 1) ?? -1];
  if (key === "Enter" || key === " ") target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else if (next instanceof SVGElement) next.focus();
  else return;
  event.preventDefault();
}

/** All that belongs to no single event. @param {{ placed: Layout, drawing: import("../../api.ts").Drawing, cursor: number | null }} props */
function Backdrop({ placed, drawing, cursor }) {
  const { pauses, ticks, bands, stories, end, now, height, handlingY } = placed;
  const middle = handlingY + ROWS.bar / 2;
  return html`
    ${pauses.map(
      ({
        x1,
        x2,
        ms,
      }) => html`<rect class="pause" x=${x1 + 2} y=${ROWS.axis} width=${x2 - x1 - 4} height=${height - ROWS.axis} />
      <text class="small" x=${(x1 + x2) / 2} y=${ROWS.axis - 5}>⋯ ${duration(ms)}</text>`,
    )}
    <path class="axis" d=${`M0 ${ROWS.axis}H${end}M0 ${ROWS.mark}H${end}M0 ${middle}H${end + 14}`} />
    ${ticks.map(
      ({ x, at }, index) => html`<path class="axis" d=${`M${x} ${ROWS.axis - 4}v8`} />
      <text class="small" x=${x} y="14">${tickText(at, ticks[index - 1]?.at, drawing.now)}</text>`,
    )}
    ${stories.map(({ x, y, bars: [bar] }) => bar && html`<path class="link" d=${linkOf(x, bar.x1 + 12, y)} />`)}
    ${bands.map(
      ({ kind, x1, x2, y, text, textX }) => html`<g class=${`band ${kind}`}>
      <rect x=${x1} y=${y} width=${Math.max(2, x2 - x1)} height=${ROWS.band - 3} />
      <text x=${textX} y=${y + 14}>${text}</text>
    </g>`,
    )}
    ${now !== null && html`<path class="now" d=${`M${now} 20V${height}`} /><text class="small" x=${now + 6} y="26">now</text>`}
    <g class=${`end ${drawing.end.state}`}>
      <rect x=${end + 14} y=${handlingY - 9} width="108" height="42" rx="4" />
      <text x=${end + 24} y=${handlingY + 8}>${endOf(drawing.end)}</text>
      <text class="cursor" x=${end + 24} y=${handlingY + 24}>${cursor === null ? "nothing handed out" : `cursor ${cursor}`}</text>
    </g>`;
}

/** @param {number} at @param {number | undefined} before @param {number} now */
function tickText(at, before, now) {
  const text = clockTime(at, now);
  return before !== undefined && clockTime(before, now) === text ? `+${duration(at - before)}` : text;
}

/** @param {number} from @param {number} to @param {number} y */
function linkOf(from, to, y) {
  const top = ROWS.mark + 13;
  return `M${from} ${top}C${from} ${(top + y) / 2} ${to} ${(top + y) / 2} ${to} ${y}`;
}

/** @param {{ story: Story }} props */
function Arrival({ story: { event, flags, x } }) {
  const half = Math.max(13, `${event.sequence}`.length * 4 + 6);
  const y = ROWS.mark;
  const outline = event.late
    ? `M${x - half - 5} ${y}l7-13h${2 * half - 4}l7 13l-7 13h${4 - 2 * half}z`
    : `M${x - half + 8} ${y - 13}h${2 * half - 16}a8 8 0 0 1 8 8v10a8 8 0 0 1-8 8h${16 - 2 * half}a8 8 0 0 1-8-8v-10a8 8 0 0 1 8-8z`;
  return html`<path class="mark" d=${outline} />
    <text class="sequence" x=${x} y=${y + 5}>${event.sequence}</text>
    <text class="type" x=${x} y=${y - 32}>${cut(event.eventType.replace(/^message\./, ""))}</text>
    ${flags && html`<text class="flags" x=${x} y=${y - 19}>${flags}</text>`}
    ${event.conflict && html`<${Shape} kind="conflict" x=${x - half - 15} y=${y - 6} />`}
    ${event.duplicates > 0 && html`<text class="times" x=${x + half + 3} y=${y + 14}>×${event.duplicates + 1}</text>`}`;
}

/** @param {{ story: Story }} props */
function Handling({ story: { bars, y } }) {
  return bars.map(({ kind, x1, x2, text }, index) => {
    const before = bars[index - 1];
    return html`${before && html`<path class="retry" d=${`M${before.x2} ${y + ROWS.bar / 2}H${x1}`} />`}
      <rect class=${`bar ${kind}`} x=${x1} y=${y} width=${x2 - x1} height=${ROWS.bar} rx="4" />
      <${Shape} kind=${kind} x=${x1 + 7} y=${y + 6} />
      <text class="bar-text" x=${x1 + 24} y=${y + 16}>${text}</text>`;
  });
}

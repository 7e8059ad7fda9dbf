/** What an event costs at the store, by how many are stored already. */
import type { CostPoint } from "./result.ts";
import { COLOURS, dot, grouped, line, type Place, path, picture, text, ticks } from "./svg.ts";

const WIDTH = 860;
const HEIGHT = 410;
const LEFT = 70;
const RIGHT = 190;
const TOP = 66;
const BOTTOM = 70;
/** Labels at the ends of the lines stay so far apart. */
const LABEL_STEP = 18;
const LOOKS = [
  { stroke: "#0a5cad", dash: "none" },
  { stroke: "#b35900", dash: "8 4" },
  { stroke: "#6639ba", dash: "2 4" },
  { stroke: "#1a7f37", dash: "12 4 2 4" },
];

interface Series {
  readonly name: string;
  readonly look: { readonly stroke: string; readonly dash: string };
  readonly places: readonly Place[];
}

/** Null without two numbers of stored events. */
export function costChart(points: readonly CostPoint[]): string | null {
  const stored = storedOf(points);
  if (stored.length < 2) return null;
  const values = ticks(Math.max(...points.map(({ microseconds }) => microseconds)), 5);
  const [right, bottom] = [WIDTH - RIGHT, HEIGHT - BOTTOM];
  // Steps of a power of ten and none: places in a row, not a scale.
  const xOf = (count: number) => LEFT + 40 + (stored.indexOf(count) * (right - LEFT - 80)) / (stored.length - 1);
  const yOf = (value: number) => bottom - (value * (bottom - TOP)) / (values.at(-1) ?? 1);
  const series = namesOf(points).map((name, index): Series => {
    const own = points.filter((point) => point.series === name).toSorted((a, b) => a.stored - b.stored);
    const places = own.map(({ stored: count, microseconds }): Place => [xOf(count), yOf(microseconds)]);
    return { name, look: LOOKS[index % LOOKS.length] ?? { stroke: COLOURS.ink, dash: "none" }, places };
  });
  const parts = [
    text(16, 28, "An event at the SQLite store, 64 a transaction", { weight: "bold", size: 16 }),
    text(16, 48, "microseconds per event", { fill: COLOURS.quiet }),
    ...values.flatMap((value) => [
      line([LEFT, yOf(value)], [right, yOf(value)]),
      text(LEFT - 8, yOf(value) + 4, grouped(value), { anchor: "end", fill: COLOURS.quiet }),
    ]),
    ...stored.map((count) => text(xOf(count), bottom + 20, grouped(count), { anchor: "middle", fill: COLOURS.quiet })),
    text((LEFT + right) / 2, bottom + 46, "handled events stored, and a fifth as many messages waiting", {
      anchor: "middle",
    }),
    ...series.flatMap(({ look, places }) => [path(places, look), ...places.map((place) => dot(place, look.stroke))]),
    ...labelsOf(series),
  ];
  return picture({ width: WIDTH, height: HEIGHT }, costInWords(points), parts);
}

/** What the chart shows, for those who do not see it. */
export function costInWords(points: readonly CostPoint[]): string {
  const series = namesOf(points).map((name) => {
    const own = points.filter((point) => point.series === name).toSorted((a, b) => a.stored - b.stored);
    const costs = own.map(({ stored, microseconds }) => `${grouped(microseconds)} with ${grouped(stored)} stored`);
    return `${name}: ${costs.join(", ")}.`;
  });
  return `Microseconds per event. ${series.join(" ")}`;
}

/** Each at the height of its line's end, or as far below the one above as it must be. */
function labelsOf(series: readonly Series[]): readonly string[] {
  const ends = series.flatMap(({ name, look, places }) => {
    const end = places.at(-1);
    return end === undefined ? [] : [{ name, look, x: end[0], y: end[1] }];
  });
  let above = Number.NEGATIVE_INFINITY;
  return ends
    .toSorted((a, b) => a.y - b.y)
    .map(({ name, look, x, y }) => {
      above = Math.max(y + 4, above + LABEL_STEP);
      return text(x + 12, above, name, { fill: look.stroke, weight: "bold" });
    });
}

function storedOf(points: readonly CostPoint[]): readonly number[] {
  return [...new Set(points.map(({ stored }) => stored))].sort((a, b) => a - b);
}

function namesOf(points: readonly CostPoint[]): readonly string[] {
  return [...new Set(points.map(({ series }) => series))];
}

/** Requests a second of each side, under what its events outlive once they were answered. */
import { type Outlives, SIDES } from "../../bench/sides.ts";
import type { ThroughputPoint } from "./result.ts";
import { bar, COLOURS, grouped, line, picture, text, ticks } from "./svg.ts";

const HEADINGS: Readonly<Record<Outlives, string>> = {
  "a power cut": "Answered once it outlives a power cut",
  "the process": "Answered once it outlives the process, not yet a power cut",
  nothing: "Answered without anything that outlives the process",
};
const WIDTH = 860;
const LEFT = 250;
const RIGHT = 70;
const TOP = 50;
const HEADING = 34;
const STEP = 28;
const BAR = 18;
const AXIS = 52;

/** Null with fewer than two sides: there is nothing to compare. */
export function throughputChart(points: readonly ThroughputPoint[]): string | null {
  if (points.length < 2) return null;
  const values = ticks(Math.max(...points.map(({ perSecond }) => perSecond)), 5);
  const scale = (WIDTH - LEFT - RIGHT) / (values.at(-1) ?? 1);
  const groups = groupsOf(points);
  const bottom = TOP + groups.length * HEADING + points.length * STEP;
  const grid = values.flatMap((value) => {
    const x = LEFT + value * scale;
    return [
      line([x, TOP], [x, bottom]),
      text(x, bottom + 18, grouped(value), { anchor: "middle", fill: COLOURS.quiet }),
    ];
  });
  let y = TOP;
  const bars = groups.flatMap(([outlives, members]) => {
    const heading = text(16, y + 24, HEADINGS[outlives], { weight: "bold" });
    const first = y + HEADING;
    y = first + members.length * STEP;
    return [heading, ...members.flatMap((point, index) => barOf(point, scale, first + index * STEP))];
  });
  const parts = [
    text(16, 28, "Deliveries accepted on Fastify, 64 connections", { weight: "bold", size: 16 }),
    ...grid,
    ...bars,
    text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, "requests per second", { anchor: "middle" }),
  ];
  return picture({ width: WIDTH, height: bottom + AXIS }, throughputInWords(points), parts);
}

/** What the chart shows, for those who do not see it. */
export function throughputInWords(points: readonly ThroughputPoint[]): string {
  const groups = groupsOf(points).map(([outlives, members]) => {
    const sides = members.map(({ side, perSecond }) => `${SIDES[side].label} ${grouped(Math.round(perSecond))}`);
    return `${HEADINGS[outlives]}: ${sides.join(", ")}.`;
  });
  return `Requests per second. ${groups.join(" ")}`;
}

/** The most durable first, and in each group the fastest. */
function groupsOf(points: readonly ThroughputPoint[]): readonly (readonly [Outlives, readonly ThroughputPoint[]])[] {
  const sorted = points.toSorted((a, b) => b.perSecond - a.perSecond);
  return (["a power cut", "the process", "nothing"] as const)
    .map((outlives) => [outlives, sorted.filter(({ side }) => SIDES[side].outlives === outlives)] as const)
    .filter(([, members]) => members.length > 0);
}

function barOf({ side, perSecond }: ThroughputPoint, scale: number, y: number): readonly string[] {
  const { label } = SIDES[side];
  const isOurs = label.startsWith("oncehook");
  const width = perSecond * scale;
  return [
    text(LEFT - 10, y + 14, label, { anchor: "end", weight: isOurs ? "bold" : "normal" }),
    bar({ x: LEFT, y, width, height: BAR }, isOurs ? COLOURS.ours : COLOURS.others),
    text(LEFT + width + 6, y + 14, grouped(Math.round(perSecond))),
  ];
}

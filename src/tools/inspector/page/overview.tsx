/** How the inbox is doing now, and how that changed over the last minutes; and the audit: who did what. */
import type { ComponentChildren } from "preact";
import type { AuditList, AuditRecord, Overview, Sample } from "../api.ts";
import { get } from "./api.ts";
import { formatAge, formatCount, formatDuration, formatTime } from "./format.ts";
import { EventLink, Listed, usePages } from "./lists.tsx";
import { useLive } from "./live.ts";
import { type Column, DataTable, Empty } from "./parts.tsx";
import { href } from "./router.ts";

const MINUTE_MS = 60_000;

interface Gauge {
  readonly name: string;
  readonly value: string | number;
  readonly href?: string;
  readonly isBad?: boolean;
}

export function OverviewView() {
  const { overview, samples } = useLive();
  if (overview === null)
    return (
      <>
        <h1>Overview</h1>
        <Empty>Reading the inbox.</Empty>
      </>
    );
  const { rejections, slots, instances, now } = overview;
  const receivers = instances.map(({ host, pid, seenAt }) => [host, pid, formatAge(seenAt, now)]);
  return (
    <>
      <h1>Overview</h1>
      <p class="summary">
        <b>{healthOf(overview)}</b>
      </p>
      <Gauges title="Now" gauges={nowOf(overview, samples)} />
      <Gauges title="Since the inbox was made" gauges={sinceOf(overview)} />
      <Charts samples={samples} />
      <div class="panels">
        <TablePanel title="Refused deliveries by reason" heads={["Reason", "Count"]} rows={largestFirst(rejections)} />
        <TablePanel title="Deliveries by secret" heads={["Secret", "Count"]} rows={largestFirst(slots)} />
        <TablePanel title="Receivers" heads={["Host", "Process", "Seen"]} rows={receivers} />
      </div>
    </>
  );
}

/** What waits for somebody to act, in a sentence. */
export function healthOf({ gauges }: Pick<Overview, "gauges">): string {
  const { dead, quarantined, blockedLanes } = gauges;
  const kinds: readonly (readonly [count: number, one: string, several: string])[] = [
    [dead, "dead letter", "dead letters"],
    [blockedLanes, "blocked lane", "blocked lanes"],
    [quarantined, "quarantined body", "quarantined bodies"],
  ];
  const waiting = kinds.filter(([count]) => count > 0);
  if (waiting.length === 0) return "Nothing needs you.";
  const parts = waiting.map(([count, one, several]) => `${formatCount(count)} ${count === 1 ? one : several}`);
  return `To act on: ${parts.join(", ")}.`;
}

function nowOf({ gauges, oldestPendingAt, newestSignedAt, now }: Overview, samples: readonly Sample[]): Gauge[] {
  const { pending, dead, quarantined, blockedLanes } = gauges;
  const rate = (field: keyof Sample) => {
    const mean = meanRate(samples, field, MINUTE_MS);
    return mean === undefined ? "–" : `${formatCount(mean)} /s`;
  };
  return [
    { name: "Backlog", value: pending, href: href("events", null, { state: "pending" }) },
    { name: "Oldest waiting", value: oldestPendingAt === null ? "none" : formatDuration(now - oldestPendingAt) },
    { name: "Dead letters", value: dead, href: href("dead"), isBad: dead > 0 },
    { name: "Quarantined", value: quarantined, href: href("quarantine"), isBad: quarantined > 0 },
    { name: "Blocked", value: blockedLanes, href: href("dead"), isBad: blockedLanes > 0 },
    { name: "Accepted", value: rate("accepted") },
    { name: "Handled", value: rate("handled") },
    { name: "Refused", value: rate("rejected") },
    { name: "Last delivery", value: formatAge(newestSignedAt, now) },
  ];
}

/** `gapsSkipped` becomes `gaps skipped`. */
function sinceOf({ counters }: Overview): Gauge[] {
  return Object.entries(counters).map(([name, value]) => ({
    name: name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    value,
  }));
}

function Gauges({ title, gauges }: { readonly title: string; readonly gauges: readonly Gauge[] }) {
  return (
    <>
      <h2>{title}</h2>
      <dl class="gauges">
        {gauges.map(({ name, value, href, isBad }) => {
          const text = typeof value === "number" ? formatCount(value) : value;
          return (
            <div key={name} class="panel">
              <dt>{name}</dt>
              <dd class={isBad ? "bad" : undefined}>{href === undefined ? text : <a href={href}>{text}</a>}</dd>
            </div>
          );
        })}
      </dl>
    </>
  );
}

function Charts({ samples }: { readonly samples: readonly Sample[] }) {
  const level = (field: keyof Sample): Point[] => samples.map((sample) => ({ at: sample.at, value: sample[field] }));
  const rate = (field: keyof Sample) => rates(samples, field);
  return (
    <>
      <h2>Over time</h2>
      <div class="panels">
        <Chart title="Backlog" unit={formatCount} lines={{ Waiting: level("pending") }} />
        <Chart title="Oldest waiting" unit={formatDuration} lines={{ Age: level("oldestWaitingMs") }} />
        <Chart title="Per second" unit={formatCount} lines={{ Accepted: rate("accepted"), Handled: rate("handled") }} />
        <Chart title="Refused per second" unit={formatCount} lines={{ Refused: rate("rejected") }} />
        <Chart
          title="To act on"
          unit={formatCount}
          lines={{ Dead: level("dead"), Quarantined: level("quarantined") }}
        />
        <Chart
          title="Out of order"
          unit={formatCount}
          lines={{ Late: level("late"), "Gaps skipped": level("gapsSkipped") }}
        />
      </div>
    </>
  );
}

function largestFirst(counts: Readonly<Record<string, number>>): string[][] {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, n]) => [name, formatCount(n)]);
}

interface TablePanelProps {
  readonly title: string;
  readonly heads: readonly string[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}

function TablePanel({ title, heads, rows }: TablePanelProps) {
  const columns = heads.map((head, index) => ({
    name: "text",
    title: head,
    cell: (row: readonly ComponentChildren[]) => row[index],
  }));
  return (
    <section class="panel">
      <h2>{title}</h2>
      {rows.length > 0 ? <DataTable caption={title} columns={columns} rows={rows} /> : <Empty>None.</Empty>}
    </section>
  );
}

interface Point {
  readonly at: number;
  readonly value: number;
}

const WIDTH = 600;
const HEIGHT = 100;
const SHORTEST_MS = 60_000;

type Range = readonly [from: number, to: number];

export function scale([from, to]: Range, [low, high]: Range): (value: number) => number {
  return (value) => (to === from ? low : low + ((value - from) / (to - from)) * (high - low));
}

/** The next of 1, 2, 5, 10, 20, … */
export function ceiling(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return power * ([1, 2, 5].find((step) => step * power >= highest) ?? 10);
}

/** How much a count grew per second. A count starts again when its process does: then it grew by nothing. */
export function rates(samples: readonly Sample[], field: keyof Sample): Point[] {
  return samples.slice(1).flatMap((sample, index) => {
    const before = samples[index] ?? sample;
    const seconds = (sample.at - before.at) / 1_000;
    if (seconds <= 0) return [];
    return [{ at: sample.at, value: Math.max(0, sample[field] - before[field]) / seconds }];
  });
}

/** The mean over the last `overMs`; undefined before there are two samples. */
export function meanRate(samples: readonly Sample[], field: keyof Sample, overMs: number): number | undefined {
  const last = samples.at(-1);
  const first = samples.find(({ at }) => at >= (last?.at ?? 0) - overMs);
  if (first === undefined || last === undefined) return undefined;
  return rates([first, last], field)[0]?.value;
}

export function linePath(points: readonly Point[], x: (at: number) => number, y: (value: number) => number): string {
  return points
    .map(({ at, value }, index) => `${index === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`)
    .join("");
}

function highestOf(points: readonly Point[]): number {
  return Math.max(0, ...points.map(({ value }) => value));
}

interface ChartProps {
  readonly title: string;
  readonly unit: (value: number) => string;
  readonly lines: Readonly<Record<string, readonly Point[]>>;
}

function Chart({ title, unit, lines }: ChartProps) {
  const all = Object.values(lines).flat();
  const to = Math.max(0, ...all.map(({ at }) => at));
  const from = Math.min(to - SHORTEST_MS, ...all.map(({ at }) => at));
  const top = ceiling(highestOf(all));
  const x = scale([from, to], [0, WIDTH]);
  const y = scale([0, top], [HEIGHT, 2]);
  const span = formatDuration(to - from);
  const drawn = Object.entries(lines).map(([name, points]) => {
    const now = unit(points.at(-1)?.value ?? 0);
    return {
      name,
      path: linePath(points, x, y),
      now,
      words: `${name}: now ${now}, at most ${unit(highestOf(points))}.`,
    };
  });
  return (
    <figure class="chart panel">
      <figcaption>
        <h3>{title}</h3>
        {drawn.map(({ name, now }) => (
          <span key={name} class="line">
            {name} {now}
          </span>
        ))}
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}, last ${span}. ${drawn.map(({ words }) => words).join(" ")}`}
      >
        {drawn.map(({ name, path }) => (
          <path key={name} class="line" d={path} />
        ))}
      </svg>
      <p class="axis muted" aria-hidden="true">
        <span>{span} ago</span>
        <span>0 to {unit(top)}</span>
        <span>now</span>
      </p>
    </figure>
  );
}

const AUDIT_COLUMNS: readonly Column<AuditRecord>[] = [
  { name: "when", title: "When", cell: ({ at }) => formatTime(at) },
  { name: "who", title: "Who", cell: ({ by }) => <span title={by}>{by}</span> },
  { name: "did", title: "Action", cell: ({ act }) => act.replaceAll("_", " ") },
  { name: "what", title: "Detail", cell: ({ detail }) => <Detail text={detail} /> },
];

export function AuditView() {
  const pages = usePages((_after, signal) => get<AuditList>("api/audit", signal), useLive().changed);
  const table = { caption: "Acts, the newest first", columns: AUDIT_COLUMNS };
  return (
    <>
      <div class="head">
        <h1>Audit</h1>
      </div>
      <Listed
        isWhole
        pages={pages}
        empty="Nobody has acted yet. Each replay, discard, unblock and reveal is listed here, with who did it."
        table={table}
      />
    </>
  );
}

/** `event 7`, `lane 7` and `quarantine 7` become links. */
function Detail({ text }: { readonly text: string }) {
  const [, kind, number] = /^(event|lane|quarantine) (\d+)$/.exec(text) ?? [];
  const id = Number(number);
  switch (kind) {
    case "event":
      return <EventLink id={id} />;
    case "lane":
      return <a href={href("lane", id)}>lane {id}</a>;
    case "quarantine":
      return <a href={href("quarantine", id)}>quarantined body {id}</a>;
    default:
      return <>{text}</>;
  }
}

/** docs/benchmarks.md and its pictures, made of one run's result. */
import { SIDES, type Side } from "../../bench/sides.ts";
import { table } from "../docs/table.ts";
import { costChart, costInWords } from "./cost-chart.ts";
import { costsOf, type Result, type ResultRow, throughputOf } from "./result.ts";
import { throughputChart, throughputInWords } from "./throughput-chart.ts";

const FOLDER = "benchmarks";

/** The contents of each file by its path below docs/; null for a picture that this run has no numbers for. */
export function benchmarksPage(result: Result): ReadonlyMap<string, string | null> {
  const [throughput, costs] = [throughputOf(result), costsOf(result)];
  const [throughputSvg, costSvg] = [throughputChart(throughput), costChart(costs)];
  const sections = [
    opening(result),
    "## Throughput against durability",
    shown(throughputSvg, "throughput.svg", throughputInWords(throughput)),
    guarantees(throughput.map(({ side }) => side)),
    "## Cost against stored events",
    shown(costSvg, "cost.svg", costInWords(costs)),
    "A store that slowed down as it filled would rise to the right.",
    "## Every row",
    rowsTable(result.rows),
    unmeasured(result),
    "## Measured on",
    table(
      ["what", "which"],
      Object.entries(result.machine).map(([name, value]) => [name, `${value}`]),
    ),
    CLOSING,
  ];
  return new Map([
    [`${FOLDER}.md`, `${sections.filter((section) => section !== "").join("\n\n")}\n`],
    [`${FOLDER}/throughput.svg`, throughputSvg],
    [`${FOLDER}/cost.svg`, costSvg],
  ]);
}

function opening({ machine, only, rows }: Result): string {
  const missed = rows.filter(({ ok }) => !ok).length;
  return `# Benchmarks

Written by \`npm run bench:page\` from one run of \`npm run bench\` on ${machine.date}. **${rows.length} rows, of which ${missed} miss
their limit.** Ratios compare sides of the same run, which take turns under the same load from a process of its own; each is the median of
its rounds. All of it runs on one machine with ${machine.cores} cores: the load, the server and its database. In the minute before it
began, ${machine.loadBefore} other programmes were running on average; with more than one for every core, ratios say little and figures nothing.${
    only.length === 0
      ? ""
      : `

Only the rows whose name contains ${only.map((part) => `"${part}"`).join(" or ")} were run.`
  }`;
}

function shown(svg: string | null, file: string, words: string): string {
  if (svg === null) return "The rows that this picture shows were not measured in this run.";
  return `![${words.replace(/[[\]]/g, "")}](${FOLDER}/${file})`;
}

function guarantees(sides: readonly Side[]): string {
  if (sides.length === 0) return "";
  const lines = sides.map((side) => [SIDES[side].label, SIDES[side].before, SIDES[side].outlives]);
  return `What each has done when it answers with a 2xx. Those that store verify and parse in the same way, and took their turns with each
other; the two of Fastify alone took theirs with an inbox on SQLite, just before:

${table(["side", "before the 2xx", "the event outlives"], lines)}`;
}

function rowsTable(rows: readonly ResultRow[]): string {
  return table(
    ["", "row", "figure", "limit", "behind it"],
    rows.map(({ ok, name, ratio, unit, bound, target, detail }) => [
      ok ? "ok" : "**MISS**",
      name,
      `${ratio === null ? "none" : precise(ratio)} ${unit}`,
      `${bound} ${precise(target)}`,
      detail,
    ]),
  );
}

/** As exact as the rows are: a limit of 0.95 is not told from 0.9 with one digit. */
function precise(value: number): string {
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 4 });
}

function unmeasured({ leftOut, failed }: Result): string {
  const list = (title: string, entries: Result["failed"]) =>
    entries.length === 0 ? [] : [`${title}\n\n${entries.map(({ name, reason }) => `- ${name}: ${reason}`).join("\n")}`];
  return [...list("Left out:", leftOut), ...list("Failed, and so without a figure:", failed)].join("\n\n");
}

const CLOSING = `The raw result is [result.json](${FOLDER}/result.json). \`npm run bench\` measures it again on your machine; \`npm run bench -- --only NAME\` the rows
whose name contains NAME.`;

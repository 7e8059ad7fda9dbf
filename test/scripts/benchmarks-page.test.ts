/** The page of the benchmarks: it shows the numbers it is given, all of them, and says so where there are none. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { costChart } from "../../scripts/benchmarks/cost-chart.ts";
import { benchmarksPage } from "../../scripts/benchmarks/page.ts";
import { type CostPoint, type Result, readResult, throughputOf } from "../../scripts/benchmarks/result.ts";
import { escapeXml, ticks } from "../../scripts/benchmarks/svg.ts";
import { throughputChart } from "../../scripts/benchmarks/throughput-chart.ts";

const ROW = { name: "a / b", ratio: 1.25, target: 1.1, bound: "at least", unit: "times", ok: true, detail: "5 | 4" };
const RESULT: Result = {
  machine: { cpu: "One & <Only>", cores: 2, date: "2026-11-22", loadBefore: 0.1 },
  only: [],
  rows: [ROW],
  leftOut: [],
  failed: [],
};
const SIDES = [
  { chart: "throughput", side: "pg-boss", perSecond: 2_500 },
  { chart: "throughput", side: "accept", perSecond: 30_000 },
  { chart: "throughput", side: "bullmq-everysec", perSecond: 24_000 },
] as const;

function page(result: Partial<Result>): string {
  return benchmarksPage({ ...RESULT, ...result }).get("benchmarks.md") ?? "";
}

function textsOf(svg: string | null): { content: string; x: number; y: number; size: number }[] {
  const found = (svg ?? "").matchAll(/<text x="([\d.]+)" y="([\d.]+)" font-size="(\d+)"[^>]*>([^<]*)</g);
  return [...found].map(([, x, y, size, content = ""]) => ({
    content,
    x: Number(x),
    y: Number(y),
    size: Number(size),
  }));
}

describe("readResult()", () => {
  it("takes the last line of what the run printed", () => {
    expect(readResult(`ok   a / b\n1 rows\n${JSON.stringify(RESULT)}\n`)).toEqual(RESULT);
  });

  it("refuses what a run without --json printed", () => {
    expect(() => readResult("ok   a / b\n1 rows, 0 missed\n")).toThrow("no result");
  });

  it("refuses a side that it does not know", () => {
    const points = [{ chart: "throughput", side: "nobody", perSecond: 1 }];
    expect(() => readResult(JSON.stringify({ ...RESULT, rows: [{ ...ROW, points }] }))).toThrow();
  });
});

describe("throughputOf()", () => {
  it("has each side once, however many rows show it", () => {
    const rows = [
      { ...ROW, points: [SIDES[0], SIDES[1]] },
      { ...ROW, points: [{ ...SIDES[1] }, SIDES[2]] },
    ];
    expect(throughputOf({ ...RESULT, rows }).map(({ side }) => side)).toEqual(["pg-boss", "accept", "bullmq-everysec"]);
  });
});

describe("ticks()", () => {
  it.each([
    [30_000, [0, 10_000, 20_000, 30_000]],
    [31_000, [0, 10_000, 20_000, 30_000, 40_000]],
    [0.7, [0, 0.2, 0.4, 0.6, 0.8]],
  ])("are round, from 0 to not less than %d", (greatest, expected) => {
    expect(ticks(greatest, 5)).toEqual(expected);
  });
});

describe("escapeXml()", () => {
  it("leaves no character that ends a text or an attribute", () => {
    expect(escapeXml('a < "b" & c>')).toBe("a &lt; &quot;b&quot; &amp; c&gt;");
  });
});

describe("throughputChart()", () => {
  const svg = throughputChart(SIDES);
  const texts = textsOf(svg);

  it("draws each bar as long as its number says", () => {
    const widths = [...(svg ?? "").matchAll(/<rect x="250" y="[\d.]+" width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toEqual([540, 45, 432]);
  });

  it("puts each side under what its events outlive, the fastest first", () => {
    const y = (content: string) => texts.find((text) => text.content.startsWith(content))?.y ?? Number.NaN;
    const order = [
      "Answered once it outlives a power cut",
      "oncehook on SQLite",
      "pg-boss",
      "Answered once it outlives the process",
      "BullMQ",
    ];
    expect(order.map(y)).toEqual(order.map(y).toSorted((a, b) => a - b));
  });

  it("labels bars and axis with numbers and their unit, none below 12 px", () => {
    expect(texts.map(({ content }) => content)).toEqual(
      expect.arrayContaining(["30,000", "2,500", "requests per second"]),
    );
    expect(Math.min(...texts.map(({ size }) => size))).toBeGreaterThanOrEqual(12);
  });

  it("is not drawn with one side", () => {
    expect(throughputChart(SIDES.slice(0, 1))).toBeNull();
  });
});

describe("costChart()", () => {
  const point = (series: string, stored: number, microseconds: number): CostPoint => ({
    ...({ chart: "cost", series } as const),
    stored,
    microseconds,
  });
  const flat = ["claim", "accept"].flatMap((name) => [point(name, 0, 10), point(name, 1_000_000, 10)]);

  it("leads each line through its numbers, in ascending order of what is stored", () => {
    const svg = costChart([point("claim", 1_000_000, 20), point("claim", 0, 0), point("claim", 100_000, 10)]);
    expect(/<path d="([^"]+)"/.exec(svg ?? "")?.[1]).toBe("M110 340L370 203L630 66");
  });

  it("keeps the labels of lines that end together apart", () => {
    const [first, second] = textsOf(costChart(flat)).filter(({ content }) => ["claim", "accept"].includes(content));
    expect(Math.abs((first?.y ?? 0) - (second?.y ?? 0))).toBeGreaterThanOrEqual(18);
  });

  it("is not drawn with one number of stored events", () => {
    expect(costChart([point("claim", 0, 1)])).toBeNull();
  });
});

describe("benchmarksPage()", () => {
  it("has a line for each row, with its limit and whether it holds", () => {
    const text = page({ rows: [ROW, { ...ROW, name: "c", ratio: 0.5, ok: false }] });
    expect(text).toContain("| ok | a / b | 1.25 times | at least 1.1 | 5 \\| 4 |");
    expect(text).toContain("| **MISS** | c | 0.5 times | at least 1.1 |");
    expect(text).toContain("**2 rows, of which 1 miss");
  });

  it("names the rows without a figure, and why", () => {
    const text = page({ leftOut: [{ name: "x", reason: "no server" }], failed: [{ name: "y", reason: "it threw" }] });
    expect(text).toContain("Left out:\n\n- x: no server");
    expect(text).toContain("- y: it threw");
  });

  it("says that only some rows were run, and which", () => {
    expect(page({ only: ["claim", "accept"] })).toContain(
      'Only the rows whose name contains "claim" or "accept" were run.',
    );
    expect(page({})).not.toContain("Only the rows");
  });

  it("says what a picture shows, in words with its numbers", () => {
    const files = benchmarksPage({ ...RESULT, rows: [{ ...ROW, points: [...SIDES] }] });
    expect(files.get("benchmarks.md")).toContain("oncehook on SQLite 30,000, pg-boss 2,500.");
    expect(files.get("benchmarks/throughput.svg")).toContain("<svg");
  });

  it("says so where a picture has no numbers", () => {
    const files = benchmarksPage(RESULT);
    expect(files.get("benchmarks/cost.svg")).toBeNull();
    expect(files.get("benchmarks.md")).not.toContain("![");
    expect(files.get("benchmarks.md")).toContain("were not measured in this run");
  });

  it("is what docs/benchmarks.md has, made of the result beside it", () => {
    const result = readResult(readFileSync("docs/benchmarks/result.json", "utf8"));
    for (const [name, content] of benchmarksPage(result)) {
      expect(existsSync(`docs/${name}`) ? readFileSync(`docs/${name}`, "utf8") : null).toBe(content);
    }
  });
});

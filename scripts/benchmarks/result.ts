/** What `npm run bench -- --json` ends with, read again. */
import { z } from "zod";
import { SIDES, type Side } from "../../bench/sides.ts";

const sides = Object.keys(SIDES) as [Side, ...Side[]];
const pointSchema = z.discriminatedUnion("chart", [
  z.object({ chart: z.literal("throughput"), side: z.enum(sides), perSecond: z.number() }),
  z.object({ chart: z.literal("cost"), series: z.string(), stored: z.number(), microseconds: z.number() }),
]);
const unmeasured = z.array(z.object({ name: z.string(), reason: z.string() }));
const resultSchema = z.object({
  machine: z.record(z.string(), z.union([z.string(), z.number()])),
  /** What was asked for with `--only`; empty when everything was. */
  only: z.array(z.string()),
  rows: z.array(
    z.object({
      name: z.string(),
      /** JSON has no NaN, which is what a figure without a measurement is. */
      ratio: z.number().nullable(),
      target: z.number(),
      bound: z.string(),
      unit: z.string(),
      ok: z.boolean(),
      detail: z.string(),
      points: z.array(pointSchema).optional(),
    }),
  ),
  leftOut: unmeasured,
  failed: unmeasured,
});

export type Result = z.infer<typeof resultSchema>;
export type ResultRow = Result["rows"][number];
export type ThroughputPoint = Extract<z.infer<typeof pointSchema>, { chart: "throughput" }>;
export type CostPoint = Extract<z.infer<typeof pointSchema>, { chart: "cost" }>;

/** @param output All that the run printed, or its last line. */
export function readResult(output: string): Result {
  const last = output.trimEnd().split("\n").at(-1) ?? "";
  if (!last.startsWith("{")) throw new Error("The last line is no result: was the run ended, or made without --json?");
  return resultSchema.parse(JSON.parse(last));
}

/** A point for each side: those that several rows show are of the same rounds. */
export function throughputOf({ rows }: Result): readonly ThroughputPoint[] {
  const points = rows.flatMap(({ points = [] }) => points).filter((point) => point.chart === "throughput");
  return [...new Map(points.map((point) => [point.side, point])).values()];
}

export function costsOf({ rows }: Result): readonly CostPoint[] {
  return rows.flatMap(({ points = [] }) => points).filter((point) => point.chart === "cost");
}

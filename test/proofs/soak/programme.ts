/** `npm run prove -- soak`: a receiver on SQLite under steady load for a minute (`--full` 30 minutes), which must not drift. */
import type { Programme, Proof, Terms } from "../programme.ts";
import { driftOf, isDrift, type Tolerance } from "./drift.ts";
import { type Measure, type Outcome, soak } from "./soak.ts";

const SHORT = { days: 10, load: { dayMs: 3_800 } };
const FULL = { days: 60, load: { dayMs: 29_000 } };
const LEAKING = { days: 8, load: 1_500 };
/** Of the deliveries that were to be sent; where even that was not reached, the load was not what was said. */
const LEAST_REACHED = 0.5;

/** What may grow by how much over the steady part, and in what unit; timers and other programs make the last two restless. */
const TOLERANCES: Readonly<Record<Measure, Tolerance & { readonly unit: string }>> = {
  heap: { share: 0.1, least: 5, unit: "MiB" },
  rss: { share: 0.15, least: 24, unit: "MiB" },
  descriptors: { share: 0, least: 3, unit: "" },
  log: { share: 0.2, least: 8, unit: "MiB" },
  file: { share: 0.15, least: 4, unit: "MiB" },
  rows: { share: 0.2, least: 500, unit: "" },
  delay: { share: 1, least: 100, unit: "ms" },
  backlog: { share: 1, least: 300, unit: "" },
};

export const steadyLoad: Programme = {
  name: "soak",
  what: "under steady load, with poison and forgeries, nothing drifts: heap, descriptors, log, file, rows, delay, backlog",
  needsQuiet: true,
  async run({ full, say }: Terms): Promise<Proof> {
    const outcome = await soak({ ...(full ? FULL : SHORT), leaks: false });
    for (const line of linesOf(outcome)) say(line);
    const problems = [
      ...outcome.problems,
      ...idleness(outcome),
      ...drifts(outcome).map((measure) => `${measure} drifts`),
    ];
    const leaking = await soak({ ...LEAKING, leaks: true });
    const seen = drifts(leaking);
    say(`a server that keeps each body: ${seen.map((measure) => `${measure} drifts`).join(", ") || "no drift"}`);
    problems.push(...leaking.problems.map((problem) => `leaking: ${problem}`));
    if (!seen.includes("heap")) problems.push("a server that keeps each body was not seen to grow");
    return { count: outcome.acknowledged, unit: "acknowledged events", problems };
  },
};

function drifts({ series }: Outcome): readonly Measure[] {
  return [...series].flatMap(([measure, points]) => (isDrift(driftOf(points, TOLERANCES[measure])) ? [measure] : []));
}

/** What was not there cannot have shown anything. */
function idleness({ refused, dead, replayed, pruned, perSecond, reached }: Outcome): string[] {
  const shown = {
    "no forged delivery was refused": refused > 0,
    "no event ended as a dead letter": dead > 0,
    "nothing was replayed": replayed > 0,
    "nothing was pruned": pruned > 0,
    [`only ${reached.toFixed(0)} deliveries a second were sent, of ${perSecond}`]: reached >= LEAST_REACHED * perSecond,
  };
  return Object.entries(shown).flatMap(([problem, holds]) => (holds ? [] : [problem]));
}

function linesOf(outcome: Outcome): string[] {
  const { capacity, perSecond, reached, acknowledged, refused, dead, replayed, pruned, series } = outcome;
  const load = `${capacity.toFixed(0)} a second at most, ${perSecond} wished, ${reached.toFixed(0)} reached`;
  const counts = `${acknowledged} acknowledged, ${refused} forged refused, ${dead} dead, ${replayed} replayed, ${pruned} pruned`;
  const measures = [...series].map(([measure, points]) => {
    const { growth, allowed, median } = driftOf(points, TOLERANCES[measure]);
    const unit = TOLERANCES[measure].unit;
    const sign = growth < 0 ? "" : "+";
    return `  ${measure.padEnd(12)} ${median.toFixed(1)} ${unit} (${sign}${growth.toFixed(1)} over the steady part, ${allowed.toFixed(1)} allowed)`;
  });
  return [load, counts, ...measures];
}

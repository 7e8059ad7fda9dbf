/** `npm run prove -- machines`: two processes on different ports share one Postgres inbox, through outages of everything and a rolling upgrade. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countsOf } from "../outages/verdict.ts";
import { startPostgres } from "../../postgres/server.ts";
import { breachCounts, breachLines } from "../history.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { type RollingOutcome, type RollingPlace, rollingOnPostgres, rollingOnSqlite, rollOver } from "./rolling.ts";
import { crossMachines, type Outage, type Outcome } from "./run.ts";
import type { Flaw } from "./terms.ts";
import { findings } from "./verdict.ts";

const OUTAGES: readonly Outage[] = [
  { what: "crash", machine: 0 },
  { what: "pause", machine: 1 },
  { what: "numbers change places" },
  { what: "server" },
  { what: "crash", machine: 1 },
];
/** The service's retries end after eight seconds, in the long form after sixteen, so that few outages outlast them, on a busy machine too. */
const SHORT = { messages: 300, pace: 60, rate: 600, calmMs: 250 };
const FULL = { messages: 10_000, pace: 70, rate: 300, calmMs: 2_000 };
/** Events that are acknowledged between two replacements of a process. */
const BETWEEN = { short: 60, full: 2_000 };
/** A run in which the verdict must find something. */
const CARELESS = { messages: 60, pace: 40, rate: 6_000, calmMs: 250 };
const CARELESS_OUTAGES = OUTAGES.slice(0, 2);
/** Machines that write outside of `ctx.commit`, and a front that acknowledges what no machine has stored. */
const CARELESS_FLAWS: readonly Flaw[] = ["effect_outside_commit", "acknowledged_unstored"];

export const acrossMachines: Programme = {
  name: "machines",
  what: "two processes on different ports share a Postgres inbox: each event once and in order, through outages of everything and a rolling upgrade to a later schema",
  async run({ full, say }): Promise<Proof> {
    const server = await startPostgres();
    const saying = (name: string) => (line: string) => say(`${name.padEnd(8)} ${line}`);
    try {
      const outcome = await crossMachines({
        ...{ server, ...(full ? FULL : SHORT), outages: OUTAGES, faults: "many", flaws: [] },
        say: saying("machines"),
      });
      saying("machines")(lineOf(outcome));
      const careless = await crossMachines({
        ...{ server, ...CARELESS, outages: CARELESS_OUTAGES, faults: "none", flaws: CARELESS_FLAWS },
        say: saying("careless"),
      });
      saying("careless")(lineOf(careless));
      const upgrade = await upgraded(server.url, full ? BETWEEN.full : BETWEEN.short, say);
      const problems = [
        ...[...findings(outcome), ...outcome.strangeEnds, ...shortcomings(outcome)],
        ...[...careless.strangeEnds, ...unseen(careless)].map((problem) => `careless: ${problem}`),
        ...upgrade.problems,
      ];
      return { count: outcome.events + upgrade.count, unit: "events", problems };
    } finally {
      await server.stop();
    }
  },
};

/** Processes of this version are replaced by those of a later one under load, on an inbox of each kind. */
async function upgraded(url: string, between: number, say: Terms["say"]): Promise<Pick<Proof, "count" | "problems">> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-machines-"));
  try {
    const tried = async (name: string, place: RollingPlace) => {
      const outcome = await rollOver(place, between);
      say(`upgrade  on ${name} ${JSON.stringify({ ...outcome, breaches: breachCounts(outcome.breaches) })}`);
      return { count: outcome.acknowledged, problems: flawsOf(outcome).map((flaw) => `upgrade on ${name}: ${flaw}`) };
    };
    const [onPostgres, onSqlite] = [
      await tried("Postgres", rollingOnPostgres(url)),
      await tried("SQLite", rollingOnSqlite(folder)),
    ];
    const problems = [...onPostgres.problems, ...onSqlite.problems];
    return { count: onPostgres.count + onSqlite.count, problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function flawsOf({ breaches, refused, handledBy, crossed }: RollingOutcome): string[] {
  const { this: byThis, later: byLater } = handledBy;
  const shown = {
    [`only ${byThis} events were handled by this version and ${byLater} by the later one`]:
      Math.min(byThis, byLater) > 50,
    [`only ${crossed} messages were handled by both`]: crossed > 10,
  };
  return [
    ...breachLines(breaches),
    ...Object.entries(refused).map(([status, count]) => `${count} deliveries were answered with ${status}`),
    ...Object.entries(shown).flatMap(([shortcoming, holds]) => (holds ? [] : [`shows too little: ${shortcoming}`])),
  ];
}

/** What must have happened for the outcome to say something. */
function shortcomings(outcome: Outcome): string[] {
  const { events, failedAttempts, neverArrived, byMachine, crossed, atBoth, takenOver, outages } = outcome;
  const handled = byMachine.reduce((sum, count) => sum + count, 0);
  const shown = {
    [`only ${handled} of ${events} events were handled, ${neverArrived} never arrived`]: handled > 0.9 * events,
    [`only ${failedAttempts} attempts failed`]: failedAttempts > events / 10,
    [`the machines handled ${byMachine.join(" and ")} events`]: Math.min(...byMachine) > 0.2 * handled,
    [`only ${crossed} messages were handled by both machines`]: crossed > 0,
    [`only ${atBoth} events reached both machines`]: atBoth > 0,
    [`only ${takenOver} events were taken over in ${outages} outages`]: takenOver > 0,
  };
  return Object.entries(shown)
    .filter(([, holds]) => !holds)
    .map(([shortcoming]) => shortcoming);
}

function unseen({ lost, twice }: Outcome): string[] {
  const problems: string[] = [];
  if (twice.length === 0) problems.push("effects outside of ctx.commit were not seen twice");
  if (lost.length === 0) problems.push("what was acknowledged and not stored was not seen missing");
  return problems;
}

function lineOf(outcome: Outcome): string {
  const { events, attempts, failedAttempts, neverArrived, late, skippedGaps, outages } = outcome;
  const { byMachine, crossed, atBoth, takenOver, unsettled, wronglyLate, halfDone } = outcome;
  const traffic = `${events} events, ${attempts} attempts (${failedAttempts} failed), ${neverArrived} never arrived, ${outages} outages`;
  const shares = `handled by machine ${byMachine.join(" and ")}, ${crossed} messages by both, ${atBoth} events at both, ${takenOver} taken over`;
  const order = `${skippedGaps} gaps skipped, ${late} late`;
  const ends = `${unsettled.length} unsettled, ${wronglyLate.length} wrongly late, ${halfDone.length} half done`;
  return `${traffic}; ${shares}; ${order}: ${countsOf(outcome)}, ${ends}`;
}

/** `npm run prove -- fuzz`: 1,000,000 forged, generated and hostile requests (`--full` 80,000,000): none is taken, none does harm. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { type Answer, apart } from "../apart.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { FLAWS, type Flaw } from "./flaws.ts";
import { fuzzGuided, type GuidedOutcome } from "./guided.ts";
import { JSON_KINDS } from "./json-case.ts";
import { MUTATED_KINDS } from "./mutated.ts";
import { refuseNoSecrets } from "./no-secrets.ts";
import { refuseForgedPresets } from "./presets.ts";
import type { Counts, Outcome, Share } from "./share.ts";

const SHORT: Counts = { mutated: 790_000, generated: 120_000, json: 70_000, http: 20_000 };
const FULL: Counts = { mutated: 50_000_000, generated: 10_000_000, json: 1_000_000, http: 200_000 };
const SMALL: Counts = { mutated: 16_000, generated: 400, json: 1_600, http: 800 };
const CONTROL: Counts = { mutated: 10_000, generated: 100, json: 100, http: 0 };
const FULL_GUIDED = 20_000_000;
const SEED = Number(process.env.SEED ?? 20_261_120);
/** Of the full form, for a look at it: `SCALE=0.01`. */
const SCALE = Number(process.env.SCALE ?? 1);
/** Beside this file, where it was compiled to. */
const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));
const PROCESSES = Math.max(2, availableParallelism());

export const fuzz: Programme = {
  name: "fuzz",
  what: "0 of 1,000,000 forged, generated and hostile requests accepted, 0 throws, 0 over 50 ms, a flat heap; each one as it was signed is taken",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    say(`SEED=${SEED}`);
    const counts = small ? SMALL : SHORT;
    const answers = await Promise.all(
      sharesOf(full ? FULL : counts, full ? SCALE : 1).map((share) => apart<Outcome>(CHILD, share)),
    );
    const outcomes = answers.flatMap((answer) => ("error" in answer ? [] : [answer.outcome]));
    for (const outcome of outcomes) say(lineOf(outcome));
    const guided = full ? await guidedPart(say) : { cases: 0, problems: [] };
    const none = refuseNoSecrets();
    const presets = await refuseForgedPresets();
    say(`other providers: ${presets.cases} deliveries, ${presets.problems.length} problems`);
    const others = [...none.problems, ...presets.problems, ...guided.problems];
    const problems = [...answers.flatMap(problemsOf), ...shortcomings(outcomes), ...others];
    const count = outcomes.reduce((sum, { cases }) => sum + cases, guided.cases + none.cases + presets.cases);
    const uncaught = small ? [] : await uncaughtFlaws(say);
    return { count, unit: "cases", problems: [...problems, ...uncaught] };
  },
};

/** Left out, which is said, where jsfuzz can not be had. */
async function guidedPart(say: Terms["say"]): Promise<Pick<GuidedOutcome, "cases" | "problems">> {
  const outcome = await fuzzGuided(FULL_GUIDED * SCALE);
  if (typeof outcome === "string") {
    say(`guided by coverage: left out, ${outcome}`);
    return { cases: 0, problems: [] };
  }
  const { cases, slowestMs, growthMib } = outcome;
  say(`guided by coverage: ${cases} cases; slowest ${slowestMs.toFixed(1)} ms, heap +${growthMib.toFixed(1)} MiB`);
  return outcome;
}

/** Equal ones, with seeds far apart. */
function sharesOf(counts: Counts, scale: number): Share[] {
  const part = (count: number) => Math.ceil((count * scale) / PROCESSES);
  const { mutated, generated, json, http } = counts;
  return Array.from({ length: PROCESSES }, (_, process) => ({
    seed: SEED + process * 0x100000,
    counts: { mutated: part(mutated), generated: part(generated), json: part(json), http: part(http) },
  }));
}

function problemsOf(answer: Answer<Outcome>): readonly string[] {
  return "error" in answer ? [answer.error] : answer.outcome.problems;
}

/** What must have come, for the rest to say something. */
function shortcomings(outcomes: readonly Outcome[]): string[] {
  const came = new Set(outcomes.flatMap(({ kinds }) => Object.keys(kinds)));
  const missing = [...MUTATED_KINDS, ...Object.keys(JSON_KINDS)].filter((kind) => !came.has(kind));
  const answered = new Set(outcomes.flatMap(({ statuses }) => Object.keys(statuses)));
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + of(outcome), 0);
  return [
    ...missing.map((kind) => `no case was "${kind}"`),
    ...["200", "401"].filter((status) => !answered.has(status)).map((status) => `nothing was answered with ${status}`),
    ...(sum(({ controls }) => controls) === 0 ? ["no request came as it was signed"] : []),
    ...(sum(({ events }) => events) === 0 ? ["no JSON was an event"] : []),
  ];
}

/** The controls: a receiver with each flaw, of which the same run must say what is wrong with it. */
async function uncaughtFlaws(say: Terms["say"]): Promise<readonly string[]> {
  const waiting = Object.keys(FLAWS) as Flaw[];
  const uncaught: string[] = [];
  const work = async () => {
    for (let flaw = waiting.shift(); flaw !== undefined; flaw = waiting.shift()) {
      const problems = problemsOf(await apart<Outcome>(CHILD, { seed: SEED, counts: CONTROL, flaw }));
      const { expect } = FLAWS[flaw];
      const seen = problems.find((problem) => problem.includes(expect));
      say(`a receiver that ${flaw}: ${seen?.split("\n")[0] ?? "nothing found"}`);
      if (seen === undefined)
        uncaught.push(`a receiver that ${flaw} was not found out: ${problems[0] ?? "no problem"}`);
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, work));
  return uncaught;
}

function lineOf({ cases, controls, takenAsSigned, events, statuses, slowestMs, growthMib }: Outcome): string {
  const answered = Object.entries(statuses).map(([status, times]) => `${status} ${times} times`);
  return [
    `${cases} cases, ${controls} as they were signed, ${takenAsSigned} that say the same, ${events} events`,
    `answered ${answered.join(", ")}`,
    `slowest ${slowestMs.toFixed(1)} ms, heap ${growthMib >= 0 ? "+" : ""}${growthMib.toFixed(1)} MiB`,
  ].join("; ");
}

/** `npm run prove -- fuzz`: 1,000,000 forged, generated and hostile requests (`--full` 80,000,000): none is taken, none does harm. */
import { availableParallelism } from "node:os";
import { FLAWS, type Flaw } from "./fuzz/flaws.ts";
import { fuzzGuided, type GuidedOutcome } from "./fuzz/guided.ts";
import { JSON_KINDS } from "./fuzz/json-case.ts";
import { MUTATED_KINDS } from "./fuzz/mutated.ts";
import { refuseNoSecrets } from "./fuzz/no-secrets.ts";
import { refuseForgedPresets } from "./fuzz/presets.ts";
import { type Counts, fuzzShare, type Outcome, type Share } from "./fuzz/share.ts";
import { type Answer, apart } from "./process.ts";
import { inTurn, type Programme, type Proof, seedOr, sizeOf, type Terms } from "./programme.ts";

const COUNTS = {
  small: { mutated: 16_000, generated: 400, json: 1_600, http: 800 },
  short: { mutated: 790_000, generated: 120_000, json: 70_000, http: 20_000 },
  full: { mutated: 50_000_000, generated: 10_000_000, json: 1_000_000, http: 200_000 },
};
const CONTROL: Counts = { mutated: 10_000, generated: 100, json: 100, http: 0 };
const FULL_GUIDED = 20_000_000;
const SEED = seedOr(20_261_120);
/** Of the full form, for a look at it: `SCALE=0.01`. */
const SCALE = Number(process.env.SCALE ?? 1);
const PROCESSES = Math.max(2, availableParallelism());

export const fuzz: Programme = {
  name: "fuzz",
  what: "0 of 1,000,000 forged, generated and hostile requests accepted, 0 throws, 0 over 50 ms, a flat heap; each one as it was signed is taken",
  hasSmallForm: true,
  async run(terms: Terms): Promise<Proof> {
    const { full, small, say } = terms;
    say(`SEED=${SEED}`);
    const shares = sharesOf(sizeOf(terms, COUNTS), full ? SCALE : 1);
    const answers = await Promise.all(shares.map(fuzzed));
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

const fuzzed = (share: Share) => apart("fuzz/share.js", fuzzShare, share);

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
  const found = await inTurn(Object.keys(FLAWS) as Flaw[], PROCESSES, async (flaw) => {
    const problems = problemsOf(await fuzzed({ seed: SEED, counts: CONTROL, flaw }));
    const { expect } = FLAWS[flaw];
    const seen = problems.find((problem) => problem.includes(expect));
    say(`a receiver that ${flaw}: ${seen?.split("\n")[0] ?? "nothing found"}`);
    return seen === undefined ? [`a receiver that ${flaw} was not found out: ${problems[0] ?? "no problem"}`] : [];
  });
  return found.flat();
}

function lineOf({ cases, controls, takenAsSigned, events, statuses, slowestMs, growthMib }: Outcome): string {
  const answered = Object.entries(statuses).map(([status, times]) => `${status} ${times} times`);
  return [
    `${cases} cases, ${controls} as they were signed, ${takenAsSigned} that say the same, ${events} events`,
    `answered ${answered.join(", ")}`,
    `slowest ${slowestMs.toFixed(1)} ms, heap ${growthMib >= 0 ? "+" : ""}${growthMib.toFixed(1)} MiB`,
  ].join("; ");
}

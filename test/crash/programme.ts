/** `npm run prove -- crash`: a receiver on SQLite is killed under 16-way load, 50 times (`--full` 2,000), each time in the midst of things. */
import { breachCounts, breachLines } from "../prove/history.ts";
import type { Programme, Proof } from "../prove/programme.ts";
import { mostRecoveryMs } from "./process.ts";
import { type Outcome, torture } from "./torture.ts";

const SHORT = { rounds: 1, kills: 50, acknowledged: 1_000 };
/** An inbox of its own for each round, so that looking at it after each kill stays quick. */
const FULL = { rounds: 20, kills: 100, acknowledged: 100_000 };
const CARELESS_KILLS = 4;
/** Of the processor, with loading, whatever else runs. */
const MOST_PROCESSOR_MS = 1_000;

export const crash: Programme = {
  name: "crash",
  what: "nothing acknowledged is lost, twice in effect or out of order when a receiver on SQLite is killed under load",
  async run({ full, say }): Promise<Proof> {
    const { rounds, kills, acknowledged } = full ? FULL : SHORT;
    const first = Number(process.env.SEED ?? 20_251_120);
    const problems: string[] = [];
    let count = 0;
    for (let round = 0; round < rounds; round++) {
      const seed = first + round;
      const outcome = await torture({ seed, kills, flaws: [] });
      count += outcome.acknowledged;
      say(`SEED=${seed} ${lineOf(outcome)}`);
      if (mostRecoveryMs() > 1_000)
        say(`the machine is busy: ${mostRecoveryMs()} ms are granted for a recovery, not 1,000`);
      problems.push(...problemsOf(outcome).map((problem) => `SEED=${seed} ${problem}`));
    }
    if (count < acknowledged) problems.push(`only ${count} events were acknowledged, of ${acknowledged}`);
    const careless = await torture({
      ...{ seed: first, kills: CARELESS_KILLS },
      flaws: ["effect_outside_commit", "answer_before_commit"],
    });
    say(`careless ${lineOf(careless)}`);
    problems.push(...unseen(careless));
    return { count, unit: `acknowledged events over ${rounds * kills} kills`, problems };
  },
};

function problemsOf(outcome: Outcome): string[] {
  const { kills, unanswered, handedOutAgain, refused, slowestRecoveryMs, mostProcessorMs } = outcome;
  const shown = {
    [`only ${unanswered} deliveries were cut off`]: unanswered > kills,
    [`only ${handedOutAgain} events were handed out again`]: handedOutAgain > kills,
    "no forged delivery was refused": refused > 0,
    [`a process was ready after ${slowestRecoveryMs.toFixed(0)} ms`]: slowestRecoveryMs <= mostRecoveryMs(),
    [`a start took ${mostProcessorMs.toFixed(0)} ms of the processor`]: mostProcessorMs <= MOST_PROCESSOR_MS,
  };
  const shortcomings = Object.entries(shown).filter(([, holds]) => !holds);
  return [...breachLines(outcome.breaches), ...outcome.problems, ...shortcomings.map(([shortcoming]) => shortcoming)];
}

/** The control: a handler that writes by itself, and a front that answers before it stores. */
function unseen({ breaches }: Outcome): string[] {
  const kinds = new Set(breaches.map(({ kind }) => kind));
  const problems: string[] = [];
  if (!kinds.has("double")) problems.push("careless: effects outside of ctx.commit were not seen twice");
  if (!kinds.has("lost")) problems.push("careless: what was acknowledged before it was stored was not seen missing");
  return problems;
}

function lineOf(outcome: Outcome): string {
  const { kills, cutShort, acknowledged, unanswered, handedOutAgain, refused, breaches } = outcome;
  const { slowestRecoveryMs, mostProcessorMs } = outcome;
  const traffic = `${kills} kills (${cutShort} in a recovery), ${acknowledged} acknowledged, ${unanswered} cut off`;
  const again = `${handedOutAgain} handed out again, ${refused} forged refused`;
  const ready = `slowest recovery ${slowestRecoveryMs.toFixed(0)} ms, start ${mostProcessorMs.toFixed(0)} ms of the processor`;
  return `${traffic}, ${again}; ${ready}: ${breachCounts(breaches)}`;
}

/**
 * `npm run prove -- crash`: a receiver on SQLite is killed under 16-way load, 50 times (`--full` 2,000), each time in the midst of
 * things. It must be ready again within 1 s, but for the slowest of each 50 starts, which one sync of a shared disk can hold up.
 * What an opening takes of the processor is bounded in all of them.
 */
import { lateLine } from "../bills.ts";
import { breachCounts, breachLines } from "../history.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { mostRecoveryMs, recoveryLine, tooSlow } from "./recovery.ts";
import { type Outcome, torture } from "./torture.ts";

const SHORT = { rounds: 1, kills: 50, lanes: 50, acknowledged: 1_000 };
/** An inbox of its own for each round, so that looking at it after each kill stays quick. */
const FULL = { rounds: 20, kills: 100, lanes: 1_000, acknowledged: 100_000 };
const SMALL = { rounds: 1, kills: 10, lanes: 50, acknowledged: 100 };
const CARELESS_KILLS = 4;

export const crash: Programme = {
  name: "crash",
  what: "nothing acknowledged is lost, twice in effect or out of order when a receiver on SQLite is killed under load; it is ready within 1 s, but for one start in 50",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const shorter = small ? SMALL : SHORT;
    const { rounds, kills, lanes, acknowledged } = full ? FULL : shorter;
    const first = Number(process.env.SEED ?? 20_251_120);
    const problems: string[] = [];
    let count = 0;
    for (let round = 0; round < rounds; round++) {
      const seed = first + round;
      const outcome = await torture({ seed, kills, lanes, flaws: [] });
      count += outcome.acknowledged;
      say(`SEED=${seed} ${lineOf(outcome)}`);
      const mostMs = mostRecoveryMs();
      if (mostMs > 1_000) say(`the machine is busy: ${mostMs} ms are granted for a recovery, not 1,000`);
      const found = [...problemsOf(outcome), ...tooSlow(outcome.recovery, mostMs)];
      problems.push(...found.map((problem) => `SEED=${seed} ${problem}`));
    }
    if (count < acknowledged) problems.push(`only ${count} events were acknowledged, of ${acknowledged}`);
    if (!small) problems.push(...(await unseen(first, say)));
    return { count, unit: `acknowledged events over ${rounds * kills} kills`, problems };
  },
};

function problemsOf(outcome: Outcome): string[] {
  const { kills, unanswered, handedOutAgain, refused, late } = outcome;
  const shown = {
    [`only ${unanswered} deliveries were cut off`]: unanswered > kills,
    [`only ${handedOutAgain} events were handed out again`]: handedOutAgain > kills,
    "no forged delivery was refused": refused > 0,
    [`only ${late.billing[0]} events were late`]: late.billing[0] > kills / 2,
  };
  const shortcomings = Object.entries(shown).filter(([, holds]) => !holds);
  return [...breachLines(outcome.breaches), ...outcome.problems, ...shortcomings.map(([shortcoming]) => shortcoming)];
}

/** The control: a handler that writes by itself, and a front that answers before it stores. */
async function unseen(seed: number, say: Terms["say"]): Promise<string[]> {
  const flaws = ["effect_outside_commit", "answer_before_commit"] as const;
  const careless = await torture({ seed, kills: CARELESS_KILLS, lanes: SMALL.lanes, flaws });
  say(`careless ${lineOf(careless)}`);
  const kinds = new Set(careless.breaches.map(({ kind }) => kind));
  const problems: string[] = [];
  if (!kinds.has("double")) problems.push("careless: effects outside of ctx.commit were not seen twice");
  if (!kinds.has("lost")) problems.push("careless: what was acknowledged before it was stored was not seen missing");
  return problems;
}

function lineOf(outcome: Outcome): string {
  const { kills, cutShort, acknowledged, unanswered, handedOutAgain, refused, late, breaches, recovery } = outcome;
  const traffic = `${kills} kills (${cutShort} in a recovery), ${acknowledged} acknowledged, ${unanswered} cut off`;
  const again = `${handedOutAgain} passed to a handler again, ${refused} forged refused, ${lateLine(late)}`;
  return `${traffic}, ${again}; ${recoveryLine(recovery)}: ${breachCounts(breaches)}`;
}

/** `npm run prove -- clock`: wall clocks that jump under load, by an injected clock and, where it is installed, by libfaketime. */
import { breachCounts, breachLines } from "../history.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { fakeTimeLibrary, throughFakedPattern } from "./faked.ts";
import { type Outcome, throughPattern } from "./injected.ts";
import { type Pattern, patterns } from "./patterns.ts";

const SHORT = 5;
const FULL = 30;

export const clockJumps: Programme = {
  name: "clock",
  what: "whatever the wall clock does, no identity goes early, no replay is handled twice and nothing is stuck",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const seed = Number(process.env.SEED ?? 20_261_122);
    const all = patterns(full ? FULL : SHORT, seed);
    say(`SEED=${seed}`);
    const problems: string[] = [];
    let count = 0;
    const tell = (form: string, { name }: Pattern, outcome: Outcome) => {
      count += 1;
      say(`${form.padEnd(12)} ${name.padEnd(24)} ${lineOf(outcome)}`);
      const none = outcome.acknowledged === 0 ? ["nothing was acknowledged"] : [];
      const found = [...breachLines(outcome.breaches), ...outcome.problems.slice(0, 10), ...none];
      problems.push(...found.map((problem) => `${form}, ${name}: ${problem}`));
    };
    for (const pattern of all) tell("injected", pattern, await throughPattern(pattern, seed));
    if (small) return { count, unit: "patterns, by an injected clock", problems };
    const library = fakeTimeLibrary();
    if (library === null) say(`libfaketime  left out: ${all.length} patterns, since it is not installed`);
    else for (const pattern of all) tell("libfaketime", pattern, await throughFakedPattern(pattern, library));
    problems.push(...(await unseen(seed, say)));
    return { count, unit: `patterns${library === null ? " (without libfaketime)" : " in two forms"}`, problems };
  },
};

/** The control: pruning by the wall clock, ten years ahead. */
async function unseen(seed: number, say: Terms["say"]): Promise<string[]> {
  const pattern = patterns(SHORT, seed).find(({ name }) => name === "ten years ahead");
  if (pattern === undefined) return ["there is no pattern for the control"];
  const careless = await throughPattern(pattern, seed, true);
  say(`prunes by the wall clock: ${lineOf(careless)}`);
  const kinds = new Set(careless.breaches.map(({ kind }) => kind));
  return kinds.has("lost") ? [] : ["pruning by the wall clock was not seen"];
}

function lineOf({ breaches, problems, acknowledged, again }: Outcome): string {
  return `${acknowledged} acknowledged, ${again} came again, ${problems.length} strange: ${breachCounts(breaches)}`;
}

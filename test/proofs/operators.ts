/** `npm run prove -- operators`: operators act on an inbox while its receiver works, 60 times (`--full` 1,000); requests without the right are refused. */
import { availableParallelism } from "node:os";
import { type Result, runShare, type Share } from "./operators/share.ts";
import { apart } from "./process.ts";
import { inTurn, type Programme, type Proof, sizeOf, summed, type Terms } from "./programme.ts";

const WORLDS = { small: 8, short: 60, full: 1_000 };
/** Seeds in one go of a process. */
const STRETCH = 20;
const SHOWN = 20;

export const operators: Programme = {
  name: "operators",
  what: "replays, discards, erasures, copies and pruning lose and double nothing and leave other people's data alone, and nobody acts without the right",
  hasSmallForm: true,
  async run(terms: Terms): Promise<Proof> {
    const { say } = terms;
    const results = await runAll(sizeOf(terms, WORLDS));
    const counts = results.flatMap((result) => result.counts);
    const sums = summed(counts);
    const requests = results.reduce((sum, result) => sum + result.requests, 0);
    say(`${requests} requests to the inspector, with a flaw each`);
    say(
      Object.entries(sums)
        .flatMap(([what, times]) => `${times} ${what}`)
        .join(", "),
    );
    const none = Object.entries(sums).flatMap(([what, times]) => (times === 0 ? [`nothing was ${what}`] : []));
    const problems = [...results.flatMap((result) => result.problems), ...none];
    return { count: counts.length, unit: "inboxes", problems: problems.slice(0, SHOWN) };
  },
};

function runAll(worlds: number): Promise<readonly Result[]> {
  const cores = availableParallelism();
  const size = Math.min(STRETCH, Math.ceil(worlds / cores));
  const seeds = Array.from({ length: worlds }, (_, index) => index + 1);
  const shares = Array.from({ length: Math.ceil(worlds / size) }, (_, index): Share => {
    return { seeds: seeds.slice(index * size, (index + 1) * size), knocks: index === 0 };
  });
  return inTurn(shares, cores, async (share) => {
    const answer = await apart("operators/share.js", runShare, share);
    return "outcome" in answer ? answer.outcome : { problems: [answer.error], counts: [], requests: 0 };
  });
}

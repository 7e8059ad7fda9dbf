/** `npm run prove -- operators`: operators act on an inbox while its receiver works, 60 times (`--full` 1,000); requests without the right are refused. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { apart } from "../apart.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import type { Result, Share } from "./child.ts";
import type { Counts } from "./world.ts";

const SMALL = 8;
const SHORT = 60;
const FULL = 1_000;
/** Seeds in one go of a process. */
const STRETCH = 20;
const SHOWN = 20;
/** Beside this file, where it was compiled to. */
const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));

export const operators: Programme = {
  name: "operators",
  what: "replays, discards, erasures, copies and pruning lose and double nothing and leave other people's data alone, and nobody acts without the right",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const worlds = full ? FULL : small ? SMALL : SHORT;
    const results = await inTurn(worlds);
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

async function inTurn(worlds: number): Promise<readonly Result[]> {
  const cores = availableParallelism();
  const size = Math.min(STRETCH, Math.ceil(worlds / cores));
  const seeds = Array.from({ length: worlds }, (_, index) => index + 1);
  const waiting = Array.from({ length: Math.ceil(worlds / size) }, (_, index): Share => {
    return { seeds: seeds.slice(index * size, (index + 1) * size), knocks: index === 0 };
  });
  const results: Result[] = [];
  const work = async () => {
    for (let share = waiting.shift(); share !== undefined; share = waiting.shift()) {
      const answer = await apart<Result>(CHILD, share);
      results.push("outcome" in answer ? answer.outcome : { problems: [answer.error], counts: [], requests: 0 });
    }
  };
  await Promise.all(Array.from({ length: cores }, work));
  return results;
}

function summed(counts: readonly Counts[]): Counts {
  const sum: Counts = { delivered: 0, replayed: 0, discarded: 0, erased: 0, copied: 0, pruned: 0 };
  for (const each of counts) for (const what of Object.keys(sum) as (keyof Counts)[]) sum[what] += each[what];
  return sum;
}

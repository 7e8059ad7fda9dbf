/** `npm run prove -- sim`: small worlds in which everything goes wrong, each from a seed that repeats it; `SEED=n` tells that one's story. */
import { apart } from "./process.ts";
import { inTurn, type Programme, type Proof, seedOr, summed, type Terms } from "./programme.ts";
import { serverOrNot } from "./server.ts";
import { FLAWS, type Flaw } from "./sim/flaws.ts";
import { runManyLanes, runRates, runSeed } from "./sim/seeds.ts";
import { type Stretch, stretch } from "./sim/stretch.ts";

const SHORT = 20_000;
const SMALL = 400;
const FULL = 1_000_000;
/** Objects of Stripe in one world. */
const LANES = { few: 50, full: 1_000 };
const PROCESSES = 2;
/** Seeds in one go of a process; so much is repeated in vain when it ends otherwise. */
const STRETCH = 2_500;
/** A planted fault must be found in as many. */
const CONTROL_SEEDS = 2_000;

export const simulation: Programme = {
  name: "sim",
  what: "in simulated worlds nothing is lost, doubled, out of order or stuck, whatever is repeated, lost, killed, slow or wrong",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    if (small) {
      const proof = await simulate({ seeds: SMALL, postgresUrl: null, flaws: [], untilFound: true }, say);
      if (proof.problems.length > 0) return proof;
      return { ...proof, problems: [...(await manyLanes(LANES.few, null, say)), ...(await runRates(null))] };
    }
    const seed = seedOr(0);
    const server = await serverOrNot("worlds on Postgres", say);
    const postgresUrl = server?.url ?? null;
    try {
      if (seed > 0) return await tellOne(seed, postgresUrl, say);
      const problems = [
        ...(await manyLanes(full ? LANES.full : LANES.few, postgresUrl, say)),
        ...(await runRates(postgresUrl)),
      ];
      const seeds = full ? FULL : SHORT;
      const proof = await simulate({ seeds, postgresUrl, flaws: FLAWS, untilFound: false }, say);
      return { ...proof, problems: [...problems, ...proof.problems] };
    } finally {
      await server?.stop();
    }
  },
};

async function tellOne(seed: number, postgresUrl: string | null, say: Terms["say"]): Promise<Proof> {
  const { story, problems } = await runSeed({ seed, postgresUrl, flaw: null, tells: true });
  for (const line of story) say(line);
  return { count: 1, unit: `world of seed ${seed}`, problems };
}

async function manyLanes(lanes: number, postgresUrl: string | null, say: Terms["say"]): Promise<readonly string[]> {
  const reports = await runManyLanes(lanes, postgresUrl);
  const { accepted = 0, late = 0, died = 0 } = summed(reports.map(({ counts }) => counts));
  say(
    `${lanes} lanes by position in ${reports.length} worlds: ${accepted} accepted, ${late} late, ${died} processes died`,
  );
  const isEnough = accepted > lanes * reports.length && late > 0 && died > 0;
  return [
    ...reports.flatMap(({ problems }) => problems.map((problem) => `${lanes} lanes: ${problem}`)),
    ...(isEnough ? [] : [`${lanes} lanes: ${accepted} accepted, ${late} late and ${died} deaths show too little`]),
  ];
}

interface Simulation {
  readonly seeds: number;
  readonly postgresUrl: string | null;
  /** Each must be found. */
  readonly flaws: readonly Flaw[];
  /** A process ends with its first breach: that there is one is all that is asked. */
  readonly untilFound: boolean;
}

async function simulate({ seeds, postgresUrl, flaws, untilFound }: Simulation, say: Terms["say"]): Promise<Proof> {
  const terms = { postgresUrl, flaw: null, untilFound };
  const size = Math.min(STRETCH, Math.ceil(seeds / PROCESSES));
  const starts = Array.from({ length: Math.ceil(seeds / size) }, (_, index) => 1 + index * size);
  const controls = flaws.map((flaw): Stretch => {
    return { first: 1, seeds: CONTROL_SEEDS, postgresUrl, flaw, untilFound: true };
  });
  const stretches = starts.map((first): Stretch => ({ ...terms, first, seeds: Math.min(size, seeds + 1 - first) }));
  const reports = await inTurn([...controls, ...stretches], PROCESSES, async (part, index) => {
    const answer = await apart("sim/stretch.js", stretch, part);
    if (part.flaw === null && index % 40 === 0) say(`seeds up to ${part.first + part.seeds - 1} begun`);
    const failed = (error: string) => ({ seeds: 0, problems: [`seeds from ${part.first}: ${error}`], counts: {} });
    return "outcome" in answer ? answer.outcome : failed(answer.error);
  });
  const problems: string[] = [];
  for (const [index, flaw] of flaws.entries()) {
    const { problems: found = [], seeds: tried = 0 } = reports[index] ?? {};
    say(`a store that ${flaw}: ${found.length > 0 ? `found by seed ${tried}: ${found[0]}` : "not found"}`);
    if (found.length === 0) problems.push(`a store that ${flaw} was not found in ${tried} seeds`);
  }
  const worlds = reports.slice(flaws.length);
  problems.push(...worlds.flatMap((report) => report.problems));
  const counts = summed(worlds.map((world) => world.counts));
  say(
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", "),
  );
  problems.push(
    ...Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [`${name}: none, which shows nothing`] : [])),
  );
  if (problems.length > 0) say("one seed again, with its story: SEED=n npm run prove -- sim");
  return { count: worlds.reduce((sum, report) => sum + report.seeds, 0), unit: "seeds", problems };
}

/** A durable accept on Fastify beside what others make of the same route: job queues, an insert per request, a store in memory. */
import { median } from "../test/support/statistics.ts";
import { inDirectory, type Run, takeTurns } from "./http.ts";
import { checkStored, type KeptSide, type Places, servedOf, startPlaces } from "./kept-sides.ts";
import { type Group, grouped, type LeftOut, type Limit, type Row, ratioOf, row } from "./rows.ts";
import { SIDES } from "./sides.ts";

/** As many in one order as in the other. */
const ROUNDS = { count: 6, requests: 20_000 };

interface Comparison {
  readonly limit: Limit;
  readonly ours: KeptSide;
  readonly theirs: KeptSide;
}

const COMPARISONS: readonly Comparison[] = [
  compared("accept", "bullmq-everysec", 1.3),
  compared("accept", "bullmq-always", 1.3),
  compared("accept", "pg-boss", 10),
  compared("accept", "graphile-worker", 18),
  compared("accept", "insert", 2.5),
  compared("accept", "memory", 0.6),
  compared("postgres", "pg-boss", 5),
];

function compared(ours: "accept" | "postgres", theirs: KeptSide, target: number): Comparison {
  const store = ours === "accept" ? "SQLite" : "Postgres";
  const name = `${store}: durable accept / ${SIDES[theirs].label}, fastify`;
  return { limit: { name, target, bound: "at least" }, ours, theirs };
}

export const peersGroup: Group = {
  names: COMPARISONS.map(({ limit }) => limit.name),
  run: (wanted) =>
    inDirectory(async (directory) => {
      const asked = COMPARISONS.filter(({ limit }) => wanted.has(limit.name));
      const sides = [...new Set(asked.flatMap(({ ours, theirs }) => [ours, theirs]))];
      const places = await startPlaces(sides, directory);
      try {
        const runs = await measure(sides, places);
        return asked.map((comparison) => compare(comparison, runs));
      } finally {
        await places.stop();
      }
    }),
};

async function measure(sides: readonly KeptSide[], places: Places): Promise<ReadonlyMap<KeptSide, Run>> {
  const present = sides.flatMap((side) => {
    const served = servedOf(side, places);
    return served === null ? [] : [{ side, served }];
  });
  const runs = await takeTurns(
    present.map(({ served }) => served),
    ROUNDS,
  );
  for (const { side, served } of present) {
    // The round that warms up is stored too.
    await checkStored(side, places, (ROUNDS.count + 1) * (served.requests ?? ROUNDS.requests));
  }
  return new Map(present.flatMap(({ side }, index) => pairOf(side, runs[index])));
}

function pairOf(side: KeptSide, run: Run | undefined): readonly [KeptSide, Run][] {
  return run === undefined ? [] : [[side, run]];
}

function compare({ limit, ours, theirs }: Comparison, runs: ReadonlyMap<KeptSide, Run>): Row | LeftOut {
  const [a, b] = [runs.get(ours), runs.get(theirs)];
  if (a === undefined || b === undefined) return { name: limit.name, reason: "redis-server is not installed" };
  const p99 = [a, b].map((run) => median(run.p99Ms).toFixed(1)).join(" / ");
  const [mine, other] = [median(a.perSecond), median(b.perSecond)];
  const detail = `${grouped(mine)} / ${grouped(other)} requests/s, p99 of an answer ${p99} ms`;
  return {
    ...row(limit, ratioOf(a.perSecond, b.perSecond), detail),
    points: [
      { chart: "throughput", side: ours, perSecond: mine },
      { chart: "throughput", side: theirs, perSecond: other },
    ],
  };
}

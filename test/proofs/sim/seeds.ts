/** Worlds one after the other: each from its seed alone, with what it came to. */

import { timedRetries } from "./attempts.ts";
import { type Course, courseOf, courseOfLanes, courseOfRate, RATED } from "./course.ts";
import { PostgresPlace, SqlitePlace } from "./database-places.ts";
import { controlledPlace, type Flaw } from "./flaws.ts";
import { attemptsIn, problemsOf, rateProblems } from "./judge.ts";
import type { Place } from "./places.ts";
import { type HandOut, World } from "./world.ts";

/** Every so many seeds, a world on a real database. */
const SQLITE_EVERY = 5;
const POSTGRES_EVERY = 2_000;
/** Of a rate in simulated time. */
const RATE_TOLERANCE = 0.01;

export interface SeedTerms {
  readonly seed: number;
  /** Of a Postgres, where one runs. */
  readonly postgresUrl: string | null;
  readonly flaw: Flaw | null;
  /** Keeps the story. */
  readonly tells: boolean;
}

export interface WorldReport {
  readonly problems: readonly string[];
  readonly story: readonly string[];
  /** How often what happened. */
  readonly counts: Readonly<Record<string, number>>;
}

export async function runSeed({ seed, postgresUrl, flaw, tells }: SeedTerms): Promise<WorldReport> {
  const kind = flaw === null ? placeOf(seed, postgresUrl) : "memory";
  return runWorld(courseOf(seed, kind), { postgresUrl, flaw, tells });
}

async function runWorld(
  course: Course,
  { tells, ...terms }: Omit<SeedTerms, "seed">,
  also: (world: World) => readonly string[] = () => [],
): Promise<WorldReport> {
  const { seed, place: kind } = course;
  const place = madePlace(kind, { seed, ...terms });
  const world = new World(course, place, tells);
  try {
    await world.live();
    const attempts = await attemptsIn(world);
    const problems = [...(await problemsOf(attempts)), ...also(world)].map(
      (problem) => `seed ${seed} (${kind}): ${problem}`,
    );
    const counts = await countsOf(world);
    const inPlace = { [`worlds in ${kind}`]: 1, [`handled in ${kind}`]: counts.handled ?? 0 };
    const looks = { "retries in time": timedRetries(attempts), looks: world.said.count };
    return { problems, story: world.story, counts: { ...inPlace, ...counts, ...looks } };
  } finally {
    await world.leave();
    await place.remove();
  }
}

/** On each store a world with so many objects of Stripe, whose processes die again and again: without and with a hold-back. */
export async function runManyLanes(lanes: number, postgresUrl: string | null): Promise<readonly WorldReport[]> {
  const kinds = (["memory", "sqlite", "postgres"] as const).filter(
    (kind) => kind !== "postgres" || postgresUrl !== null,
  );
  const courses = kinds.flatMap((kind) => [0, 20_000].map((holdBackMs) => courseOfLanes(kind, lanes, holdBackMs)));
  const reports: WorldReport[] = [];
  for (const course of courses) reports.push(await runWorld(course, { postgresUrl, flaw: null, tells: false }));
  return reports;
}

/** On each store a backlog under a rate: one for the inbox, and one for each key. */
export async function runRates(postgresUrl: string | null): Promise<readonly string[]> {
  const kinds = (["memory", "sqlite", "postgres"] as const).filter(
    (kind) => kind !== "postgres" || postgresUrl !== null,
  );
  const problems: string[] = [];
  for (const kind of kinds) {
    for (const per of ["inbox", "message"] as const) {
      const course = courseOfRate(kind, per);
      const keys = per === "inbox" ? 1 : RATED.keys;
      const report = await runWorld(course, { postgresUrl, flaw: null, tells: false }, (world) =>
        rateProblems(world, keys, RATE_TOLERANCE),
      );
      problems.push(...report.problems.map((problem) => `a rate of the ${per}: ${problem}`));
    }
  }
  return problems;
}

async function countsOf(world: World): Promise<Record<string, number>> {
  const { service, observer, place, befell, course, putOffs, handOuts } = world;
  // Every event has a handler here.
  const { unhandled: _unhandled, ...counters } = (await observer.stats()).counters;
  const effects = await place.effects();
  const { "stands still": stoodStill, dies: died, restarts: restarted, "is set": clocksSet } = befell;
  return {
    ...{ attempts: service.attempts, forged: service.forged.length, effects: effects.length },
    ...{ replays: effects.filter(({ replay }) => replay).length, died, stoodStill, restarted, clocksSet },
    ...{ "worlds with lanes of all orders": Number(course.sources.includes("builds")), putOffs, ...ordersIn(handOuts) },
    ...{ "worlds that hold back": Number(course.holdBackMs > 0), "worlds with a rate": Number(course.rate !== null) },
    ...{ "worlds with a concurrency of each source": Number(course.each !== null) },
    ...counters,
  };
}

/** Hand-outs in lanes of several events of another source. */
function ordersIn(handOuts: readonly HandOut[]): Record<string, number> {
  const count = (is: (handOut: HandOut) => boolean) => handOuts.filter(is).length;
  return {
    "by position": count(({ order, handler }) => order === "position" && handler === "on"),
    "late by position": count(({ order, handler }) => order === "position" && handler === "late"),
    "by arrival": count(({ order }) => order === "arrival"),
  };
}

function placeOf(seed: number, postgresUrl: string | null): Course["place"] {
  if (seed % POSTGRES_EVERY === 0 && postgresUrl !== null) return "postgres";
  return seed % SQLITE_EVERY === 0 ? "sqlite" : "memory";
}

function madePlace(kind: Course["place"], { seed, postgresUrl, flaw }: Omit<SeedTerms, "tells">): Place {
  if (kind === "postgres") return new PostgresPlace(postgresUrl ?? "", `sim_${seed}_${process.pid}`);
  return kind === "sqlite" ? new SqlitePlace() : controlledPlace(flaw);
}

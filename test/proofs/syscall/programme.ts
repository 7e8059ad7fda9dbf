/** `npm run prove -- syscall`: a receiver is killed at 60 (`--full` 1,000) of the system calls that write or sync its inbox. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "../../../src/testing/index.ts";
import { straceIsMissing } from "../durability/strace.ts";
import { breachCounts, breachLines } from "../history.ts";
import type { Programme, Proof } from "../programme.ts";
import { becomeLater } from "../../support/later-version.ts";
import { makeOlderInbox } from "./older.ts";
import { CALLS, type Fate, killAt, type Point, pointsOf, type Terms } from "./point.ts";

const SHORT = 60;
const FULL = 1_000;
/** One more than there are phases, so that they do not all fall on the same moment of one. */
const CONTROL = 7;
const AT_ONCE = 2;
/** Of each step. */
const LEAST = 2;
/** Timers may make a run shorter than the one that was counted. */
const MOST_MISSED = 0.05;
/** What a process does when it is killed. Copying is that of the log into the file, which closing does as well. */
const STEPS = ["making", "migrating", "working", "copying", "pruning", "closing"];

/** A point of one of the two ways to begin: without an inbox, and with one of the version before. */
interface Place extends Point {
  readonly name: "new" | "older";
  readonly terms: Terms;
}

export const syscall: Programme = {
  name: "syscall",
  what: "nothing acknowledged is lost, twice in effect or out of order wherever between two writes a receiver is killed",
  async run({ full, say }): Promise<Proof> {
    const unit = "kills at a write or sync";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const seed = Number(process.env.SEED ?? 20_251_120);
    let undo = () => {};
    const folder = await mkdtemp(join(tmpdir(), "oncehook-older-"));
    try {
      const older = join(folder, "inbox.db");
      await makeOlderInbox(older, seed);
      // As the process that is killed: what it leaves is opened here.
      undo = becomeLater();
      const places = await placesOf({ new: null, older }, seed, say);
      const wanted = full ? FULL : SHORT;
      const outcome = await killAll(choose(places, wanted, seededRandom(seed)), seed);
      say(`SEED=${seed} ${outcome.line}`);
      const working = places.filter(({ step }) => step === "working").map(answeringFirst);
      const control = await killAll(spread(working, CONTROL, seededRandom(seed)), seed);
      say(`answers first ${control.line}`);
      const problems = [...outcome.problems, ...shortcomings(outcome, wanted)];
      if (!control.kinds.has("lost")) problems.push("what was answered before it was stored was not seen missing");
      return { count: outcome.kills, unit, problems };
    } finally {
      undo();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** Every call of a process that is left alone, in both ways to begin. */
async function placesOf(
  inboxes: Readonly<Record<Place["name"], string | null>>,
  seed: number,
  say: (line: string) => void,
): Promise<readonly Place[]> {
  const places: Place[] = [];
  for (const name of ["new", "older"] as const) {
    const terms: Terms = { older: inboxes[name], seed, answersFirst: false };
    const points = await pointsOf(terms);
    const counts = CALLS.map((call) => `${points.filter((point) => point.call === call).length} ${call}`);
    say(`${name.padEnd(6)} ${counts.join(", ")}`);
    places.push(...points.map((point) => ({ ...point, name, terms })));
  }
  return places;
}

/** So many of each step as its share of the calls, and some of the shortest. */
function choose(places: readonly Place[], wanted: number, random: () => number): readonly Place[] {
  return STEPS.flatMap((step) => {
    const candidates = places.filter((place) => place.step === step);
    const share = Math.ceil((wanted * candidates.length) / places.length);
    return spread(candidates, Math.max(LEAST, share), random);
  });
}

/** Evenly spread; the first is left to `random`. */
function spread(places: readonly Place[], wanted: number, random: () => number): readonly Place[] {
  const distance = places.length / wanted;
  const first = random() * distance;
  const chosen = Array.from({ length: wanted }, (_, index) => places[Math.floor(first + index * distance)]);
  return chosen.filter((place) => place !== undefined);
}

/** A SIGKILL leaves what was written with NORMAL, so that the control is a 2xx before the commit. */
function answeringFirst(place: Place): Place {
  return { ...place, terms: { ...place.terms, answersFirst: true } };
}

interface Outcome {
  readonly kills: number;
  readonly missed: number;
  readonly steps: ReadonlyMap<string, number>;
  readonly kinds: ReadonlySet<string>;
  readonly problems: readonly string[];
  readonly line: string;
}

async function killAll(places: readonly Place[], seed: number): Promise<Outcome> {
  const fates: Fate[] = [];
  const problems: string[] = [];
  const queue = [...places];
  const work = async () => {
    for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
      const fate = await killAt(place.terms, place);
      fates.push(fate);
      const where = `SEED=${seed} ${fate.step} on ${place.name} inbox, ${place.call} ${place.k}`;
      problems.push(...[...breachLines(fate.breaches), ...fate.problems].map((problem) => `${where}: ${problem}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const killed = fates.filter(({ isKilled }) => isKilled);
  const breaches = fates.flatMap((fate) => fate.breaches);
  const steps = new Map(STEPS.map((name) => [name, killed.filter(({ step }) => step === name).length]));
  const acknowledged = fates.reduce((sum, fate) => sum + fate.acknowledged, 0);
  const where = [...steps].map(([name, times]) => `${times} ${name}`).join(", ");
  return {
    ...{ kills: killed.length, missed: fates.length - killed.length, steps, problems: problems.slice(0, 20) },
    kinds: new Set(breaches.map(({ kind }) => kind)),
    line: `${killed.length} kills (${where}), ${acknowledged} acknowledged before them: ${breachCounts(breaches)}`,
  };
}

function shortcomings({ missed, steps }: Outcome, wanted: number): string[] {
  const untouched = [...steps].filter(([, times]) => times === 0).map(([name]) => `none was killed ${name}`);
  return missed > wanted * MOST_MISSED ? [...untouched, `${missed} of ${wanted} ended before their call`] : untouched;
}

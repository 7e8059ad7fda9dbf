/** `npm run prove -- syscall`: a receiver is killed at 60 (`--full` 1,000) of the system calls that write or sync its inbox. */
import { spawn } from "node:child_process";
import { copyFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";
import { createFakeClock, seededRandom } from "../../src/tools/testing/index.ts";
import { becomeLater } from "../support/later-version.ts";
import { type Breach, breachCounts, breachesOf, breachLines } from "./history.ts";
import { contentsAsLeft, contentsOf, Look } from "./inbox.ts";
import { compiled } from "./process.ts";
import {
  inFolder,
  inTurn,
  missingFrom,
  type Programme,
  type Proof,
  type Terms as ProofTerms,
  seedOr,
} from "./programme.ts";
import { straceIsMissing, type Tracing, traced } from "./strace.ts";
import { BEGIN, DAY_MS, deliver, deliveriesOf, PHASES, receiverOn } from "./syscall-deliveries.ts";

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
/** What SQLite changes files with, and makes that last. */
const CALLS = ["pwrite64", "fdatasync", "fsync", "ftruncate", "unlink"] as const;
type Call = (typeof CALLS)[number];

export interface ChildOptions {
  readonly path: string;
  readonly seed: number;
  /** Says that a delivery is acknowledged before it hands it to the receiver: the control. */
  readonly answersFirst: boolean;
}

interface Terms extends Omit<ChildOptions, "path"> {
  /** The inbox that is there before; null for none. */
  readonly older: string | null;
}

/** A system call of a process, in one of the two ways to begin. */
interface Point {
  readonly terms: Terms;
  readonly call: Call;
  /** From 1. */
  readonly k: number;
  /** What the process does then, by its own words. */
  readonly step: string;
}

interface Fate {
  readonly isKilled: boolean;
  /** What it did when it was killed. */
  readonly step: string;
  /** Before it was killed. */
  readonly acknowledged: number;
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
}

export const syscall: Programme = {
  name: "syscall",
  what: "nothing acknowledged is lost, twice in effect or out of order wherever between two writes a receiver is killed",
  async run({ full, say }): Promise<Proof> {
    const unit = "kills at a write or sync";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const seed = seedOr(20_251_120);
    return inFolder(async (folder) => {
      const older = join(folder, "inbox.db");
      await makeOlderInbox(older, seed);
      // As the process that is killed: what it leaves is opened here.
      const undo = becomeLater();
      try {
        const points = [...(await pointsOf("new", null, seed, say)), ...(await pointsOf("older", older, seed, say))];
        const wanted = full ? FULL : SHORT;
        const outcome = await killAll(choose(points, wanted, seededRandom(seed)), seed);
        say(`SEED=${seed} ${outcome.line}`);
        const working = points.filter(({ step }) => step === "working").map(answeringFirst);
        const control = await killAll(spread(working, CONTROL, seededRandom(seed)), seed);
        say(`answers first ${control.line}`);
        const isSeen = control.kinds.has("lost");
        const unseen = missingFrom({ "what was answered before it was stored was not seen missing": isSeen });
        const problems = [...outcome.problems, ...shortcomings(outcome, wanted), ...unseen];
        return { count: outcome.kills, unit, problems };
      } finally {
        undo();
      }
    });
  },
};

/** An inbox as this version leaves it to a later one: its schema, and events that were acknowledged and not handled. */
async function makeOlderInbox(path: string, seed: number): Promise<void> {
  const clock = createFakeClock(BEGIN - 60_000);
  const receiving = receiverOn(path, clock);
  const refused: number[] = [];
  await deliver(receiving, deliveriesOf(seed, PHASES.before), {
    clock,
    answered: (_, status) => status !== 200 && refused.push(status),
  });
  await receiving.receiver.stop();
  if (refused.length > 0) throw new Error(`The older inbox answered ${refused.join(", ")}.`);
}

/** Every call of a process that is left alone, in their order. */
function pointsOf(name: string, older: string | null, seed: number, say: ProofTerms["say"]): Promise<Point[]> {
  const terms: Terms = { older, seed, answersFirst: false };
  return withInbox(terms, async (path, folder) => {
    const log = join(folder, "calls");
    await run({ calls: ["write", ...CALLS].join(), more: ["--seccomp-bpf"], log }, { ...terms, path });
    const points: Point[] = [];
    const counts = new Map<Call, number>(CALLS.map((call) => [call, 0]));
    let step = firstStepOf(terms);
    for (const line of (await readFile(log, "utf8")).split("\n")) {
      const call = CALLS.find((each) => line.includes(` ${each}(`));
      step = /\bwrite\(1, "(\w+)\\n"/.exec(line)?.[1] ?? step;
      if (call === undefined) continue;
      const k = (counts.get(call) ?? 0) + 1;
      counts.set(call, k);
      points.push({ terms, call, k, step });
    }
    say(`${name.padEnd(6)} ${[...counts].map(([call, count]) => `${count} ${call}`).join(", ")}`);
    return points;
  });
}

/** So many of each step as its share of the calls, and some of the shortest. */
function choose(points: readonly Point[], wanted: number, random: () => number): readonly Point[] {
  return STEPS.flatMap((step) => {
    const candidates = points.filter((point) => point.step === step);
    const share = Math.ceil((wanted * candidates.length) / points.length);
    return spread(candidates, Math.max(LEAST, share), random);
  });
}

/** Evenly spread; the first is left to `random`. */
function spread(points: readonly Point[], wanted: number, random: () => number): readonly Point[] {
  const distance = points.length / wanted;
  const first = random() * distance;
  const chosen = Array.from({ length: wanted }, (_, index) => points[Math.floor(first + index * distance)]);
  return chosen.filter((point) => point !== undefined);
}

/** A SIGKILL leaves what was written with NORMAL, so that the control is a 2xx before the commit. */
function answeringFirst(point: Point): Point {
  return { ...point, terms: { ...point.terms, answersFirst: true } };
}

interface Outcome {
  readonly kills: number;
  readonly missed: number;
  readonly steps: ReadonlyMap<string, number>;
  readonly kinds: ReadonlySet<string>;
  readonly problems: readonly string[];
  readonly line: string;
}

async function killAll(points: readonly Point[], seed: number): Promise<Outcome> {
  const problems: string[] = [];
  const fates = await inTurn(points, AT_ONCE, async (point) => {
    const fate = await killAt(point);
    const where = `SEED=${seed} ${fate.step} on ${point.terms.older === null ? "new" : "older"} inbox, ${point.call} ${point.k}`;
    problems.push(...[...breachLines(fate.breaches), ...fate.problems].map((problem) => `${where}: ${problem}`));
    return fate;
  });
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

/** A process is killed at a call, and what it left is looked at, opened again and looked at once more. */
function killAt({ terms, call, k }: Point): Promise<Fate> {
  return withInbox(terms, async (path, folder) => {
    // With its filter, which makes counting quicker, strace sends no signal.
    const more = ["-e", `inject=${call}:signal=SIGKILL:when=${k}`];
    const said = await run({ calls: call, more, log: "/dev/null" }, { ...terms, path });
    return judge(terms, said, path, folder);
  });
}

/** With a copy of the older inbox, if there is one. */
function withInbox<T>({ older }: Terms, work: (path: string, folder: string) => Promise<T>): Promise<T> {
  return inFolder((folder) => {
    const path = join(folder, "inbox.db");
    if (older !== null) copyFileSync(older, path);
    return work(path, folder);
  });
}

/** @returns what it said */
async function run(tracing: Tracing, { path, seed, answersFirst }: ChildOptions): Promise<readonly string[]> {
  const options: ChildOptions = { path, seed, answersFirst };
  const command = [...traced(tracing).execArgv, compiled("syscall-child.js"), JSON.stringify(options)];
  const strace = spawn("strace", command, { stdio: ["ignore", "pipe", "inherit"] });
  return (await text(strace.stdout)).split("\n").filter(Boolean);
}

async function judge(terms: Terms, said: readonly string[], path: string, folder: string): Promise<Fate> {
  const { seed, older } = terms;
  const before = older === null ? [] : deliveriesOf(seed, PHASES.before);
  const old = [...before, ...deliveriesOf(seed, PHASES.first), ...deliveriesOf(seed, PHASES.second)];
  const later = deliveriesOf(seed, PHASES.later);
  const identitiesOf = (deliveries: typeof old) => [...new Set(deliveries.map(({ identity }) => identity))];
  // Once pruning has begun, what is a month old may be gone, and would be taken for new if it came again.
  const pruned = said.includes("pruning") ? identitiesOf(old) : [];
  const acknowledged = new Set([...identitiesOf([...before]), ...acknowledgedIn(said)]);
  const sent = identitiesOf([...old, ...later]);
  const known = { sent, forged: [], replayed: [], pruned, everyHandlerWrites: true };

  const left = contentsAsLeft(path, folder);
  const breaches = [...breachesOf({ ...known, ...left, acknowledged, moment: "running" })];
  const again = await restart(path, [...(pruned.length > 0 ? [] : old), ...later]);
  const end = contentsOf(path);
  const all = [...acknowledged, ...again.acknowledged];
  breaches.push(...breachesOf({ ...known, ...end, acknowledged: all, moment: "ended" }));

  const problems = [...again.problems, ...said.filter((line) => line.startsWith("answered"))];
  for (const { integrity } of [left, end]) if (integrity !== "ok") problems.push(`the file is damaged: ${integrity}`);
  const look = new Look({ path });
  const schema = await look.number("select value from {meta} where key = 'schema'");
  await look.remove();
  if (schema !== MIGRATIONS.length) problems.push(`the inbox has schema ${schema}`);
  // The step that it was in, by the last thing it said that is no acknowledgement.
  const step = said.findLast((line) => !line.startsWith("acknowledged")) ?? firstStepOf(terms);
  return { isKilled: said.at(-1) !== "closed", step, acknowledged: acknowledged.size, breaches, problems };
}

/** The service delivers again what was not acknowledged, and more: everything comes to its end. */
async function restart(path: string, deliveries: ReturnType<typeof deliveriesOf>) {
  const clock = createFakeClock(BEGIN + 31 * DAY_MS + 3_600_000);
  const receiving = receiverOn(path, clock);
  const acknowledged: string[] = [];
  const problems: string[] = [];
  await receiving.receiver.start();
  await deliver(receiving, deliveries, {
    clock,
    answered({ identity }, status) {
      if (status === 200) acknowledged.push(identity);
      else problems.push(`after the restart a delivery was answered with ${status}`);
    },
  });
  await receiving.receiver.drain();
  await receiving.receiver.stop();
  return { acknowledged, problems };
}

function acknowledgedIn(said: readonly string[]): string[] {
  return said.flatMap((line) => (line.startsWith("acknowledged ") ? [line.slice("acknowledged ".length)] : []));
}

function firstStepOf({ older }: Terms): string {
  return older === null ? "making" : "migrating";
}

/** A rolling upgrade under load: processes of this version on one inbox are replaced by a later one one by one, one of them back and forth. */
import { join } from "node:path";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { type Breach, breachCounts, breachesOf, breachLines } from "./history.ts";
import { type Contents, Look, type Place } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import { inFolder, missingFrom, type Proof, type Terms } from "./programme.ts";
import type { Description } from "./receiving.ts";
import { hand, Mixture, Sender } from "./sender.ts";

type Version = NonNullable<Description["version"]>;

/** In this order: which place gets which version, and how the process before it ends there. */
const REPLACEMENTS: readonly { readonly at: number; readonly by: Version; readonly end: "stop" | "kill" }[] = [
  { at: 0, by: "later", end: "stop" },
  { at: 1, by: "later", end: "kill" },
  { at: 1, by: "this", end: "kill" },
  { at: 1, by: "later", end: "stop" },
  { at: 2, by: "later", end: "stop" },
];
const PROCESSES = 3;
const SENDERS = 8;
/** Messages whose events are mixed. */
const MIXED = 4;
const SEED = 20_261_127;
const PATIENCE_MS = 120_000;
const LEAST_OF_EACH = 50;
const LEAST_CROSSED = 10;

interface Outcome {
  readonly acknowledged: number;
  /** Deliveries to a process that was killed. */
  readonly unanswered: number;
  /** By what they were answered with. */
  readonly refused: Readonly<Record<string, number>>;
  /** Events that the handlers of each version handled. */
  readonly handledBy: Readonly<Record<Version, number>>;
  /** Messages whose events both versions handled. */
  readonly crossed: number;
  readonly breaches: readonly Breach[];
}

/** Processes of this version are replaced by those of a later one under load, on an inbox of each kind. */
export function upgraded(url: string, between: number, say: Terms["say"]): Promise<Pick<Proof, "count" | "problems">> {
  return inFolder(async (folder) => {
    const places: Readonly<Record<string, Place>> = {
      Postgres: { url, schema: `rolling_${process.pid}` },
      SQLite: { path: join(folder, "inbox.db") },
    };
    const problems: string[] = [];
    let count = 0;
    for (const [name, place] of Object.entries(places)) {
      const outcome = await rollOver(place, between);
      say(`upgrade  on ${name} ${JSON.stringify({ ...outcome, breaches: breachCounts(outcome.breaches) })}`);
      problems.push(...flawsOf(outcome).map((flaw) => `upgrade on ${name}: ${flaw}`));
      count += outcome.acknowledged;
    }
    return { count, problems };
  });
}

function flawsOf({ breaches, refused, handledBy, crossed }: Outcome): string[] {
  const { this: byThis, later: byLater } = handledBy;
  const shown = {
    [`only ${byThis} events were handled by this version and ${byLater} by the later one`]:
      Math.min(byThis, byLater) > LEAST_OF_EACH,
    [`only ${crossed} messages were handled by both`]: crossed > LEAST_CROSSED,
  };
  return [
    ...breachLines(breaches),
    ...Object.entries(refused).map(([status, count]) => `${count} deliveries were answered with ${status}`),
    ...missingFrom(shown).map((shortcoming) => `shows too little: ${shortcoming}`),
  ];
}

async function rollOver(place: Place, between: number): Promise<Outcome> {
  const look = new Look(place);
  await look.prepare();
  const processes: Asked[] = [];
  /** The new one works before the old one ends. */
  const replace = async (at: number, version: Version, end: "stop" | "kill") => {
    const description: Description = { place, version, name: version, receiver: { leaseMs: 3_000 } };
    const child = new Asked(compiled("child.js"), description);
    const before = processes[at];
    await child.ask("open");
    processes[at] = child;
    await before?.[end]();
  };
  const random = seededRandom(SEED);
  const sender = new Sender({
    ...{ parallel: SENDERS, againAfterMs: 5 },
    next: new Mixture({ seed: SEED, messages: MIXED, repeated: 0.2 }).next,
    deliver: (delivery) => hand(processes[Math.floor(random() * processes.length)], delivery),
  });
  try {
    for (let at = 0; at < PROCESSES; at++) await replace(at, "this", "stop");
    const sending = sender.run();
    sending.catch(() => {}); // It is awaited below.
    for (const { at, by, end } of REPLACEMENTS) {
      await sender.more(between);
      await replace(at, by, end);
    }
    await sender.more(between);
    sender.finish();
    await sending;
    await look.settled(PATIENCE_MS);
    await Promise.all(processes.map((child) => child.stop()));
    const { sent, acknowledged, answers } = sender;
    const { effects, stored } = await look.contents();
    const ended = { moment: "ended", everyHandlerWrites: true, forged: [], replayed: [] } as const;
    const refused: Record<string, number> = {};
    for (const { status } of answers) if (status !== 200 && status !== 0) refused[status] = (refused[status] ?? 0) + 1;
    const handled = (version: Version) => effects.filter(({ by }) => by === version).length;
    return {
      ...{ acknowledged: acknowledged.size, unanswered: sender.count(0), refused, crossed: crossedIn(effects) },
      handledBy: { this: handled("this"), later: handled("later") },
      breaches: breachesOf({ ...ended, sent, acknowledged, effects, stored }),
    };
  } finally {
    await Promise.all(processes.map((child) => child.kill()));
    await look.remove();
  }
}

/** Messages with events in effect at more than one process. */
export function crossedIn(effects: Contents["effects"]): number {
  const processesOf = new Map<string, Set<string>>();
  for (const { lane, by } of effects) processesOf.set(lane, (processesOf.get(lane) ?? new Set()).add(by));
  return [...processesOf.values()].filter(({ size }) => size > 1).length;
}

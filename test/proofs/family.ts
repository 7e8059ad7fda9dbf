/** Processes that share an inbox on either store, and what became of the events by its tables, its effects and the handlers' own logs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock, fixtures, incomingOf, seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import type { Answered } from "./child.ts";
import { breachCounts, breachesOf, type History } from "./history.ts";
import { Look, type Place, storeAt } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import { inFolder } from "./programme.ts";
import { type Description, receive } from "./receiving.ts";
import { type Delivery, deliveryOf, hand, requestOf, Sender } from "./sender.ts";
import type { SourceName } from "./sources.ts";

const DAY_MS = 24 * 3_600_000;
/** Messages mixed with others this many at a time. */
const MIXED = 40;
const PARALLEL = 96;
/** What a supervisor waits, as docs/deploy/oncehook.service tells it. */
const RESTART_MS = 1_000;
const MOST_STARTS = 20;

/** One run of a handler; `endedAt` is null when its process died in it. */
export interface Run {
  readonly startedAt: bigint;
  endedAt: bigint | null;
  readonly lane: number;
  readonly sequence: number;
  readonly event: number;
  readonly attempt: number;
  readonly outOfOrder: boolean;
}

/** What must be as in `FLAWLESS`. */
export interface Verdict {
  /** The history checker's, in words. */
  readonly breaches: string;
  /** Hand-outs below the sequence before them in their lane (I4). */
  readonly handOutInversions: number;
  /** Handlers of one lane that ran at once (I3). */
  readonly overlaps: number;
  /** Events that ended without a handler. */
  readonly unhandled: number;
  readonly lanesNotIdle: number;
  /** On a file: events whose attempts are not the number of hand-outs that handlers saw (I7). */
  readonly attemptsMiscounted: number;
  /** Kept counters that disagree with the rows. */
  readonly countersWrong: number;
  /** What the sums that effects add to have too much or too little. */
  readonly sumsWrong: number;
  readonly integrity: string;
}

export const FLAWLESS: Verdict = {
  ...{ breaches: "no breach", handOutInversions: 0, overlaps: 0, unhandled: 0, lanesNotIdle: 0 },
  ...{ attemptsMiscounted: 0, countersWrong: 0, sumsWrong: 0, integrity: "ok" },
};

export class Family {
  readonly place: Place;
  readonly look: Look;
  readonly children: Asked[] = [];
  readonly #folder: string;
  readonly #logs: string[] = [];
  readonly #descriptions = new Map<Asked, Description & { readonly log: string }>();
  readonly #stopped = new Set<Asked>();
  /** Runs of handlers during which their process stood still, by `keyOf`: another one may have had their lane meanwhile. */
  readonly #stoodStill = new Set<string>();

  constructor(folder: string, place: Place) {
    this.#folder = folder;
    this.place = place;
    this.look = new Look(place);
  }

  async add(wish: Partial<Description> = {}): Promise<Asked> {
    const log = join(this.#folder, `${this.#logs.length + 1}.log`);
    this.#logs.push(log);
    const description = { place: this.place, ...wish, log };
    const child = new Asked(compiled("child.js"), description);
    this.children.push(child);
    this.#descriptions.set(child, description);
    try {
      await child.ask("open");
    } catch (error) {
      await this.#end(child);
      throw error;
    }
    return child;
  }

  /** The processes that have this source and do not stand still. */
  having(source: SourceName): Asked[] {
    return this.running.filter((child) => this.#descriptions.get(child)?.sources?.includes(source) ?? false);
  }

  get running(): Asked[] {
    return this.children.filter((child) => !this.#stopped.has(child));
  }

  /**
   * Kills a process, and starts another one in its place; as a supervisor does, one more while the inbox cannot be opened: a pooler
   * refuses connections for a while after its server crashed.
   */
  async replace(child: Asked): Promise<void> {
    await this.#end(child);
    for (let start = 1; ; start++) {
      try {
        await this.add(this.#descriptions.get(child));
        return;
      } catch (error) {
        if (start === MOST_STARTS || !String(error).includes("cannot be used now")) throw error;
        await sleep(RESTART_MS);
      }
    }
  }

  async #end(child: Asked): Promise<void> {
    // From now on nothing is sent to it.
    this.children.splice(this.children.indexOf(child), 1);
    await child.kill();
  }

  /** Stops a process in the middle of handlers; returns the events that they handle. */
  async stopInHandlers(child: Asked): Promise<readonly number[]> {
    this.#stopped.add(child);
    const { log } = this.#descriptions.get(child) ?? { log: "" };
    for (;;) {
      child.process.kill("SIGSTOP");
      await sleep(10);
      const open = readRuns(log).filter(({ endedAt }) => endedAt === null);
      for (const run of open) this.#stoodStill.add(keyOf(run));
      if (open.length > 0) return open.map(({ event }) => event);
      child.process.kill("SIGCONT");
      await sleep(10);
    }
  }

  /** Lets a stopped process go on. */
  goOn(child: Asked): void {
    child.process.kill("SIGCONT");
    this.#stopped.delete(child);
  }

  /** All runs of handlers of all processes, by their start. */
  runs(): Run[] {
    return this.#logs.flatMap(readRuns).sort((a, b) => Number(a.startedAt - b.startedAt));
  }

  /** Events that processes announced as dead letters. */
  announced(): number {
    return this.#logs.flatMap(linesOf).filter((line) => line.startsWith("D ")).length;
  }

  number(sql: string, ...values: unknown[]): Promise<number> {
    return this.look.number(sql, ...values);
  }

  /** Waits until no event is pending. */
  async settled(timeoutMs = 15_000): Promise<void> {
    if (!(await this.look.settled(timeoutMs))) throw new Error(`Events were still pending after ${timeoutMs} ms.`);
  }

  /** @param known - what the sender knows; without it, what is stored was sent */
  async verdict(known: Partial<Pick<History, "sent" | "acknowledged" | "replayed">> = {}): Promise<Verdict> {
    const { effects, stored, integrity } = await this.look.contents();
    const sent = stored.map(({ identity }) => identity);
    const history = { sent, acknowledged: [], replayed: [], ...known, forged: [], effects, stored };
    const inbox = await openInbox({ store: storeAt(this.place), logger: silentLogger });
    const { gauges, counters } = await inbox.stats();
    await inbox.close();
    const runs = this.runs();
    const adding = [...this.#descriptions.values()].some(({ adds = [] }) => adds.length > 0);
    return {
      breaches: breachCounts(breachesOf({ ...history, moment: "ended", everyHandlerWrites: true })),
      handOutInversions: inversionsIn(runs),
      overlaps: overlapsIn(runs.filter((run) => !this.#stoodStill.has(keyOf(run)))),
      unhandled: stored.filter(({ state }) => state === "unhandled").length,
      lanesNotIdle: await this.number("select count(*) from {lane} where status <> 0"),
      attemptsMiscounted: "path" in this.place ? await this.#miscounted(runs) : 0,
      countersWrong: Number((counters.accepted ?? 0) < stored.length) + Math.abs(gauges.pending),
      sumsWrong: adding ? await this.number(`select sum(abs(total - ${effects.length})) from {sum}`) : 0,
      integrity,
    };
  }

  async #miscounted(runs: readonly Run[]): Promise<number> {
    const handOuts = new Map<number, number>();
    for (const { event } of runs) handOuts.set(event, (handOuts.get(event) ?? 0) + 1);
    const rows = await this.look.rows<{ id: number; attempts: number }>(
      // Those of a month ago were handled before the processes.
      `select id, attempts from {event} where accepted > ${Date.now() - DAY_MS}`,
    );
    return rows.filter(({ id, attempts }) => (handOuts.get(id) ?? 0) !== attempts).length;
  }

  stop(): Promise<unknown> {
    return Promise.all(this.children.map((child) => child.stop()));
  }

  async remove(): Promise<void> {
    await Promise.all(this.children.map((child) => child.kill()));
    await this.look.rows("drop table if exists {sum}").catch(() => {});
    await this.look.remove();
  }
}

let families = 0;

/** Processes on an inbox of their own, on a server where one is given. */
export function withFamily<T>(work: (family: Family) => Promise<T>, url?: string): Promise<T> {
  return inFolder(async (folder) => {
    const ofServer = { url: url ?? "", schema: `oncehook_family_${process.pid}_${++families}` };
    const family = new Family(folder, url === undefined ? { path: join(folder, "inbox.db") } : ofServer);
    try {
      await family.look.prepare();
      return await work(family);
    } finally {
      await family.remove();
    }
  });
}

const keyOf = ({ event, attempt }: Run) => `${event} ${attempt}`;

function readRuns(log: string): Run[] {
  const open = new Map<string, Run>();
  const runs: Run[] = [];
  for (const line of linesOf(log)) {
    const [mark, at = "", lane, sequence, event, attempt, outOfOrder] = line.split(" ");
    const key = `${event} ${attempt}`;
    if (mark === "S") {
      const run: Run = {
        ...{ startedAt: BigInt(at), endedAt: null, lane: Number(lane), sequence: Number(sequence) },
        ...{ event: Number(event), attempt: Number(attempt), outOfOrder: outOfOrder === "1" },
      };
      open.set(key, run);
      runs.push(run);
    } else if (mark === "E") {
      const run = open.get(key);
      if (run !== undefined) run.endedAt = BigInt(at);
    }
  }
  return runs;
}

function linesOf(log: string): string[] {
  try {
    return readFileSync(log, "utf8").split("\n").filter(Boolean);
  } catch {
    // A process that handled nothing.
    return [];
  }
}

/** Each run with the one before it in its lane. */
function neighbours(runs: readonly Run[]): (readonly [before: Run, run: Run])[] {
  const last = new Map<number, Run>();
  return runs.flatMap((run) => {
    const before = last.get(run.lane);
    last.set(run.lane, run);
    return before === undefined ? [] : [[before, run] as const];
  });
}

function inversionsIn(runs: readonly Run[]): number {
  const inOrder = runs.filter(({ outOfOrder }) => !outOfOrder);
  return neighbours(inOrder).filter(([before, run]) => run.sequence < before.sequence).length;
}

/** A run without an end ended with its process, before anybody else could have its lane. */
function overlapsIn(runs: readonly Run[]): number {
  return neighbours(runs).filter(([{ endedAt }, { startedAt }]) => endedAt !== null && endedAt > startedAt).length;
}

/** Passes an event of the messaging service to a process; a repeat is written in other words. */
export function deliver(child: Asked | undefined, event: object, copy = 0): Promise<Answered> {
  return hand(child, { source: "messages", event, copy, isForged: false });
}

/** A delivery, and the process that it goes to. */
export interface Spread extends Delivery {
  readonly child: Asked;
}

/** Every event two or three times, each time to another process; the events of some messages at a time in any order. */
export function spread(lots: readonly (readonly Delivery[])[], children: readonly Asked[], seed: number): Spread[] {
  const random = seededRandom(seed);
  const deliveries: Spread[] = [];
  for (let from = 0; from < lots.length; from += MIXED) {
    const mixed = lots.slice(from, from + MIXED).flatMap((lot) =>
      lot.flatMap((delivery): Spread[] => {
        const first = Math.floor(random() * children.length);
        return Array.from({ length: 2 + Math.floor(random() * 2) }, (_, copy) => {
          return { ...delivery, copy, child: children[(first + copy) % children.length] as Asked };
        });
      }),
    );
    deliveries.push(...shuffled(mixed, random));
  }
  return deliveries;
}

/** How many answers of a kind there were. */
export interface Answers {
  readonly accepted: number;
  readonly duplicate: number;
  readonly late: number;
  /** Answered 503, or not at all, and sent again. */
  readonly repeated: number;
}

/** Sends all, each until it is answered with 200. @throws for any other answer than that and 503 */
export async function send(deliveries: readonly Spread[]): Promise<Answers> {
  const lots = [deliveries];
  const sender = new Sender<Spread>({
    ...{ parallel: PARALLEL, againAfterMs: 0, next: () => lots.shift() ?? [] },
    deliver: (delivery) => hand(delivery.child, delivery),
  });
  await sender.run();
  const [wrong] = sender.wrong([0, 200, 503]);
  if (wrong !== undefined) throw new Error(`An answer was ${wrong}.`);
  const count = (wanted: string) => sender.answers.filter(({ outcome }) => outcome === wanted).length;
  return {
    ...{ accepted: count("accepted"), duplicate: count("duplicate"), late: count("late") },
    repeated: sender.count(503) + sender.count(0),
  };
}

/** Events handled 40 days ago, which are due to be pruned; some of their messages go on now. */
export async function fillWithOld(place: Place, count: number): Promise<void> {
  const clock = createFakeClock(Date.now() - 40 * DAY_MS);
  const { receiver } = receive({ place, writes: false }, { clock });
  const source = receiver.source("messages");
  for (let index = 0; index < count; index++) {
    const old = deliveryOf(fixtures.queued({ messageId: `gap-old-${index}`, occurredAt: clock.now() }));
    const { status } = await source.handle(incomingOf(requestOf(old, clock.now())));
    if (status !== 200) throw new Error(`An old delivery was answered with ${status}.`);
  }
  await receiver.drain();
  await receiver.stop();
}

/** `npm run prove -- postgres`: several processes on one Postgres inbox, under load, killed and stopped, and with a server that crashes. */
import { setTimeout as sleep } from "node:timers/promises";
import { openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { STATUS } from "../../src/stores/database.ts";
import { bytesId } from "../../src/stores/postgres/encoding.ts";
import { incomingOf, seededRandom } from "../../src/tools/testing/index.ts";
import { noPgBouncer, PgBouncer } from "../stores/postgres/pgbouncer.ts";
import { type PostgresServer, startPostgres } from "../stores/postgres/server.ts";
import { lateBills } from "./bills.ts";
import { type Answers, type Family, FLAWLESS, fillWithOld, send, spread, type Verdict, withFamily } from "./family.ts";
import { type Breach, breachCounts, breachesOf, breachLines, documentedIdentity } from "./history.ts";
import { storeAt } from "./inbox.ts";
import { type Blows, type Struck, strikeAll } from "./postgres-blows.ts";
import { missingFrom, type Programme, type Proof, sizeOf, summed, type Terms } from "./programme.ts";
import { type Description, HOUR_MS, receive } from "./receiving.ts";
import { type Delivery, deliveryOf, hand, Mixture, message, pushOf, requestOf, Sender } from "./sender.ts";

const SEED = 20_261_120;
const DAY_MS = 24 * HOUR_MS;
/** Those of a message, and a push. */
const EVENTS_OF_A_MESSAGE = 3 + 1;
/** How long a transaction that waits is left before the server looks for a deadlock: a tenth of the default, because there are hundreds. */
const SERVER = { deadlock_timeout: "100ms" };
/** For two processes of five connections; after a crash of the server it tries again at once. */
const POOLER = { default_pool_size: "8", server_login_retry: "1" };
/** Rows that all effects write, so that they wait for each other; two orders of them make deadlocks. */
const SUMS = ["a", "b"] as const;
/** Of the load. */
const PROCESSES = 6;
const OLD = 60;
/** Pushes that are stored before a process runs that has their source. */
const EARLY = 20;
const LEASE_MS = 30_000;
/** Of the crashes. */
const CRASHED_PROCESSES = 4;
const SENDERS = 16;
/** Pending events at which the senders wait: more would only be handled at the end, when nothing happens any more. */
const MOST_PENDING = 2_000;

interface Size extends Blows {
  /** Of the load; all else is of the crashes. */
  readonly events: number;
  /** Deliveries come until so many are, and until everything has happened. */
  readonly acknowledged: number;
  /** Objects of Stripe, each with a lane. */
  readonly lanes: number;
  readonly leaseMs: number;
}

/** Shorter forms have shorter leases, which a process that dies leaves to run out. */
const SIZES: Readonly<Record<"small" | "short" | "full", Size>> = {
  small: {
    ...{ events: 300, acknowledged: 0, kills: 4, restarts: 1, cuts: 2, bounces: 0, lanes: 50 },
    ...{ pauses: 0, pauseMs: 0, leaseMs: 5_000 },
  },
  short: {
    ...{ events: 1_500, acknowledged: 0, kills: 12, restarts: 2, cuts: 4, bounces: 2, lanes: 50 },
    // Longer than the server lets an open transaction be idle: it holds the rows that all effects write.
    ...{ pauses: 1, pauseMs: 25_000, leaseMs: 5_000 },
  },
  full: {
    ...{ events: 100_000, acknowledged: 10_000, kills: 300, restarts: 20, cuts: 40, bounces: 20, lanes: 1_000 },
    ...{ pauses: 2, pauseMs: 70_000, leaseMs: LEASE_MS },
  },
};

export const postgres: Programme = {
  name: "postgres",
  what: "6 processes on one Postgres inbox keep order and do nothing twice, through kills, stops, deadlocks, lost connections and crashes of the server",
  hasSmallForm: true,
  async run(terms): Promise<Proof> {
    const size = sizeOf(terms, SIZES);
    const { say } = terms;
    const server = await startPostgres({ settings: SERVER });
    try {
      const load = await underLoad(server.url, Math.ceil(size.events / EVENTS_OF_A_MESSAGE));
      say(`load    ${JSON.stringify(load)}`);
      const crashes = await behindPooler({ server, ...size, say });
      say(`crashes ${JSON.stringify({ ...crashes, breaches: breachCounts(crashes.breaches) })}`);
      const problems = [...problemsOfLoad(load), ...problemsOfCrashes(crashes, size)];
      return { count: load.sent + crashes.acknowledged, unit: "events", problems };
    } finally {
      await server.stop();
    }
  },
};

function problemsOfLoad({ verdict, putOff, handled, sent, duplicates, answers }: LoadReport): string[] {
  const problems = flawsOf("load", verdict);
  if (putOff.events === 0) problems.push("load: no process met an event of a source that it lacks");
  if (putOff.attempts > 0) problems.push(`load: ${putOff.attempts} attempts by processes that lack the source`);
  if (handled !== sent) problems.push(`load: ${handled} of ${sent} handled`);
  if (duplicates !== answers.duplicate) problems.push(`load: ${duplicates} duplicates counted`);
  return problems;
}

function problemsOfCrashes(crashes: CrashReport, { bounces, pauses }: Blows): string[] {
  const { acknowledged, deadlocks, cutTransactions, pooled, late } = crashes;
  const takenOver = crashes.pauses.filter(({ takenOver }) => takenOver > 0).length;
  const shown = {
    [`only ${late.billing[0]} of Stripe's events were late`]: late.billing[0] > 0,
    [`the server found ${deadlocks} deadlocks`]: deadlocks > 0,
    [`${cutTransactions} transactions ended with their connections`]: cutTransactions > 0,
    [`${takenOver} of ${pauses} processes that stood still lost an event to another`]: takenOver === pauses,
    [`${pooled} of ${acknowledged} effects went through the pooler`]:
      bounces === 0 || noPgBouncer !== null || pooled > acknowledged / 10,
  };
  return [
    ...flawsOf("crashes", crashes.verdict),
    ...crashes.strange.slice(0, 5).map((answer) => `crashes: a delivery was answered with ${answer}`),
    ...breachLines(crashes.breaches).map((breach) => `crashes: ${breach}`),
    ...missingFrom(shown).map((sight) => `crashes show too little: ${sight}`),
  ];
}

function flawsOf(part: string, verdict: Verdict): string[] {
  return Object.entries(verdict).flatMap(([name, found]) =>
    found === FLAWLESS[name as keyof Verdict] ? [] : [`${part}: ${name} ${found}`],
  );
}

interface LoadReport {
  readonly seed: number;
  readonly seconds: number;
  /** Events, without their repeats. */
  readonly sent: number;
  readonly answers: Answers;
  readonly handled: number;
  /** Of the effects, those of a replay. */
  readonly replayed: number;
  readonly retried: number;
  readonly duplicates: number;
  /** How often a process that lacks a source left an event to the others, and how many attempts that cost. */
  readonly putOff: PutOff["counts"];
  /** Of the old events, those that pruning has left. */
  readonly oldLeft: number;
  /** How many each process handled. */
  readonly byProcess: readonly number[];
  readonly verdict: Verdict;
}

/** Shuffled, repeated deliveries to processes, while handlers fail, pruning runs and processes beat. */
function underLoad(url: string, messages: number): Promise<LoadReport> {
  return withFamily(async (family) => {
    const { place } = family;
    await fillWithOld(place, OLD);
    const pushes = Array.from({ length: messages }, (_, index) => [pushOf(`push-${index}`)]);
    await storeUnhandled(family, pushes.slice(0, EARLY).flat());
    const wish: Partial<Description> = {
      ...{ seed: SEED, failures: 0.05, gapWaitMs: HOUR_MS, receiver: { leaseMs: LEASE_MS }, upkeep: "beats" },
      store: { maxConnections: 5 },
    };
    // The first one lacks a source, and meets its events alone.
    await family.add({ ...wish, sources: ["messages"], upkeep: "prunes" });
    await leftAlone(family, EARLY);
    const both: Partial<Description> = { ...wish, sources: ["messages", "code"] };
    await Promise.all(
      Array.from({ length: PROCESSES - 1 }, (_, at) => family.add(at === 0 ? { ...both, upkeep: "prunes" } : both)),
    );
    const startedAt = performance.now();
    const signed = (messageId: string, ending?: "failed") => message(messageId, ending).map((each) => deliveryOf(each));
    const fresh = Array.from({ length: messages }, (_, index) =>
      signed(`m-${index}`, index % 10 === 3 ? "failed" : undefined),
    );
    // Lanes that go on while pruning takes them away.
    const old = Array.from({ length: OLD / 2 }, (_, index) => signed(`gap-old-${2 * index}`).slice(1));
    const all = fresh.flatMap((events, index) => (old[index] === undefined ? [events] : [events, old[index]]));
    const ended = await Promise.all([
      send(spread(all, family.children, SEED)),
      send(spread(pushes, family.having("code"), SEED)),
    ]);
    const putOff = new PutOff(family);
    await putOff.during(family.settled(HOUR_MS));
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    const oldLeft = `select count(*) from {event} where accepted < ${Date.now() - 30 * DAY_MS}`;
    // Pruning waits for newer timestamps, and leaves what others hold for the next time.
    for (let look = 0; look < 100 && (await family.number(oldLeft)) > 0; look++) await sleep(20);
    await family.stop();
    const sum = (name: keyof Answers) => ended.reduce((total, answers) => total + answers[name], 0);
    const { effects } = await family.look.contents();
    const byProcess = summed(effects.map(({ pid }) => ({ [pid]: 1 })));
    const tally = (name: string) => family.number(`select sum(${name}) from {tally}`);
    return {
      ...{ seed: SEED, seconds, sent: all.flat().length + pushes.length, putOff: putOff.counts },
      answers: {
        ...{ accepted: sum("accepted"), duplicate: sum("duplicate"), late: sum("late"), repeated: sum("repeated") },
      },
      handled: new Set(effects.map(({ identity }) => identity)).size,
      replayed: effects.filter(({ replay }) => replay).length,
      ...{ retried: await tally("retried"), duplicates: await tally("duplicates") },
      oldLeft: await family.number(oldLeft),
      byProcess: Object.values(byProcess).toSorted((a, b) => a - b),
      verdict: await family.verdict({ replayed: putOff.replayed }),
    };
  }, url);
}

/** By a receiver that ends before it handles them. */
async function storeUnhandled({ place }: Family, deliveries: readonly Delivery[]): Promise<void> {
  const { receiver } = receive({ place, sources: ["code"] });
  for (const delivery of deliveries) await receiver.source("code").handle(incomingOf(requestOf(delivery)));
  await receiver.stop();
}

/** Gives the process that runs alone time to meet so many events, and to leave them. */
async function leftAlone({ look }: Family, events: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  const sql = `select count(*) from {lane} where status = ${STATUS.backoff}`;
  while ((await look.number(sql)) < events && performance.now() < deadline) await sleep(20);
}

/**
 * An event whose source a process lacks comes again after 30 s. An operator replays it at once. On a busy machine it may have come and
 * been handled by then: the replay handles it again.
 */
class PutOff {
  /** How often an event was left to a process that has its source, and how often that cost it an attempt. */
  readonly counts = { events: 0, attempts: 0 };
  /** Identities of the events that were left, and then replayed. */
  readonly replayed: string[] = [];
  readonly #family: Family;

  constructor(family: Family) {
    this.#family = family;
  }

  async during(work: Promise<void>): Promise<void> {
    let isOver = false;
    const working = work.finally(() => {
      isOver = true;
    });
    working.catch(() => {}); // It is awaited below.
    for (; !isOver; await sleep(50)) await this.#replay();
    await working;
  }

  async #replay(): Promise<void> {
    const { place, look } = this.#family;
    const rows = await look
      .rows<{ id: string; attempts: number; ownId: Buffer }>(
        `select e.id, e.attempts, e.own_id as "ownId" from {event} e join {lane} l on l.id = e.lane
         where e.state = 0 and e.seq = 0 and l.status = ${STATUS.backoff} and l.ready_at > ${Date.now() + 5_000}`,
      )
      .catch(() => []);
    if (rows.length === 0) return;
    const runs = this.#family.runs();
    const inbox = await openInbox({ store: storeAt(place, { maxConnections: 1 }), logger: silentLogger });
    for (const { id, attempts, ownId } of rows) {
      this.counts.events += 1;
      this.counts.attempts += Math.max(0, attempts - runs.filter(({ event }) => event === Number(id)).length);
      await inbox.replay(Number(id));
      const lane = { source: "code", tenant: null, name: null, order: null };
      this.replayed.push(documentedIdentity({ lane, ownId: bytesId(ownId), sequence: 0, eventType: "" }));
    }
    await inbox.close();
  }
}

interface CrashTerms extends Size {
  readonly server: PostgresServer;
  /** Half of the processes are behind it. Null: none. */
  readonly bouncer: PgBouncer | null;
  readonly say: Terms["say"];
}

interface CrashReport extends Struck {
  readonly seed: number;
  readonly seconds: number;
  /** How often each happened. */
  readonly blows: Omit<Blows, "pauses" | "pauseMs">;
  readonly acknowledged: number;
  /** Deliveries without an answer, and those refused with 503, while something was down. */
  readonly unanswered: number;
  readonly refused: number;
  /** Other answers than 200 and 503. */
  readonly strange: readonly string[];
  /** Events that were handed out more than once. */
  readonly repeated: number;
  /** Effects of processes behind the pooler. */
  readonly pooled: number;
  readonly late: ReturnType<typeof lateBills>;
  readonly breaches: readonly Breach[];
  readonly verdict: Verdict;
}

/** Where there is a pooler and the form has time for it. */
async function behindPooler(terms: Omit<CrashTerms, "bouncer">): Promise<CrashReport> {
  if (terms.bounces === 0) return surviveCrashes({ ...terms, bouncer: null });
  if (noPgBouncer !== null) {
    terms.say(`no process is behind a pooler: ${noPgBouncer}`);
    return surviveCrashes({ ...terms, bounces: 0, bouncer: null });
  }
  const bouncer = await PgBouncer.start(terms.server.url, POOLER);
  try {
    return await surviveCrashes({ ...terms, bouncer });
  } finally {
    await bouncer.stop();
  }
}

/** Processes are killed and stopped, the server crashes and connections end, while deliveries come: what was acknowledged is done once. */
function surviveCrashes(terms: CrashTerms): Promise<CrashReport> {
  const { server, bouncer, say, kills, restarts, cuts, bounces, lanes } = terms;
  return withFamily(async (family) => {
    const startedAt = performance.now();
    await family.look.rows(
      `create table {sum} as select name, 0 as total from unnest(array['${SUMS.join("', '")}']) name`,
    );
    for (let at = 0; at < CRASHED_PROCESSES; at++) await family.add(memberAt(at, family, terms));
    const random = seededRandom(SEED + 1);
    const mixed = { seed: SEED + 1, messages: 8, pushes: true, bills: { objects: 8, lanes }, repeated: 0.2 } as const;
    const mixture = new Mixture(mixed);
    const sender = new Sender({
      ...{ parallel: SENDERS, againAfterMs: 5 },
      async next() {
        while ((await family.look.seen("select count(*) from {event} where state = 0")) > MOST_PENDING) await sleep(50);
        return mixture.next();
      },
      deliver(delivery) {
        const children = family.having(delivery.source);
        return hand(children[Math.floor(random() * children.length)], delivery);
      },
    });
    const sending = sender.run();
    sending.catch(() => {}); // It is awaited below, after the crashes.
    const nextAnswer = () => sender.more(1);
    const struck = await strikeAll({ family, server, bouncer, seed: SEED, nextAnswer, say }, terms);
    sender.finish(terms.acknowledged);
    await sending;
    const putOff = new PutOff(family);
    await putOff.during(family.settled(HOUR_MS));
    await family.stop();
    const { sent, acknowledged } = sender;
    const { effects, stored } = await family.look.contents();
    const known = { sent, acknowledged, replayed: putOff.replayed };
    return {
      ...{ seed: SEED, seconds: Math.round((performance.now() - startedAt) / 1000) },
      blows: { kills, restarts, cuts, bounces },
      ...{ acknowledged: acknowledged.size, unanswered: sender.count(0), refused: sender.count(503), ...struck },
      strange: sender.wrong([0, 200, 503]),
      repeated: stored.filter(({ attempts }) => attempts > 1).length,
      pooled: effects.filter(({ by }) => by === "pooled").length,
      late: lateBills(effects),
      breaches: breachesOf({ ...known, forged: [], effects, stored, moment: "ended", everyHandlerWrites: true }),
      verdict: await family.verdict(known),
    };
  }, server.url);
}

/** The first one lacks a source. Every second one adds in the opposite order. */
function memberAt(at: number, { place }: Family, { bouncer, leaseMs }: CrashTerms): Partial<Description> {
  const isPooled = bouncer !== null && at >= CRASHED_PROCESSES / 2;
  return {
    ...{ failures: 0.02, seed: SEED, gapWaitMs: HOUR_MS, receiver: { leaseMs }, upkeep: "beats" },
    ...{ store: { maxConnections: 5 }, adds: at % 2 === 0 ? SUMS : SUMS.toReversed() },
    ...(isPooled && { name: "pooled", place: { ...place, url: bouncer.url } as Description["place"] }),
    sources: ["messages", "billing", "held", ...(at === 0 ? [] : (["code"] as const))],
  };
}

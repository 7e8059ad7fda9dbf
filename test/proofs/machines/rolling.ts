/** A rolling upgrade under load: processes of this version on one inbox are replaced by a later one one by one, one of them back and forth. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import pg from "pg";
import { eventIdentity } from "../../../src/index.ts";
import { seededRandom, shuffled } from "../../../src/testing/index.ts";
import { Child } from "../../concurrency/family.ts";
import { message } from "../../concurrency/load.ts";
import { type Breach, breachesOf, type History } from "../history.ts";
import { contentsOn, effectTable, type PostgresPlace } from "../postgres-inbox.ts";
import { contentsOf, makeEffectTable } from "../sqlite-inbox.ts";

/** Beside this file, where it was compiled to. */
const PROGRAM = fileURLToPath(new URL("./rolling-child.js", import.meta.url));

type Version = "this" | "later";

export interface RollingOptions {
  readonly place: { readonly path: string } | PostgresPlace;
  readonly version: Version;
}

/** A line of a process about an event that is passed to its handler. */
export interface Handled {
  /** The event's message. */
  readonly handled: string;
}

/** In this order: which place gets which version, and how the process before it ends there. */
const REPLACEMENTS: readonly { readonly place: number; readonly by: Version; readonly end: "stop" | "kill" }[] = [
  { place: 0, by: "later", end: "stop" },
  { place: 1, by: "later", end: "kill" },
  { place: 1, by: "this", end: "kill" },
  { place: 1, by: "later", end: "stop" },
  { place: 2, by: "later", end: "stop" },
];
const PROCESSES = 3;
const SENDERS = 8;
/** Messages whose events are mixed. */
const MIXED = 4;
const SEED = 20_261_127;
const PATIENCE_MS = 120_000;

/** An inbox that all processes share. */
export interface RollingPlace {
  readonly options: RollingOptions["place"];
  /** Makes the table of effects. */
  prepare(): Promise<void>;
  pending(): Promise<number>;
  contents(): Promise<Pick<History, "effects" | "stored">>;
}

export interface RollingOutcome {
  readonly acknowledged: number;
  /** Deliveries to a process that was killed. */
  readonly unanswered: number;
  /** By what they were answered with. */
  readonly refused: Readonly<Record<string, number>>;
  /** Events that were passed to the handlers of each version. */
  readonly handledBy: Readonly<Record<Version, number>>;
  /** Messages whose events both versions handled. */
  readonly crossed: number;
  readonly breaches: readonly Breach[];
}

export function rollingOnPostgres(url: string): RollingPlace {
  const schema = `rolling_${process.pid}`;
  const sql = async (text: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return client.query(text).finally(() => client.end());
  };
  return {
    options: { url, schema },
    prepare: async () => void (await sql(effectTable(schema))),
    pending: async () => Number((await sql(`select count(*) from ${schema}.event where state = 0`)).rows[0]?.count),
    contents: () => contentsOn({ url, schema }),
  };
}

export function rollingOnSqlite(folder: string): RollingPlace {
  const path = join(folder, "inbox.db");
  const use = <T>(work: (db: InstanceType<typeof Database>) => T): T => {
    const db = new Database(path);
    try {
      return work(db);
    } finally {
      db.close();
    }
  };
  const PENDING = "select count(*) from oncehook_event where state = 0";
  return {
    options: { path },
    prepare: async () => use(makeEffectTable),
    pending: async () => use((db) => Number(db.prepare(PENDING).pluck().get())),
    contents: async () => contentsOf(path),
  };
}

/** @param eventsBetween - acknowledged between two replacements */
export async function rollOver(place: RollingPlace, eventsBetween: number): Promise<RollingOutcome> {
  const deployment = new Deployment(place.options);
  try {
    await place.prepare();
    for (let at = 0; at < PROCESSES; at++) await deployment.put(at, "this");
    const load = new RollingLoad(deployment);
    const sending = load.run();
    sending.catch(() => {}); // It is awaited below.
    for (const { place: at, by, end } of REPLACEMENTS) {
      await load.more(eventsBetween);
      await deployment.replace(at, by, end);
    }
    await load.more(eventsBetween);
    load.finish();
    await sending;
    await settled(place);
    await deployment.stop();
    const { sent, acknowledged, unanswered, refused } = load;
    const { effects, stored } = await place.contents();
    const ended = { moment: "ended", everyHandlerWrites: true, forged: [], replayed: [] } as const;
    const breaches = breachesOf({ ...ended, sent, acknowledged, effects, stored });
    return { acknowledged: acknowledged.size, unanswered, refused, ...deployment.shares(), breaches };
  } finally {
    await deployment.kill();
  }
}

async function settled(place: RollingPlace): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; (await place.pending()) > 0; await sleep(50)) {
    if (performance.now() > until) return;
  }
}

/** The processes, as who deploys them and who sends to them sees them. */
class Deployment {
  readonly #place: RollingOptions["place"];
  /** Each that deliveries may go to. */
  readonly processes: Child[] = [];
  /** The messages of the events that each version handled. */
  readonly #handled: Record<Version, string[]> = { this: [], later: [] };

  constructor(place: RollingOptions["place"]) {
    this.#place = place;
  }

  async put(at: number, version: Version): Promise<void> {
    const options: RollingOptions = { place: this.#place, version };
    const child = new Child(options, PROGRAM);
    child.process.on("message", ({ handled }: Partial<Handled>) => {
      if (handled !== undefined) this.#handled[version].push(handled);
    });
    await child.ready;
    this.processes[at] = child;
  }

  /** The new one works before the old one ends. */
  async replace(at: number, version: Version, end: "stop" | "kill"): Promise<void> {
    const before = this.processes[at];
    await this.put(at, version);
    await before?.[end]();
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((child) => child.stop()));
  }

  async kill(): Promise<void> {
    await Promise.all(this.processes.map((child) => child.kill()));
  }

  shares(): Pick<RollingOutcome, "handledBy" | "crossed"> {
    const { this: own, later } = this.#handled;
    const ofOwn = new Set(own);
    const crossed = [...new Set(later)].filter((messageId) => ofOwn.has(messageId)).length;
    return { handledBy: { this: own.length, later: later.length }, crossed };
  }
}

interface Sent {
  readonly event: object;
  readonly identity: string;
}

/** Sends each event until it is acknowledged, to whichever process there is; some of them a second time. */
class RollingLoad {
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  unanswered = 0;
  readonly refused: Record<string, number> = {};
  readonly #deployment: Deployment;
  readonly #random = seededRandom(SEED);
  readonly #queue: Sent[] = [];
  #messages = 0;
  #hasEnough = false;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: SENDERS }, () => this.#send()));
  }

  finish(): void {
    this.#hasEnough = true;
  }

  /** Resolves when so many more are acknowledged. */
  async more(events: number): Promise<void> {
    const enough = this.acknowledged.size + events;
    while (this.acknowledged.size < enough) await sleep(5);
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#queue.length === 0 && this.#hasEnough) return;
      if (this.#queue.length === 0) this.#refill();
      const next = this.#queue.shift();
      if (next !== undefined) await this.#untilAcknowledged(next);
    }
  }

  #refill(): void {
    const events = Array.from({ length: MIXED }, () =>
      message(`m-${++this.#messages}`).map((event) => {
        return { event, identity: eventIdentity(event, Buffer.from(JSON.stringify(event))) };
      }),
    ).flat();
    this.sent.push(...events.map(({ identity }) => identity));
    const repeated = events.filter(() => this.#random() < 0.2);
    this.#queue.push(...shuffled([...events, ...repeated], this.#random));
  }

  async #untilAcknowledged({ event, identity }: Sent): Promise<void> {
    for (;;) {
      const { processes } = this.#deployment;
      const child = processes[Math.floor(this.#random() * processes.length)];
      const status = (await child?.deliver(event))?.status;
      if (status === 200) return void this.acknowledged.add(identity);
      if (status === 0) this.unanswered += 1;
      else this.refused[`${status}`] = (this.refused[`${status}`] ?? 0) + 1;
      await sleep(5);
    }
  }
}

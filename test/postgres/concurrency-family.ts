/** Starts processes that share a Postgres inbox, and says what became of the events, by its tables and the handlers' logs. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { identityOf } from "../../src/inbox/lane-key.ts";
import { openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { STATUS } from "../../src/stores/database.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { Child } from "../concurrency/family.ts";
import { inversionsIn, overlapsIn, type Run, runsOf } from "../concurrency/verdict.ts";
import { effectTable } from "../proofs/postgres-inbox.ts";
import type { SourceName } from "../proofs/sources.ts";

/** Compiled by the tests' global set-up; a programme runs where it stands. */
const COMPILED = import.meta.url.endsWith(".ts") ? "../../.build/test/postgres/" : "./";
const PROGRAM = fileURLToPath(new URL(`${COMPILED}concurrency-child.js`, import.meta.url));

export interface MemberOptions {
  readonly url: string;
  readonly schema: string;
  /** Where it writes the starts and ends of its handlers. */
  readonly log: string;
  readonly prunes: boolean;
  readonly sources: readonly SourceName[];
  readonly seed: number;
  /** The share of attempts that fail, 0 to 1. */
  readonly failures: number;
  readonly leaseMs: number;
  /** `url` is that of a pooler. */
  readonly isPooled: boolean;
  /** Of `SUMS`, those to which each effect adds one, in this order. */
  readonly adds: readonly string[];
}

/** Rows that all effects write, so that they wait for each other; two orders of them make deadlocks. */
export const SUMS = ["a", "b"] as const;
/** Of the programme's own connections. */
const OWN_NAME = "programme";
const LEASE_MS = 30_000;

/** What must all be zero. */
export interface Verdict {
  /** Handled events without an effect, and events with more than one, besides that of a replay. */
  readonly effectsMissing: number;
  readonly effectsTwice: number;
  /** Events that reached a handler of another source, or other than they were sent. */
  readonly effectsWrong: number;
  /** Effects, and hand-outs, below the sequence before them in their lane (I4). */
  readonly effectInversions: number;
  readonly handOutInversions: number;
  /** Events that ended without a handler. */
  readonly unhandled: number;
  /** Handlers of one lane that ran at once (I3). */
  readonly overlaps: number;
  /** Pending events, and lanes that are not idle (I5, I10). */
  readonly pending: number;
  readonly lanesNotIdle: number;
  /** Kept counters that disagree with the rows. */
  readonly countersWrong: number;
  /** What the sums that effects add to have too much or too little. */
  readonly sumsWrong: number;
}

export const FLAWLESS: Verdict = {
  ...{ effectsMissing: 0, effectsTwice: 0, effectsWrong: 0, effectInversions: 0, handOutInversions: 0 },
  ...{ unhandled: 0, overlaps: 0, pending: 0, lanesNotIdle: 0, countersWrong: 0, sumsWrong: 0 },
};

let families = 0;

/** Processes on one schema. */
export class PostgresFamily {
  readonly url: string;
  readonly schema = `oncehook_family_${process.pid}_${++families}`;
  readonly children: Child[] = [];
  readonly logs: string[] = [];
  /** How often an event was left to a process that has its source, and how often that cost it an attempt. */
  readonly putOff = { events: 0, attempts: 0 };
  /** Identities of the events that were left, and then replayed. */
  readonly replayed: string[] = [];
  readonly #options = new Map<Child, MemberOptions>();
  readonly #stopped = new Set<Child>();
  /** Runs of handlers during which their process stood still, by `keyOf`: another one may have had their lane meanwhile. */
  readonly #stoodStill = new Set<string>();
  readonly #folder: string;
  readonly #pool: pg.Pool;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
    this.#pool = new pg.Pool({ connectionString: url, max: 2, application_name: OWN_NAME });
    // The server is restarted under it.
    this.#pool.on("error", () => {});
  }

  static async create(url: string): Promise<PostgresFamily> {
    const family = new PostgresFamily(url, await mkdtemp(join(tmpdir(), "oncehook-postgres-family-")));
    await family.#pool.query(effectTable(family.schema));
    await family.rows(`alter table {}_effect add column pid int, add column event bigint, add column wrong text,
      add column is_pooled boolean`);
    await family.rows(
      `create table {}_sum as select name, 0 as total from unnest(array['${SUMS.join("', '")}']) as name`,
    );
    return family;
  }

  async add(wish: Partial<MemberOptions> = {}): Promise<Child> {
    const log = join(this.#folder, `${this.logs.length + 1}.log`);
    this.logs.push(log);
    const { url, schema } = this;
    const options: MemberOptions = {
      ...{ url, schema, prunes: false, seed: 1, failures: 0, sources: ["messages"], leaseMs: LEASE_MS },
      ...{ isPooled: false, adds: [] },
      ...wish,
      log,
    };
    const child = new Child(options, PROGRAM);
    this.children.push(child);
    this.#options.set(child, options);
    await child.ready;
    return child;
  }

  optionsOf(child: Child): MemberOptions {
    const options = this.#options.get(child);
    if (options === undefined) throw new Error("The process is not of this family.");
    return options;
  }

  /** The processes that have this source and do not stand still. */
  having(source: SourceName): Child[] {
    return this.running.filter((child) => this.optionsOf(child).sources.includes(source));
  }

  get running(): Child[] {
    return this.children.filter((child) => !this.#stopped.has(child));
  }

  /** Kills a process, and starts another one in its place. */
  async replace(child: Child): Promise<void> {
    // From now on nothing is sent to it.
    this.children.splice(this.children.indexOf(child), 1);
    await child.kill();
    await this.add(this.optionsOf(child));
  }

  /** Stops a process in the middle of handlers; returns the events that they handle. */
  async stopInHandlers(child: Child): Promise<readonly number[]> {
    this.#stopped.add(child);
    const { log } = this.optionsOf(child);
    for (;;) {
      child.process.kill("SIGSTOP");
      await sleep(10);
      const open = runsOf({ logs: [log] }).filter(({ endedAt }) => endedAt === null);
      for (const run of open) this.#stoodStill.add(keyOf(run));
      if (open.length > 0) return open.map(({ event }) => event);
      child.process.kill("SIGCONT");
      await sleep(10);
    }
  }

  /** Lets a stopped process go on. */
  goOn(child: Child): void {
    child.process.kill("SIGCONT");
    this.#stopped.delete(child);
  }

  /** `{}` stands for the schema. */
  async rows<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]> {
    const { rows } = await this.#pool.query<Row>(sql.replaceAll("{}", this.schema));
    return rows;
  }

  /** The first column of the first row. */
  async number(sql: string): Promise<number> {
    const [row] = await this.rows(sql);
    return Number(Object.values(row ?? {})[0]);
  }

  /** As `number`, while the server may crash: 0 if it does not answer. */
  seen(sql: string): Promise<number> {
    return this.number(sql).catch(() => 0);
  }

  /** Ends every connection of the inbox; returns in how many of them a transaction was open. */
  cut(): Promise<number> {
    return this.seen(`with cut as materialized (select pg_terminate_backend(pid) as is_cut, xact_start from pg_stat_activity
        where backend_type = 'client backend' and application_name <> '${OWN_NAME}')
      select count(*) from cut where is_cut and xact_start is not null`);
  }

  /** Gives the process that runs alone time to meet so many events, and to leave them. */
  async leftAlone(events: number): Promise<void> {
    const deadline = performance.now() + 10_000;
    const sql = `select count(*) from {}.lane where status = ${STATUS.backoff}`;
    while ((await this.number(sql)) < events && performance.now() < deadline) await sleep(20);
  }

  /**
   * An event whose source a process lacks comes again after 30 s. An operator replays it at once. On a busy machine it may have come and
   * been handled by then: the replay handles it again.
   */
  async replayPutOff(): Promise<void> {
    const rows = await this.rows<{ id: string; attempts: number; message: Buffer }>(
      `select e.id, e.attempts, l.message from {}.event e join {}.lane l on l.id = e.lane
       where e.state = 0 and e.seq = 0 and l.status = ${STATUS.backoff} and l.ready_at > ${Date.now() + 5_000}`,
    ).catch(() => []);
    if (rows.length === 0) return;
    const runs = runsOf(this);
    const { url, schema } = this;
    const store = postgresStore(url, { schema, listen: false, maxConnections: 1 });
    const inbox = await openInbox({ store, logger: silentLogger });
    for (const { id, attempts, message } of rows) {
      this.putOff.events += 1;
      this.putOff.attempts += Math.max(0, attempts - runs.filter(({ event }) => event === Number(id)).length);
      await inbox.replay(Number(id));
      this.replayed.push(
        identityOf({ apiClientId: "code", tag: "single", messageId: message.toString() }, 0, "", null),
      );
    }
    await inbox.close();
  }

  /** Waits until no event is pending. */
  async settled(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while ((await this.number("select count(*) from {}.event where state <> 1 and state = 0").catch(() => 1)) > 0) {
      if (performance.now() > deadline) {
        const left =
          await this.rows(`select l.id, l.status, l.ready_at, l.cursor, l.token, l.holder, l.leased, e.id as event,
          e.seq, e.attempts, e.gap_wait from {}.event e join {}.lane l on l.id = e.lane where e.state = 0 limit 5`);
        throw new Error(`Events were still pending after ${timeoutMs} ms: ${JSON.stringify(left)}`);
      }
      await this.replayPutOff();
      await sleep(50);
    }
  }

  async verdict(): Promise<Verdict> {
    const runs = runsOf(this);
    const { events, accepted, pending } = (
      await this.rows<Record<"events" | "accepted" | "pending", string>>(
        `select (select count(*) from {}.event) as events, sum(accepted) as accepted, sum(pending) as pending from {}.tally`,
      )
    )[0] ?? { events: "1", accepted: "0", pending: "0" };
    return {
      effectsMissing: await this.number(
        "select count(*) from {}.event where state = 1 and outcome = 1 and id not in (select event from {}_effect)",
      ),
      effectsTwice: await this.number("select count(*) - count(distinct (identity, replay)) from {}_effect"),
      effectsWrong: await this.number("select count(*) from {}_effect where wrong is not null"),
      effectInversions: await this.number(
        `select count(*) from (select sequence, lag(sequence) over (partition by message order by id) as earlier
         from {}_effect where not late) as effect where sequence < earlier`,
      ),
      handOutInversions: inversionsIn(runs),
      unhandled: await this.number("select count(*) from {}.event where state = 1 and outcome <> 1"),
      overlaps: overlapsIn(runs.filter((run) => !this.#stoodStill.has(keyOf(run)))),
      pending: await this.number("select count(*) from {}.event where state = 0"),
      lanesNotIdle: await this.number("select count(*) from {}.lane where status <> 0"),
      countersWrong: Number(Number(accepted) < Number(events)) + Math.abs(Number(pending)),
      sumsWrong: await this.#sumsWrong(),
    };
  }

  /** Only if there is a process that adds to them. */
  async #sumsWrong(): Promise<number> {
    const handled = await this.number(`select (select count(*) from {}.event where state = 1 and outcome = 1)
      + (select count(*) - count(distinct identity) from {}_effect)`);
    const adding = [...this.#options.values()].some(({ adds }) => adds.length > 0);
    return this.number(`select sum(abs(total - ${adding ? handled : 0})) from {}_sum`);
  }

  stop(): Promise<unknown> {
    return Promise.all(this.children.map((child) => child.stop()));
  }

  async remove(): Promise<void> {
    await Promise.all(this.children.map((child) => child.kill()));
    await this.rows("drop schema if exists {} cascade").catch(() => []);
    await this.rows("drop table if exists {}_effect, {}_sum").catch(() => []);
    await this.#pool.end();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const keyOf = ({ event, attempt }: Run) => `${event} ${attempt}`;

export async function withPostgresFamily<T>(url: string, work: (family: PostgresFamily) => Promise<T>): Promise<T> {
  const family = await PostgresFamily.create(url);
  try {
    return await work(family);
  } finally {
    await family.remove();
  }
}

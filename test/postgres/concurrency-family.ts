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
import { inversionsIn, overlapsIn, runsOf } from "../concurrency/verdict.ts";
import { effectTable } from "../prove/postgres-inbox.ts";
import type { SourceName } from "../prove/sources.ts";

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
}

/** What must all be zero. */
export interface Verdict {
  /** Handled events without an effect, and events with more than one. */
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
}

export const FLAWLESS: Verdict = {
  ...{ effectsMissing: 0, effectsTwice: 0, effectsWrong: 0, effectInversions: 0, handOutInversions: 0 },
  ...{ unhandled: 0, overlaps: 0, pending: 0, lanesNotIdle: 0, countersWrong: 0 },
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
  readonly #sources = new Map<Child, readonly SourceName[]>();
  readonly #folder: string;
  readonly #pool: pg.Pool;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
    this.#pool = new pg.Pool({ connectionString: url, max: 2 });
    // The server is restarted under it.
    this.#pool.on("error", () => {});
  }

  static async create(url: string): Promise<PostgresFamily> {
    const family = new PostgresFamily(url, await mkdtemp(join(tmpdir(), "oncehook-postgres-family-")));
    await family.#pool.query(effectTable(family.schema));
    await family.rows("alter table {}_effect add column pid int, add column event bigint, add column wrong text");
    return family;
  }

  async add(wish: Partial<MemberOptions> = {}): Promise<Child> {
    const log = join(this.#folder, `${this.logs.length + 1}.log`);
    this.logs.push(log);
    const { url, schema } = this;
    const options: MemberOptions = {
      ...{ url, schema, log, prunes: false, seed: 1, failures: 0, sources: ["messages"] },
      ...wish,
    };
    const child = new Child(options, PROGRAM);
    this.children.push(child);
    this.#sources.set(child, options.sources);
    await child.ready;
    return child;
  }

  sourcesOf(child: Child): readonly SourceName[] {
    return this.#sources.get(child) ?? [];
  }

  /** The processes that have this source. */
  having(source: SourceName): Child[] {
    return this.children.filter((child) => this.sourcesOf(child).includes(source));
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

  /** Gives the process that runs alone time to meet so many events, and to leave them. */
  async leftAlone(events: number): Promise<void> {
    const deadline = performance.now() + 10_000;
    const sql = `select count(*) from {}.lane where status = ${STATUS.backoff}`;
    while ((await this.number(sql)) < events && performance.now() < deadline) await sleep(20);
  }

  /** An event whose source a process lacks comes again after 30 s. An operator replays it at once. */
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
          await this.rows(`select l.id, l.status, l.ready_at, l.cursor, l.epoch, l.holder, l.leased, e.id as event,
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
      effectsTwice: await this.number("select count(*) - count(distinct identity) from {}_effect"),
      effectsWrong: await this.number("select count(*) from {}_effect where wrong is not null"),
      effectInversions: await this.number(
        `select count(*) from (select sequence, lag(sequence) over (partition by message order by id) as earlier
         from {}_effect where not late) as effect where sequence < earlier`,
      ),
      handOutInversions: inversionsIn(runs),
      unhandled: await this.number("select count(*) from {}.event where state = 1 and outcome <> 1"),
      overlaps: overlapsIn(runs),
      pending: await this.number("select count(*) from {}.event where state = 0"),
      lanesNotIdle: await this.number("select count(*) from {}.lane where status <> 0"),
      countersWrong: Number(Number(accepted) < Number(events)) + Math.abs(Number(pending)),
    };
  }

  stop(): Promise<unknown> {
    return Promise.all(this.children.map((child) => child.stop()));
  }

  async remove(): Promise<void> {
    await Promise.all(this.children.map((child) => child.kill()));
    await this.rows("drop schema if exists {} cascade").catch(() => []);
    await this.rows("drop table if exists {}_effect").catch(() => []);
    await this.#pool.end();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function withPostgresFamily<T>(url: string, work: (family: PostgresFamily) => Promise<T>): Promise<T> {
  const family = await PostgresFamily.create(url);
  try {
    return await work(family);
  } finally {
    await family.remove();
  }
}

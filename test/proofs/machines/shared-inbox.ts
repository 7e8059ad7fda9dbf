/** The schema that the machines of a run share, with the history beside it: waited for, and read at the end. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { STATE, STATUS, stateWord } from "../../../src/stores/database.ts";
import type { HandledRow } from "../outages/verdict.ts";
import type { HistoryRow, SkippedGap, StoredEvent } from "./verdict.ts";

let inboxes = 0;

export class SharedInbox {
  readonly url: string;
  readonly schema = `machines_${process.pid}_${++inboxes}`;
  readonly #pool: pg.Pool;

  private constructor(url: string) {
    this.url = url;
    this.#pool = new pg.Pool({ connectionString: url, max: 1 });
    // The server is restarted under it.
    this.#pool.on("error", () => {});
  }

  static async create(url: string): Promise<SharedInbox> {
    const inbox = new SharedInbox(url);
    await inbox.#pool.query(`create table ${inbox.schema}_history (id bigint generated always as identity primary key,
      message_id text, sequence int, event_type text, attempt int, machine text, late boolean)`);
    return inbox;
  }

  /** Resolves when no event is pending, or when they have not become fewer for `limitMs`. */
  async settled(limitMs: number): Promise<void> {
    let fewest = Number.POSITIVE_INFINITY;
    let since = performance.now();
    while (performance.now() - since < limitMs) {
      const pending = await this.#count(`event where state = ${STATE.pending}`);
      if (pending === 0) return;
      if (pending < fewest) since = performance.now();
      fewest = Math.min(fewest, pending);
      await sleep(50);
    }
  }

  async history(): Promise<readonly HistoryRow[]> {
    const { rows } = await this.#pool.query<HistoryRow>(`select * from ${this.schema}_history order by id`);
    return rows;
  }

  async stored(): Promise<readonly StoredEvent[]> {
    const { rows } = await this.#pool.query<HandledRow & { readonly state: number; readonly attempts: number }>(
      `select convert_from(l.message, 'UTF8') as message_id, e.seq::int as sequence, convert_from(k.name, 'UTF8') as event_type,
        e.state, e.attempts
       from ${this.schema}.event e join ${this.schema}.lane l on l.id = e.lane join ${this.schema}.kind k on k.id = e.kind`,
    );
    return rows.map((row) => ({ ...row, state: stateWord(row.state) }));
  }

  busyLanes(): Promise<number> {
    return this.#count(`lane where status <> ${STATUS.idle}`);
  }

  async gaps(): Promise<readonly SkippedGap[]> {
    const { rows } = await this.#pool.query<SkippedGap>(
      `select convert_from(l.message, 'UTF8') as message_id, g.lo::int as "from", g.hi::int as "to",
        (select min(e.accepted) from ${this.schema}.event e where e.lane = g.lane and e.seq > g.hi)::float8 as "behindAt",
        g.skipped::float8 as "skippedAt"
       from ${this.schema}.gap g join ${this.schema}.lane l on l.id = g.lane`,
    );
    return rows;
  }

  async remove(): Promise<void> {
    await this.#pool.query(`drop schema if exists ${this.schema} cascade`);
    await this.#pool.query(`drop table ${this.schema}_history`);
    await this.#pool.end();
  }

  async #count(rest: string): Promise<number> {
    const { rows } = await this.#pool.query<{ readonly count: string }>(`select count(*) from ${this.schema}.${rest}`);
    return Number(rows[0]?.count);
  }
}

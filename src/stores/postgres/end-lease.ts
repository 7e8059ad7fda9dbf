/**
 * The common end of a lease with effects: one statement that decides by itself, or fails so that the rules must decide. It is prepared by
 * SQL and executed by name within texts, so that one message carries several statements.
 */
import { FRESH_MS } from "../../inbox/gap.ts";
import { isShared } from "../../inbox/lane-key.ts";
import type { Settle } from "../../inbox/store.ts";
import { KEEP, ORDER, OUTCOME, STATE, STATUS } from "../database.ts";
import { RESTORE } from "./effect-connection.ts";
import { sqlState } from "./failures.ts";
import type { Holder } from "./open.ts";
import { ANSWER_MS, type PgAccess, type PgClient, type PgResult, SET_OURS } from "./session.ts";

export type Completion = Extract<Settle<PgClient>, { kind: "complete" }>;

/** A statement of its own, so that the next one sees what others did to the lane. */
const LOCK = "select 1 from {}.lane where id = $1::bigint for update";

/** Late as `isLate()` says: by position, what lies below the cursor. */
const waiting = (isLate: string) => `select e.seq, ${isLate} as is_late, e.forced, e.gap_wait, e.accepted
  from {}.event e where e.lane = $1::bigint and e.id <> $3::bigint`;
const CURSOR = `coalesce((select cursor from {}.lane where id = $1::bigint), ${Number.MIN_SAFE_INTEGER})`;

/**
 * The next event of a lane, by the order of `LaneRules`. `state + 0`, so that it is not found by the index of all open events: for one lane
 * that would read them all.
 */
const NEXT = `${waiting("e.late")} and e.state + 0 = ${STATE.pending} order by is_late, e.seq, e.id limit 1`;
const ofShared = (condition: string) =>
  `${waiting(`(e.late or not e.forced and e.seq < ${CURSOR})`)} and e.shared and e.state + 0 = ${STATE.pending} and ${condition} order by e.seq, e.id limit 1`;
/** Of a lane that may hold many events of another source, by the index of those that wait. */
const NEXT_OF_SHARED = `select * from ((${ofShared(`e.seq >= ${CURSOR}`)}) union all (${ofShared(`e.seq < ${CURSOR}`)})) both_kinds order by is_late, seq limit 1`;

/** When the text arrived, epoch milliseconds; a test's clock says `$5`. */
const AT = "coalesce($5::bigint, (extract(epoch from statement_timestamp()) * 1000)::bigint)";

/**
 * Ends the lease if the lane is idle or ready afterwards, as `LaneRules.endLease` would. It fails if the lease is lost, and where the
 * rules must look at more: a wait for a missing sequence, a hold-back, a replay. It fails in another transaction than `$7`, too. A test compares
 * what it writes with what the rules write.
 *
 * The second part reads the lane as it was before the first.
 */
const endWith = (next: string, isReady: string) => `with lane_ended as (
    update {}.lane l set status = case when n.seq is null then ${STATUS.idle} else ${STATUS.ready} end,
      ready_at = case when n.seq is null then null else least(${AT}, greatest(n.accepted, ${AT} - ${FRESH_MS})) end, gap_since = null, holder = null,
      leased = null, leased_attempts = null, leased_started = null
    from (select 1) as always left join (${next}) n on true
    where l.id = $1::bigint and l.token = $2::bigint and l.leased = $3::bigint and l.holder = $4::int and l.status + 0 = ${STATUS.leased}
      and ($7::text is null or pg_current_xact_id()::text = $7)
      and (n.seq is null or n.is_late or not n.forced and ${isReady})
    returning l.ready_at),
  event_ended as (
    update {}.event e set state = ${STATE.done}, outcome = ${OUTCOME.handled}, finished = ${AT},
      keep = case when e.has_body then ${KEEP.handled} else ${KEEP.identity} end,
      attempts = coalesce(l.leased_attempts, e.attempts),
      started = case when l.leased_attempts is null then e.started else l.leased_started end
    from {}.lane l where e.id = $3::bigint and l.id = $1::bigint and e.state + 0 = ${STATE.pending} returning 1),
  tally as (
    insert into {}.tally as t (instance, slot, pending, handled) values ($4::int, $6::smallint, -1, 1)
    on conflict (instance, slot) do update set pending = t.pending - 1, handled = t.handled + 1 returning 1)
  select ${AT} as now, (select ready_at from lane_ended) as ready_at, 1 / ((select count(*) from lane_ended) * (select count(*) from event_ended))::int as oncehook_ended`;

const END = endWith(NEXT, "n.seq <= l.cursor + 1");
const END_OF_SHARED = endWith(NEXT_OF_SHARED, `(l.ord <> ${ORDER.position} or n.gap_wait = 0)`);

/** Our settings, and the limits of a write in which other events wait behind this one. */
const SETTINGS = `select ${SET_OURS},
  set_config('lock_timeout', $1::text, true), set_config('statement_timeout', $2::text, true)`;

const OURS = { settings: SETTINGS, restore: RESTORE, lock: LOCK, end: END, end_of_shared: END_OF_SHARED };

/** How often connections may have lost what was prepared on them. */
const MOST_LOST = 3;
/** The SQLSTATE for no such prepared statement. */
const LOST = "26000";
const EXISTS = "42P05";

/** Whether the statement can end it. */
export function isCommon({ outcome }: Completion): boolean {
  return outcome === "handled";
}

/** Statements that are prepared by SQL, and executed by name within texts. */
export class Executables {
  readonly #access: PgAccess;
  /** The names that each connection has prepared. */
  readonly #prepared = new WeakMap<PgClient, Set<string>>();
  #lost = 0;

  constructor(access: PgAccess) {
    this.#access = access;
  }

  /** False behind a pooler that gives each transaction another connection, or that does not keep what was prepared by SQL. */
  get areKept(): boolean {
    return this.#access.statements.areNamed && this.#lost < MOST_LOST;
  }

  /** Prepares a statement, once for a connection. @param name - unique for its text */
  async prepare(client: PgClient, name: string, text: string): Promise<void> {
    const known = this.#prepared.get(client) ?? new Set();
    this.#prepared.set(client, known);
    if (known.has(name)) return;
    await client.query({ text: `prepare "${name}" as ${text}`, query_timeout: ANSWER_MS }).catch((error: unknown) => {
      if (sqlState(error) !== EXISTS) throw error;
    });
    known.add(name);
  }

  /** Prepares ours. */
  async prepareOurs(client: PgClient): Promise<void> {
    for (const name of Object.keys(OURS) as (keyof typeof OURS)[]) {
      const statement = this.#of(name);
      await this.prepare(client, statement.name, statement.text);
    }
  }

  /** One of ours, with its arguments, as a statement of a text. */
  execute(name: keyof typeof OURS, ...values: readonly Argument[]): string {
    return `execute "${this.#of(name).name}"${values.length > 0 ? `(${values.map(literal).join(", ")})` : ""}`;
  }

  /** Ends the lease, after what precedes it in its transaction. @param transaction - its number; null for whatever it is */
  endLease(lease: Completion["lease"], holder: Holder, transaction: string | null): string {
    const { lane, token, event, key } = lease;
    const now = holder.now === null ? null : Math.round(holder.now);
    const values = [lane, token, event, holder.instance, now, holder.slot, transaction];
    const end = this.execute(isShared(key) ? "end_of_shared" : "end", ...values);
    return `${this.execute("lock", lane)}; ${end}`;
  }

  /** To be called with the error of a text in which something was executed. */
  failed(client: PgClient, error: unknown): void {
    if (sqlState(error) !== LOST) return;
    this.#lost++;
    this.#prepared.delete(client);
  }

  /** Its name is not one that pg prepares by itself: neither would know of the other. */
  #of(name: keyof typeof OURS): { readonly name: string; readonly text: string } {
    return this.#access.statements.named(`executed ${name}`, OURS[name]);
  }
}

type Argument = string | number | null | readonly string[];

function literal(value: Argument): string {
  if (value === null) return "null";
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") return `array[${value.map(literal).join(", ")}]::text[]`;
  const quoted = `'${value.replaceAll("'", "''")}'`;
  return value.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** From the results of its text: when the end of a lease was written, and since when its lane is ready again, if it is. */
export function endOf(results: unknown): { readonly at: number; readonly readyAt: number | null } {
  const rows = (results as readonly PgResult[]).flatMap((result) => result.rows);
  const { now, ready_at } = rows.find((row) => "oncehook_ended" in row) ?? {};
  return { at: Number(now), readyAt: ready_at == null ? null : Number(ready_at) };
}

/** The processes that work on the inbox: their rows, what they count, and how many transactions of a kind each runs at once. */
import type { Tally } from "../../inbox/lane-state.ts";
import type { Heartbeat, InboxStats, InstanceRecord } from "../../inbox/record.ts";
import type { InstanceIdentity } from "../../inbox/store.ts";
import { processRuns } from "../../internal/process.ts";
import { COUNTERS } from "../database.ts";
import { CONNECTIONS, type Session } from "./session.ts";

// What a transaction counted, for this instance's rows of counters and gauges.

type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
type Counter = keyof InboxStats["counters"];

const GAUGES = ["pending", "dead", "held", "held_bytes", "blocked"] as const satisfies readonly Gauge[];

const COLUMNS = [...GAUGES, ...Object.values(COUNTERS)];

/** The row for what runs in no slot, such as an operator's act or pruning; turns add to it too. */
export const SHARED = 0;

const NAMED = ["instance", "slot", "newest_signed", "resigned", ...COLUMNS];
/** How many parameters `TALLY` takes. */
export const TALLY_WIDTH = NAMED.length;
const TYPES = ["int", "smallint", "bigint", "boolean", ...COLUMNS.map(() => "bigint")];

/**
 * A row is locked from here to its transaction's commit. So instances have rows of their own, and within one those transactions that
 * commit at the same time, each in its slot; a row is made when it is first added to. Parameters follow `offset`.
 */
export const TALLY = (offset: number): string =>
  `insert into {}.tally as t (${NAMED.join(", ")}) values (${TYPES.map((type, index) => `$${offset + index + 1}::${type}`).join(", ")})
   on conflict (instance, slot) do update set ${COLUMNS.map((name) => `${name} = t.${name} + excluded.${name}`).join(", ")},
    newest_signed = greatest(t.newest_signed, excluded.newest_signed), resigned = t.resigned or excluded.resigned returning 1`;

export class TallySheet implements Tally {
  readonly #instance: number;
  readonly #slot: number;
  readonly #changes = new Map<string, number>();
  #newestSigned: number | null = null;
  #resigned = false;

  constructor(instance: number, slot: number = SHARED) {
    this.#instance = instance;
    this.#slot = slot;
  }

  get isBlank(): boolean {
    return this.#newestSigned === null && !this.#resigned && [...this.#changes.values()].every((by) => by === 0);
  }

  count(name: Counter, by = 1): void {
    this.#add(COUNTERS[name], by);
  }

  gauge(name: Gauge, by: number): void {
    this.#add(name, by);
  }

  signed(at: number): void {
    this.#newestSigned = Math.max(this.#newestSigned ?? at, at);
  }

  resigned(): void {
    this.#resigned = true;
  }

  /** For a transaction that writes nothing of lanes. */
  async write(session: Session): Promise<void> {
    if (!this.isBlank) await session.rows("tally", TALLY(0), this.values());
  }

  /** As the parameters of `TALLY`. */
  values(): unknown[] {
    const counts = COLUMNS.map((name) => this.#changes.get(name) ?? 0);
    return [this.#instance, this.#slot, this.#newestSigned, this.#resigned, ...counts];
  }

  #add(name: string, by: number): void {
    if (by !== 0) this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }
}

const SUMS = `${COLUMNS.map((name) => `sum(${name})::bigint as ${name}`).join(", ")},
  max(newest_signed) as newest_signed, bool_or(resigned) as resigned`;

/** The sums of all instances. */
export const STATS = `select ${SUMS} from {}.tally`;

/** What instances that are gone had counted goes to instance 0. Who lives all the same makes itself another row when it counts next. */
const FOLD = `with gone as (
    delete from {}.tally where instance <> 0 and instance not in (select id from {}.instance) returning *)
  update {}.tally t set ${COLUMNS.map((name) => `${name} = t.${name} + g.${name}`).join(", ")},
    newest_signed = greatest(t.newest_signed, g.newest_signed), resigned = t.resigned or g.resigned
  from (select ${SUMS} from gone having count(*) > 0) g where t.instance = 0`;

export type StatsRow = Readonly<Record<Gauge | (typeof COUNTERS)[Counter], number>> & {
  readonly newest_signed: number | null;
  readonly resigned: boolean;
};

export function countersOf(row: StatsRow): InboxStats["counters"] {
  const entries = Object.entries(COUNTERS).map(([name, column]) => [name, row[column]]);
  return Object.fromEntries(entries) as InboxStats["counters"];
}

// How many transactions of a kind run at once, and which row of the instance's counters each of them adds to.

/** Completions with effects, so that their commits share the server's syncs. */
const MOST = 8;
/** A turn, and the one that the core may run beside it. */
const OF_TURNS = [SHARED, MOST + 1];
/** Connections of the pool that are left to a turn and to listening, or effects that hang would hold up deliveries. */
const LEFT = 2;

export class Slots {
  readonly #free: number[];
  readonly #waiting: ((slot: number | null) => void)[] = [];
  #isClosed = false;

  private constructor(rows: readonly number[]) {
    this.#free = [...rows];
  }

  static ofTurns(): Slots {
    return new Slots(OF_TURNS);
  }

  /** @param connections - of the pool; a small one runs effects in turn */
  static ofCompletions(connections = CONNECTIONS): Slots {
    const count = Math.min(Math.max(1, connections - LEFT), MOST);
    return new Slots(Array.from({ length: count }, (_, index) => 1 + index));
  }

  /** Runs `work` once a slot is free; who asked first is first. Null when they were closed before. */
  async use<T>(work: (slot: number) => Promise<T>): Promise<T | null> {
    if (this.#isClosed) return null;
    const slot = this.#free.pop() ?? (await new Promise<number | null>((resolve) => this.#waiting.push(resolve)));
    if (slot === null) return null;
    try {
      return await work(slot);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(slot);
      else next(slot);
    }
  }

  /** What runs goes on; nothing new begins. */
  close(): void {
    this.#isClosed = true;
    for (const refuse of this.#waiting.splice(0)) refuse(null);
  }
}

// The processes that work on the inbox, and the leases of those that are gone.

interface InstanceRow {
  readonly id: number;
  readonly name: string;
  readonly pid: number;
  readonly pid_started: string;
}

const OF_HOST = "select id, name, pid, pid_started from {}.instance where host = $1::text for update";
const REMOVE = "delete from {}.instance where id = any($1::int[])";
/** One opening at a time: another that had not yet committed would look like nobody, and lose the leases that it takes next. */
const ALONE = "select pg_advisory_xact_lock(hashtext('oncehook open {}'))";
/** Whoever held these leases has closed the inbox or died, and can settle nothing any more. */
const EXPIRE = `update {}.lane set ready_at = least(ready_at, $1::bigint)
  where status = 2 and not exists (select 1 from {}.instance i where i.id = holder)`;
const ENTER = `insert into {}.instance (name, host, pid, pid_started, opened) values ($1::text, $2::text, $3::int, $4::text, $5::bigint) returning id`;

/** Enters this open among the instances, and expires the leases of those of this host that no longer run. */
export async function enterInstance(session: Session, instance: InstanceIdentity, now: number): Promise<number> {
  const { id, host, pid, pidStartedAt } = instance;
  await session.rows("open_alone", ALONE);
  const rows = await session.rows<InstanceRow>("instances_of_host", OF_HOST, [host]);
  // The same name again is this open itself, after a close that could not be written.
  const gone = rows.filter((row) => row.name === id || !processRuns(row.pid, row.pid_started)).map((row) => row.id);
  await removeInstances(session, gone);
  await session.rows("expire", EXPIRE, [now]);
  const [entered] = await session.rows<{ id: number }>("enter_instance", ENTER, [id, host, pid, pidStartedAt, now]);
  if (entered === undefined) throw new RangeError("The instance was not entered.");
  return entered.id;
}

/** Takes instances out; leases they still hold expire when the inbox is opened next. */
export async function removeInstances(session: Session, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await session.rows("remove_instances", REMOVE, [ids]);
  await session.rows("fold", FOLD);
}

/** A process that runs says so every ten seconds. */
const SILENT_MS = 86_400_000;
/** Not those that hold leases, which would expire at the next opening: a claim elsewhere takes them over, unless they live. */
const SILENT = `select id, host, pid, pid_started from {}.instance
  where coalesce(seen, opened) < $1::bigint and id not in (select holder from {}.lane where status = 2)`;
const REMOVE_SILENT = "delete from {}.instance where id = any($2::int[]) and coalesce(seen, opened) < $1::bigint";

/** Takes out instances that were not heard of for a day before `now`, but for processes of this machine that run. */
export async function removeSilent(session: Session, here: InstanceIdentity, now: number): Promise<void> {
  const before = now - SILENT_MS;
  const rows = await session.rows<InstanceRow & { readonly host: string }>("silent", SILENT, [before]);
  const gone = rows.filter(({ host, pid, pid_started }) => host !== here.host || !processRuns(pid, pid_started));
  if (gone.length === 0) return;
  await session.rows("open_alone", ALONE);
  await session.rows("remove_silent", REMOVE_SILENT, [before, gone.map(({ id }) => id)]);
  await session.rows("fold", FOLD);
}

const BEAT = `insert into {}.instance (id, name, host, pid, pid_started, opened, seen, keyring, counters)
  overriding system value values ($1::int, $2::text, $3::text, $4::int, $5::text, $6::bigint, $6::bigint, $7::text, $8::jsonb)
  on conflict (id) do update set seen = excluded.seen, keyring = excluded.keyring, counters = excluded.counters`;

interface Beat {
  readonly id: number;
  readonly instance: InstanceIdentity;
  readonly beat: Heartbeat;
  readonly now: number;
}

export async function beat(session: Session, { id, instance, beat, now }: Beat): Promise<void> {
  const { host, pid, pidStartedAt } = instance;
  const counters = JSON.stringify(beat.counters);
  await session.rows("beat", BEAT, [id, instance.id, host, pid, pidStartedAt, now, beat.keyringVersion, counters]);
}

const SEEN = `select name as id, host, pid, seen as "seenAt", keyring as "keyringVersion", counters
  from {}.instance i where seen is not null order by i.id`;

/** Those that ever said that they live. */
export function readInstances(session: Session): Promise<readonly InstanceRecord[]> {
  return session.rows<InstanceRecord>("instances", SEEN);
}

/** The processes that use the inbox: their rows, their counters, and how many transactions of each kind they run at once. */
import type { Tally } from "../../inbox/lane-port.ts";
import type { Heartbeat, InboxStats, InstanceRecord } from "../../inbox/record.ts";
import type { SequenceBook } from "../../inbox/sequence-rules.ts";
import type { EntryPreset, InstanceIdentity, OpenContext } from "../../inbox/store.ts";
import { checkMoved, checkPreset, entryOf, entryText, stillOpenIn } from "../../inbox/store-rules.ts";
import { processRuns } from "../../internal/process.ts";
import { COUNTERS } from "../database.ts";
import { CONNECTIONS, type PgSession } from "./session.ts";

type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
type Counter = keyof InboxStats["counters"];

const GAUGES = ["pending", "dead", "held", "held_bytes", "blocked"] as const satisfies readonly Gauge[];

const COLUMNS = [...GAUGES, ...Object.values(COUNTERS)];

/** The row for transactions without a slot, such as an operator's act or pruning; batches use it too. */
export const SHARED = 0;

const NAMED = ["instance", "slot", "newest_signed", "resigned", ...COLUMNS];
const TYPES = ["int", "smallint", "bigint", "boolean", ...COLUMNS.map(() => "bigint")];

/**
 * Adds to a row of counters, which stays locked until the commit. So each instance has rows of its own, one for each slot in which its
 * transactions commit at the same time. A row is created when it is first added to. Parameters follow `offset`.
 */
export const TALLY = (offset: number): string =>
  `insert into {}.tally as t (${NAMED.join(", ")}) values (${TYPES.map((type, index) => `$${offset + index + 1}::${type}`).join(", ")})
   on conflict (instance, slot) do update set ${COLUMNS.map((name) => `${name} = t.${name} + excluded.${name}`).join(", ")},
    newest_signed = greatest(t.newest_signed, excluded.newest_signed), resigned = t.resigned or excluded.resigned returning 1`;

/** What a transaction counted, for one of this instance's rows of counters and gauges. */
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

  /** Writes the counts, in a transaction that writes no lanes. */
  async write(session: PgSession): Promise<void> {
    if (!this.isBlank) await session.rows("tally", TALLY(0), this.values());
  }

  /** The parameters of `TALLY`. */
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

/** Moves the counts of instances that are gone to instance 0. If one is alive after all, its next count creates a new row. */
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

/** The most completions with effects at once; several, so that their commits share the server's syncs. */
const MOST = 8;
/** Rows for a batch, and for the one that the core may run in parallel. */
const OF_TURNS = [SHARED, MOST + 1];
/** Connections of the pool that are reserved for a batch and for listening; otherwise hanging effects would delay deliveries. */
const RESERVED = 2;

/** Limits how many transactions of a kind run at once, and assigns each of them a row of the instance's counters. */
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

  /** @param connections - the pool's; a small pool runs effects one after the other */
  static ofCompletions(connections = CONNECTIONS): Slots {
    const count = Math.min(Math.max(1, connections - RESERVED), MOST);
    return new Slots(Array.from({ length: count }, (_, index) => 1 + index));
  }

  /** Runs `work` once a slot is free, in the order of the calls. Null when the slots were closed before. */
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

  /** Running work continues; nothing new starts. */
  close(): void {
    this.#isClosed = true;
    for (const refuse of this.#waiting.splice(0)) refuse(null);
  }
}

interface InstanceRow {
  readonly id: number;
  readonly name: string;
  readonly pid: number;
  readonly pid_started: string;
}

const OF_HOST = "select id, name, pid, pid_started from {}.instance where host = $1::text for update";
const REMOVE = "delete from {}.instance where id = any($1::int[])";
/** One open at a time: an uncommitted one would look like a dead instance, and lose the leases that it takes next. */
const ALONE = "select pg_advisory_xact_lock(hashtext('oncehook open {}'))";
/** The holders of these leases have closed the inbox or died, and cannot settle anything any more. */
const EXPIRE = `update {}.lane set ready_at = least(ready_at, $1::bigint)
  where status = 2 and not exists (select 1 from {}.instance i where i.id = holder)`;
const ENTER = `insert into {}.instance (name, host, pid, pid_started, opened)
  values ($1::text, $2::text, $3::int, $4::text, $5::bigint) returning id`;

const MOVED = "select value from {}.meta where key = 'moved_to'";
const OTHERS = `select host, pid, pid_started as "pidStartedAt", greatest(opened, coalesce(seen, 0)) as "seenAt"
  from {}.instance where id <> $1::int`;
const MARK = `insert into {}.meta (key, value) values ('moved_to', $1::text)
  on conflict (key) do update set value = excluded.value`;
const UNMARK = "delete from {}.meta where key = 'moved_to'";

/** See `InboxStore.markMoved`. */
export async function markMovedRow(
  session: PgSession,
  to: string | null,
  { rowId, here, now }: { readonly rowId: number; readonly here: InstanceIdentity; readonly now: number },
): Promise<readonly number[]> {
  await session.rows("open_alone", ALONE);
  if (to === null) {
    await session.rows("unmark_moved", UNMARK);
    return [];
  }
  const others = stillOpenIn(await session.rows("others", OTHERS, [rowId]), here, now);
  if (others.length === 0) await session.rows("mark_moved", MARK, [to]);
  return others;
}

/**
 * Adds this instance, and expires the leases of this host's instances that no longer run.
 *
 * @throws SetupError `inbox_moved` if the inbox was marked since its rules were read
 */
export async function insertInstance(
  session: PgSession,
  { instance, movedTo }: Pick<OpenContext, "instance" | "movedTo">,
  { now, location }: { readonly now: number; readonly location: string },
): Promise<number> {
  const { id, host, pid, pidStartedAt } = instance;
  await session.rows("open_alone", ALONE);
  const [mark] = await session.rows<{ value: string }>("moved", MOVED);
  checkMoved(mark?.value, location, movedTo);
  const rows = await session.rows<InstanceRow>("instances_of_host", OF_HOST, [host]);
  // A row with the same name is this instance's own, from a close that could not be written.
  const gone = rows.filter((row) => row.name === id || !processRuns(row.pid, row.pid_started)).map((row) => row.id);
  await removeInstances(session, gone);
  await session.rows("expire", EXPIRE, [now]);
  const [entered] = await session.rows<{ id: number }>("enter_instance", ENTER, [id, host, pid, pidStartedAt, now]);
  if (entered === undefined) throw new RangeError("The row of the instance was not created.");
  return entered.id;
}

/** Removes instances. Leases that they still hold expire at the next open. */
export async function removeInstances(session: PgSession, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await session.rows("remove_instances", REMOVE, [ids]);
  await session.rows("fold", FOLD);
}

/** A running process sends a heartbeat every ten seconds. */
const SILENT_MS = 86_400_000;
/** Excludes instances with leases, which would expire at the next open: a claim elsewhere takes them over, unless the instance is alive. */
const SILENT = `select id, host, pid, pid_started from {}.instance
  where coalesce(seen, opened) < $1::bigint and id not in (select holder from {}.lane where status = 2)`;
const REMOVE_SILENT = "delete from {}.instance where id = any($2::int[]) and coalesce(seen, opened) < $1::bigint";

/** Removes instances without a heartbeat for a day before `now`, except running processes of this machine. */
export async function removeSilent(session: PgSession, here: InstanceIdentity, now: number): Promise<void> {
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

/** Records a heartbeat of the instance with this row id. */
export async function writeHeartbeat(
  session: PgSession,
  rowId: number,
  { id, host, pid, pidStartedAt }: InstanceIdentity,
  { keyringVersion, counters }: Heartbeat,
  now: number,
): Promise<void> {
  const values = [rowId, id, host, pid, pidStartedAt, now, keyringVersion, JSON.stringify(counters)];
  await session.rows("beat", BEAT, values);
}

const ENTRY = "entry:";
const RECORDED = `select substr(key, ${ENTRY.length + 1}) as name, value as text from {}.meta where key like '${ENTRY}%'`;
const RECORD = `insert into {}.meta (key, value) values ($1::text, $2::text)
  on conflict (key) do update set value = excluded.value`;

/** See `InboxStore.admit`. One at a time. */
export async function admitRows(session: PgSession, entries: readonly EntryPreset[]): Promise<readonly EntryPreset[]> {
  await session.rows("open_alone", ALONE);
  const recorded = await recordedTexts(session);
  for (const entry of entries) checkPreset(recorded.get(entry.name), entry);
  for (const entry of entries) {
    const text = entryText(entry);
    if (recorded.get(entry.name) !== text) await session.rows("record_entry", RECORD, [ENTRY + entry.name, text]);
    recorded.set(entry.name, text);
  }
  return [...recorded].sort().map(([name, text]) => entryOf(name, text));
}

async function recordedTexts(session: PgSession): Promise<Map<string, string>> {
  const rows = await session.rows<{ readonly name: string; readonly text: string }>("recorded_entries", RECORDED);
  return new Map(rows.map(({ name, text }) => [name, text]));
}

/** Reads all entries that were ever recorded. */
export async function learnEntries(session: PgSession, sequences: SequenceBook): Promise<void> {
  sequences.learn([...(await recordedTexts(session))].map(([name, text]) => entryOf(name, text)));
}

const SEEN = `select name as id, host, pid, seen as "seenAt", keyring as "keyringVersion", counters
  from {}.instance i where seen is not null order by i.id`;

/** The instances that have sent a heartbeat. */
export function readInstanceRows(session: PgSession): Promise<readonly InstanceRecord[]> {
  return session.rows<InstanceRecord>("instances", SEEN);
}

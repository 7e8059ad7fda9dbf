/** The processes that work on the inbox, and the leases of those that are gone. */
import type { Heartbeat, InstanceIdentity, InstanceRecord } from "../../inbox/store.ts";
import { processRuns } from "../../internal/process.ts";
import type { Session } from "./session.ts";
import { FOLD } from "./tally.ts";

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

export interface Beat {
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

/** The inbox in Postgres: durable, for many processes on many machines. */

import { SetupError } from "../errors.ts";
import type { InboxStore, LeaseRef, Turn, TurnResult } from "../inbox/store.ts";
import { refuseUnwaited, refuseWithoutConnection } from "../inbox/store-rules.ts";
import { refuseControl } from "./postgres/effect-connection.ts";
import { EffectSettles } from "./postgres/effects.ts";
import { FreshLanes } from "./postgres/fresh-lanes.ts";
import { markMovedRow, writeHeartbeat } from "./postgres/instances.ts";
import { nextDue, readBodies } from "./postgres/lanes.ts";
import { changeNoteRows } from "./postgres/notes.ts";
import { inboxClosed, openPgInbox, type PgInbox } from "./postgres/open.ts";
import { actOnRows } from "./postgres/operator.ts";
import { pruneRows } from "./postgres/prune.ts";
import {
  findLaneRows,
  findQuarantineRows,
  findRows,
  readAuditRows,
  readLane,
  readQuarantinedRow,
  readTallyRows,
} from "./postgres/queries.ts";
import { runBatchCarefully } from "./postgres/row-faults.ts";
import type { PgClient, PgPool } from "./postgres/session.ts";
import { type PgInboxSettings, type PostgresStoreOptions, readSettings } from "./postgres/settings.ts";
import { exportLaneRows, importLaneRows } from "./postgres/transfer.ts";

export { type PostgresSecretsOptions, postgresSecrets } from "./postgres/secrets.ts";
export type { PgClient, PgPool, PgPoolOptions, PgQuery, PgResult } from "./postgres/session.ts";
export type { PostgresStoreOptions } from "./postgres/settings.ts";

/**
 * Creates an inbox in a Postgres database, version 13 or later, with the encoding UTF8: for many processes on many machines. Needs the
 * package pg, version 8, from 8.11 on. Acknowledged events are on the server's disk, whatever its `synchronous_commit` is.
 *
 * An effect of `ctx.commit` gets the connection of the transaction in which its event is completed. It may run again when another
 * transaction conflicted or the connection broke. A transaction that it begins there, as ORMs do, becomes a savepoint. Statements that
 * would end the event's own transaction are refused before they are sent. The effects of an event have 10 s together; then they are
 * rolled back and the attempt fails (`handler_timeout`). The server ends their statements after another 10 s, unless the role has a
 * `statement_timeout` or `idle_in_transaction_session_timeout` of its own. At most 8 events are completed with effects at once, each on
 * a connection of the pool, and 2 connections stay reserved for everything else: in a smaller pool, an effect that waits delays deliveries.
 * If the connection pipelines, a batch sends its statements together and not one by one. With a connection string it does; your own pool
 * needs the option `pipeline` of pg 8.23.
 *
 * @param database - a connection string, `postgres://user:password@host:5432/database`, or your own `Pool` of pg, which you end
 *   yourself after `receiver.stop()`
 * @typeParam Client - the type of the connection that effects get: the pool's own, as an ORM needs it. With a connection string it is
 *   `PgClient`; `postgresStore<PoolClient>(url)` declares it as pg's
 * @throws SetupError `invalid_option`; opening also `missing_peer`, `incompatible_peer`, `not_durable`, `inbox_too_new`,
 *   `migration_needed`, `wrong_receiver_name`
 * @throws StoreError `store_unavailable` from every method while the server cannot be reached, is a standby, does not answer for 30 s, has
 *   no free connection for 5 s, or while the role lacks a right. `store_full` while the server has no space. Both end by themselves
 *
 * @example
 * const pool = new Pool({ connectionString: "postgres://app@db.internal/app" });
 * const receiver = createReceiver({ secrets, store: postgresStore(pool) });
 */
export function postgresStore<Client extends PgClient = PgClient>(
  database: string | PgPool<Client>,
  options: PostgresStoreOptions = {},
): InboxStore<Client> {
  // An effect runs on a connection of the given pool, which is a `Client`, or of a pool that is created from pg here.
  return createStore(readSettings(database, options)) as InboxStore<PgClient> as InboxStore<Client>;
}

interface Opened {
  readonly inbox: PgInbox;
  readonly effects: EffectSettles;
  readonly freshLanes: FreshLanes;
}

function createStore(settings: PgInboxSettings): InboxStore<PgClient> {
  let opened: Opened | null = null;
  let opening = false;
  const open = () => {
    if (opened === null) throw inboxClosed();
    return opened;
  };
  const reading = async <T>(work: (inbox: PgInbox) => Promise<T>): Promise<T> => work(open().inbox);
  return {
    capabilities: { durable: true, shared: true, transactional: true, parallelTurns: true },
    location: settings.location,
    async open(context) {
      if (opened !== null || opening) {
        throw new SetupError("already_started", "This Postgres store is open already: give each receiver its own.");
      }
      opening = true;
      try {
        const inbox = await openPgInbox(settings, context);
        opened = { inbox, effects: new EffectSettles(inbox), freshLanes: new FreshLanes(inbox) };
        return inbox.rules;
      } finally {
        opening = false;
      }
    },
    step: async (turn) => step(open(), turn),
    checkEffect(effect) {
      if (typeof effect !== "function") return refuseControl(effect.text);
      refuseUnwaited(effect, "during");
      refuseWithoutConnection(effect);
    },
    extend: (leases, leaseMs) => reading((inbox) => extend(inbox, leases, leaseMs)),
    nextDue: () =>
      reading((inbox) =>
        inbox.read(async (session) => {
          const now = await inbox.now(session);
          const soonest = await nextDue(session, now);
          // The caller will claim it next, so that look must find it.
          if (soonest === 0) inbox.cursors.expired.moveTo(0);
          return soonest !== null && inbox.wentBack(now) ? 0 : soonest;
        }),
      ),
    onWake: (listener) => opened?.inbox.wake.add(listener) ?? (() => {}),
    find: (query) => reading((inbox) => inbox.read((session) => findRows(session, query))),
    findLanes: (query) => reading((inbox) => inbox.read((session) => findLaneRows(session, query))),
    findQuarantined: (query) => reading((inbox) => inbox.read((session) => findQuarantineRows(session, query))),
    bodies: (events, maxBytes) => reading((inbox) => inbox.read((session) => readBodies(session, events, maxBytes))),
    quarantined: (id) => reading((inbox) => inbox.read((session) => readQuarantinedRow(session, id))),
    lane: (ref) => reading((inbox) => inbox.transaction((session) => readLane(session, ref))),
    act: (request, by) => reading((inbox) => actOnRows(inbox, request, by)),
    audit: (limit) => reading((inbox) => inbox.read((session) => readAuditRows(session, limit))),
    stats: () => reading((inbox) => inbox.read(readTallyRows)),
    prune: (policy) => reading((inbox) => pruneRows(inbox, policy)),
    export: (after, limit) => reading((inbox) => inbox.transaction((session) => exportLaneRows(session, after, limit))),
    import: (page) => reading((inbox) => importLaneRows(inbox, page)),
    admit: (entries) => reading((inbox) => inbox.admit(entries)),
    changeNotes: (names, change) =>
      reading((inbox) =>
        inbox.transaction(async (session) => changeNoteRows(session, await inbox.now(session), names, change)),
      ),
    markMoved: (to) =>
      reading((inbox) =>
        inbox.transaction(async (session) => {
          const here = { rowId: inbox.instance, here: inbox.context.instance, now: await inbox.now(session) };
          return markMovedRow(session, to, here);
        }),
      ),
    heartbeat: (heartbeat) =>
      reading((inbox) =>
        inbox.transaction(async (session) => {
          await writeHeartbeat(session, inbox.instance, inbox.context.instance, heartbeat, await inbox.now(session));
        }),
      ),
    async close() {
      const closing = opened;
      closing?.effects.close();
      await closing?.inbox.close();
      if (opened === closing) opened = null;
    },
  };
}

async function step(opened: Opened, turn: Turn<PgClient>): Promise<TurnResult> {
  const { inbox, freshLanes } = opened;
  return inbox.during(async () => {
    const result = (await freshLanes.run(turn)) ?? (await stepInTransactions(opened, turn));
    if (turn.accepts.length > 0 || turn.settles.length > 0) inbox.wake.tell();
    return result;
  });
}

async function stepInTransactions({ inbox, effects }: Opened, turn: Turn<PgClient>): Promise<TurnResult> {
  const answered = await effects.run(turn);
  const result = await runBatchCarefully(inbox, turn, answered);
  effects.passed(turn, answered);
  return result;
}

const EXTEND = `with wanted as (
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) with ordinality as w (lane, token, event, place)),
  held as (select l.id, w.place from {}.lane l join wanted w on w.lane = l.id
    where l.status = 2 and l.token = w.token and l.leased = w.event and l.holder = $4::int order by l.id for update of l),
  renewed as (update {}.lane set ready_at = $5::bigint where id in (select id from held))
  select place from held`;

/** Renews leases, each only while it is still held. */
function extend(inbox: PgInbox, leases: readonly LeaseRef[], leaseMs: number): Promise<readonly boolean[]> {
  return inbox.transaction(async (session) => {
    const now = await inbox.now(session);
    const rows = await session.rows<{ place: number }>("extend", EXTEND, [
      leases.map(({ lane }) => lane),
      leases.map(({ token }) => token),
      leases.map(({ event }) => event),
      inbox.instance,
      Math.round(now + leaseMs),
    ]);
    const held = new Set(rows.map(({ place }) => place));
    return leases.map((_lease, index) => held.has(index + 1));
  });
}

/** The inbox in Postgres: durable, for many processes on many machines. */
import { SetupError } from "../errors.ts";
import type { InboxStore, Turn } from "../inbox/store.ts";
import { booleanOption, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { act } from "./postgres/act.ts";
import { loadPool, type PgClient, type PgPool } from "./postgres/driver.ts";
import { nextDue } from "./postgres/due.ts";
import { EffectSettles } from "./postgres/effects.ts";
import { extend } from "./postgres/extend.ts";
import { find, findQuarantined } from "./postgres/find.ts";
import { beat } from "./postgres/instances.ts";
import { closed, type InboxSettings, type OpenInbox, openInbox } from "./postgres/open-inbox.ts";
import { prune } from "./postgres/prune.ts";
import { readLane } from "./postgres/records.ts";
import { readAudit, readStats } from "./postgres/stats.ts";
import { runTurn } from "./postgres/turn.ts";

export type { PgClient, PgPool, PgQuery, PgResult } from "./postgres/driver.ts";

export interface PostgresStoreOptions {
  /** The schema of the inbox's tables; made at the first open. Letters, digits and underscores. Default `"oncehook"`. */
  readonly schema?: string;
  /**
   * Keep one connection that is told when another process stored something (`LISTEN`). Turn it off behind a transaction pooler, or
   * with a pool of one: the inbox is then looked at every second. Default true.
   */
  readonly listen?: boolean;
  /** Prepare statements by name. Turn it off behind a transaction pooler that does not keep them. Default true. */
  readonly prepare?: boolean;
  /** Connections of the pool that is made from a connection string. 1 to 100. Default 10. */
  readonly maxConnections?: number;
}

/**
 * Makes an inbox in a Postgres database (13 or later). Needs the package pg 8.
 *
 * @param database - a connection string, or your own pool of pg, which you end yourself
 * @throws SetupError `invalid_option`; `open` also `missing_peer`, `not_durable`, `inbox_too_new`, `migration_needed`,
 *   `wrong_receiver_name`
 * @throws StoreError `store_unavailable` from every method while the server can not be reached
 */
export function postgresStore(database: string | PgPool, options: PostgresStoreOptions = {}): InboxStore<PgClient> {
  return createStore(readSettings(database, options));
}

function readSettings(database: string | PgPool, options: PostgresStoreOptions): InboxSettings {
  refuseUnknownOptions("postgresStore()", options, ["schema", "listen", "prepare", "maxConnections"]);
  const { schema = "oncehook" } = options;
  if (typeof schema !== "string" || !/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw invalidOption("schema", "must be lower case letters, digits and underscores, 41 at most", schema);
  }
  const max = numberOption("maxConnections", options.maxConnections, 10, { min: 1, max: 100, unit: "connections" });
  return {
    schema: `"${schema}"`,
    location: `${placeOf(database)}/${schema}`,
    listen:
      booleanOption("listen", options.listen, true) &&
      (typeof database === "string" ? max : (database.options?.max ?? 10)) > 1,
    prepares: booleanOption("prepare", options.prepare, true),
    async pool() {
      if (typeof database !== "string") return { pool: database, isOurs: false };
      const Pool = await loadPool();
      const settings = {
        connectionString: database,
        max,
        connectionTimeoutMillis: 10_000,
        application_name: "oncehook",
      };
      return { pool: new Pool(settings), isOurs: true };
    },
  };
}

/** Never a password. */
function placeOf(database: unknown): string {
  if (typeof database === "string" && URL.canParse(database)) {
    const { protocol, host, pathname } = new URL(database);
    if (/^postgres(?:ql)?:$/.test(protocol)) return `postgres://${host}${pathname}`;
  }
  if (typeof database === "object" && database !== null && "connect" in database) return "postgres:pool";
  throw invalidOption("database", 'must be a connection string, "postgres://host/database", or a pool of pg', database);
}

function createStore(settings: InboxSettings): InboxStore<PgClient> {
  let opened: { readonly inbox: OpenInbox; readonly effects: EffectSettles } | null = null;
  let opening = false;
  const open = () => {
    if (opened === null) throw closed();
    return opened;
  };
  const reading = async <T>(work: (inbox: OpenInbox) => Promise<T>): Promise<T> => work(open().inbox);
  return {
    capabilities: { durable: true, shared: true, transactional: true },
    location: settings.location,
    async open(context) {
      if (opened !== null || opening) {
        throw new SetupError("already_started", "This Postgres store is open already: give each receiver its own.");
      }
      opening = true;
      try {
        const inbox = await openInbox(settings, context);
        opened = { inbox, effects: new EffectSettles(inbox) };
      } finally {
        opening = false;
      }
    },
    step: async (turn) => step(open(), turn),
    extend: (leases, leaseMs) => reading((inbox) => extend(inbox, leases, leaseMs)),
    nextDue: () =>
      reading((inbox) =>
        inbox.read(async (session) => {
          const now = await inbox.now(session);
          const soonest = await nextDue(session, now);
          return soonest !== null && inbox.wentBack(now) ? 0 : soonest;
        }),
      ),
    onWake: (listener) => opened?.inbox.wake.add(listener) ?? (() => {}),
    find: (query) => reading((inbox) => inbox.read((session) => find(session, query))),
    findQuarantined: (query) => reading((inbox) => inbox.read((session) => findQuarantined(session, query))),
    lane: (ref) => reading((inbox) => inbox.transaction((session) => readLane(session, inbox.names, ref))),
    act: (request, by) => reading((inbox) => act(inbox, request, by)),
    audit: (limit) => reading((inbox) => inbox.read((session) => readAudit(session, limit))),
    stats: () => reading((inbox) => inbox.read(readStats)),
    prune: (policy) => reading((inbox) => prune(inbox, policy)),
    heartbeat: (heartbeat) =>
      reading((inbox) =>
        inbox.transaction(async (session) => {
          const { instance } = inbox.context;
          await beat(session, { id: inbox.instance, instance, beat: heartbeat, now: await inbox.now(session) });
        }),
      ),
    async close() {
      const closing = opened;
      await closing?.inbox.close();
      if (opened === closing) opened = null;
    },
  };
}

async function step(
  { inbox, effects }: { readonly inbox: OpenInbox; readonly effects: EffectSettles },
  turn: Turn<PgClient>,
) {
  return inbox.during(async () => {
    const answered = await effects.run(turn);
    await inbox.read((session) => inbox.names.enter(session, turn.accepts));
    const result = await inbox.transaction((session) => runTurn(inbox, session, turn, answered));
    effects.passed(turn);
    if (turn.accepts.length > 0 || turn.settles.length > 0) inbox.wake.tell();
    return result;
  });
}

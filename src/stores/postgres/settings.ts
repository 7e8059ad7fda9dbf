/** The options of an inbox in Postgres: checked, defaulted, and turned into its settings and pools. */
import type { SetupError } from "../../errors.ts";
import { booleanOption, invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { isUnsetInBuild } from "../../internal/process.ts";
import { CONNECT_MS, CONNECTIONS, loadPool, type PgPool, TURN_CONNECTIONS } from "./session.ts";

export interface PostgresStoreOptions {
  /**
   * The schema of the inbox's tables. It is created at the first open and may contain nothing else. Lower case letters, digits and
   * underscores, 41 at most. Default `"oncehook"`.
   */
  readonly schema?: string;
  /**
   * Keep one connection of the pool that learns at once when another process has stored something (`LISTEN`). Without it the inbox is
   * polled every second. That is also the case with a pool of one connection, and behind a transaction pooler, which is detected and logged
   * (`transaction_pooler`). Default true.
   */
  readonly listen?: boolean;
  /**
   * Prepare statements by name. Behind a pooler that does not keep them, they are sent without names, which is detected and logged
   * (`transaction_pooler`) and loses nothing. Default true.
   */
  readonly prepare?: boolean;
  /**
   * Connections of a connection string, of which 2 are reserved for batches if there are 5 or more. A pool of your own has its
   * `max`. 1 to 100. Default 10.
   */
  readonly maxConnections?: number;
}

/** A schema, and how to connect to its database. */
export interface DatabaseSettings {
  /** Names the database, without a password. */
  readonly location: string;
  /** Quoted. */
  readonly schema: string;
  /** The user's pool, or one that is created from a connection string. */
  readonly pool: () => Promise<{ readonly pool: PgPool; readonly isOurs: boolean }>;
}

/** The settings of an inbox. */
export interface PgInboxSettings extends DatabaseSettings {
  /** A separate pool for batches, on which statements are pipelined; null if batches use `pool`. */
  readonly turns: () => Promise<PgPool | null>;
  readonly listen: boolean;
  readonly prepares: boolean;
}

/**
 * A smaller pool is not divided, because listening, reading and effects need connections too. Effects get one that does not pipeline:
 * pg cannot read cursors and streams on one that does.
 */
const LEAST_DIVIDED = 5;

const OPTIONS = ["schema", "listen", "prepare", "maxConnections"];

/** @throws SetupError `invalid_option` */
export function readSettings(database: string | PgPool, options: PostgresStoreOptions): PgInboxSettings {
  refuseUnknownOptions("postgresStore()", options, OPTIONS);
  const max = numberOption("maxConnections", options.maxConnections, CONNECTIONS, {
    min: 1,
    max: 100,
    unit: "connections",
  });
  const isDivided = typeof database === "string" && max >= LEAST_DIVIDED;
  const poolMax = isDivided ? max - TURN_CONNECTIONS : max;
  const settings = readDatabase(database, { schema: options.schema, max: poolMax });
  if (typeof database !== "string" && options.maxConnections !== undefined) {
    throw invalidOption("maxConnections", "is for a connection string: a pool of your own has its max", max);
  }
  const connections = typeof database === "string" ? max : (database?.options?.max ?? CONNECTIONS);
  return {
    ...settings,
    async turns() {
      if (!isDivided) return null;
      const pool = await makePool(database, { max: TURN_CONNECTIONS, pipeline: true });
      watchIdle(pool);
      return pool;
    },
    listen: booleanOption("listen", options.listen, true) && connections > 1,
    prepares: booleanOption("prepare", options.prepare, true),
  };
}

/**
 * @param wanted - `max` is for a pool that is created from a connection string
 * @throws SetupError `invalid_option`
 */
export function readDatabase(
  database: string | PgPool,
  wanted: { readonly schema: string | undefined; readonly max: number },
): DatabaseSettings {
  const schema = schemaOption(wanted.schema);
  const place = isUnsetInBuild(database) ? UNSET : placeOf(database);
  return {
    schema: `"${schema}"`,
    location: `${place}/${schema}`,
    async pool() {
      if (place === UNSET) throw refusal(database);
      const isOurs = typeof database === "string";
      const pool = isOurs ? await makePool(database, { max: wanted.max, pipeline: false }) : database;
      watchIdle(pool);
      return { pool, isOurs };
    },
  };
}

async function makePool(
  connectionString: string,
  wanted: { readonly max: number; readonly pipeline: boolean },
): Promise<PgPool> {
  const Pool = await loadPool();
  return new Pool({
    connectionString,
    ...wanted,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    application_name: "oncehook",
  });
}

const watched = new WeakSet<PgPool>();

/** The pool emits an error when an idle connection breaks, which would end the process without a listener. */
function watchIdle(pool: PgPool): void {
  if (watched.has(pool)) return;
  watched.add(pool);
  pool.on("error", () => {});
}

/** @throws SetupError `invalid_option` */
function schemaOption(schema: unknown = "oncehook"): string {
  if (typeof schema === "string" && /^(?!pg_)[a-z_][a-z0-9_]{0,40}$/.test(schema)) return schema;
  throw invalidOption("schema", 'must be lower case letters, digits and underscores, 41 at most, not "pg_…"', schema);
}

/** Replaces a connection string that `next build` does not have yet. */
const UNSET = "postgres:not set";

/** Where the database is. Never contains a password, or any part of a text that could contain one in an unexpected place. */
function placeOf(database: unknown): string {
  if (typeof database === "string") return placeOfUrl(database) ?? refuse(database);
  if (!isPool(database)) return refuse(database);
  if (database.options?.binary === true) {
    throw invalidOption("database", "must be a pool without the option binary", true);
  }
  const { connectionString, host, port, database: name } = database.options ?? {};
  if (typeof connectionString === "string") return placeOfUrl(connectionString) ?? "postgres:pool";
  if (typeof name !== "string") return "postgres:pool";
  return `postgres://${typeof host === "string" ? host : "localhost"}:${port ?? 5432}/${name}`;
}

function refuse(database: unknown): never {
  throw refusal(database);
}

function refusal(database: unknown): SetupError {
  const rule =
    'must be a connection string, "postgres://user:password@host:5432/database", with reserved characters escaped ("@" as %40, "/" as %2F), or a pool of pg';
  return invalidOption("database", rule, database);
}

/** A single connection is not a pool: it has `processID`. */
function isPool(database: unknown): database is PgPool {
  return (
    typeof database === "object" &&
    database !== null &&
    "connect" in database &&
    typeof database.connect === "function" &&
    !("processID" in database)
  );
}

/** Null for anything but such a URL. A password with an unescaped "@", "/", "?" or "#" would leak into other parts, followed by an "@". */
function placeOfUrl(text: string): string | null {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/s.exec(text) ?? [];
  if (rest === undefined || /[/?#].*@/s.test(rest)) return null;
  // As in pg, without a host the query names one, such as the directory of a socket.
  const address = `postgres://${rest.replace(/^([^/?#]*@)?(?=[/?#]|$)/, "$1localhost")}`;
  if (!URL.canParse(address)) return null;
  const { hostname, port, pathname, searchParams } = new URL(address);
  return `postgres://${searchParams.get("host") ?? hostname}:${searchParams.get("port") ?? (port || "5432")}${pathname}`;
}

/** Webhook secrets, sealed, in the inbox's Postgres database: for receivers on many machines, and for rotations. */
import { type Clock, systemClock } from "../../internal/clock.ts";
import { choiceOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { ReceiverSighting, SecretStore } from "../../sources/messaging/secret-store.ts";
import type { SecretEncoding } from "../../sources/secret.ts";
import { type SealedRow, type SealedWith, type SecretTable, sealedSecrets } from "../sealed-secrets.ts";
import { storeErrorOf } from "./failures.ts";
import { readInstanceRows } from "./instances.ts";
import { migrateTables } from "./migrate.ts";
import { checkServer, readClock } from "./open.ts";
import {
  CLOCK,
  type PgAccess,
  type PgPool,
  type PgSession,
  PgStatements,
  withSession,
  withTransaction,
} from "./session.ts";
import { type DatabaseSettings, readDatabase } from "./settings.ts";

interface PostgresSecretsSettings {
  /** The schema of the inbox that the receivers share; created if it does not exist. Default `"oncehook"`. */
  readonly schema?: string;
  /** How the texts of the secrets become keys. Default `"utf8"` (DLV-14). */
  readonly encoding?: SecretEncoding;
  /** `"check"` refuses a schema that needs a migration. Default `"auto"`. */
  readonly migrate?: "auto" | "check";
  /** For tests: the receivers' `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

/** Either a key file or your own sealing: secrets are never stored in plain text. */
export type PostgresSecretsOptions = PostgresSecretsSettings & SealedWith;

const OPTIONS = ["keyFile", "sealing", "schema", "encoding", "migrate", "clock"];
/** Both kinds are read every second at the same time. */
const CONNECTIONS = 2;

const SELECT = "select revision, sealed from {}.secret where kind = $1::text";
const INSERT = `insert into {}.secret (kind, sealed, revision, changed) values ($1::text, $2::bytea, $3::bigint + 1, ${CLOCK})
  on conflict do nothing returning revision`;
const UPDATE = `update {}.secret set sealed = $2::bytea, revision = revision + 1, changed = ${CLOCK}
  where kind = $1::text and revision = $3::bigint returning revision`;

/**
 * Creates a secret store in a Postgres database, in the schema of the receivers' inbox, which is created if it does not exist. It is
 * opened at the first use. Receivers read it every second. Once closed, it stays closed. Works with the pool of the receiver's
 * `postgresStore`, also with a single connection, and behind a transaction pooler.
 *
 * @param database - a connection string, `postgres://user:password@host:5432/database`, for two connections of its own, or your own
 *   `Pool` of pg, which you end yourself after `close()`
 * @throws SetupError for a wrong option, and for a key file that others can read or that contains no key. The first use rejects with the
 *   errors of opening a `postgresStore`, each use with a StoreError `store_unavailable` while the server cannot be used, and reading with
 *   `secret_unreadable` when the secrets were sealed with another key
 *
 * @example
 * const pool = new Pool({ connectionString: "postgres://app@db.internal/app" });
 * const secrets = postgresSecrets(pool, { keyFile: "webhook.key" });
 * const receiver = createReceiver({ secrets, store: postgresStore(pool) });
 */
export function postgresSecrets(database: string | PgPool, options: PostgresSecretsOptions): SecretStore {
  refuseUnknownOptions("postgresSecrets()", options, OPTIONS);
  const settings = readDatabase(database, { schema: options.schema, max: CONNECTIONS });
  const migrate = choiceOption("migrate", options.migrate, "auto", ["auto", "check"]);
  const place = {
    location: settings.location,
    table: `${settings.schema}.secret`,
    open: () => openTable(settings, migrate, options.clock ?? systemClock),
    asStoreError: (error: unknown) => storeErrorOf(error, settings.location),
  };
  return sealedSecrets("postgresSecrets()", place, options);
}

async function openTable(settings: DatabaseSettings, migrate: "auto" | "check", clock: Clock): Promise<SecretTable> {
  const { pool, isOurs } = await settings.pool();
  const { schema, location } = settings;
  // Statements are not prepared: with a few statements a second, the problems behind poolers would not be worth it.
  const access: PgAccess = { pool, clock, schema, statements: new PgStatements(schema, false) };
  const close = async () => {
    if (isOurs) await pool.end();
  };
  try {
    await withSession(access, async ({ client }) => {
      await checkServer(client);
      await migrateTables({ client, schema, location }, migrate);
    });
    return { ...tableOf(access), close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

function tableOf(access: PgAccess): Omit<SecretTable, "close"> {
  return {
    async read(kind) {
      const [row] = await withSession(access, ({ rows }) => rows<SealedRow>("secret", SELECT, [kind]));
      return row ?? null;
    },
    async replace(kind, sealed, revision) {
      const [name, text] = revision === 0 ? ["insert_secret", INSERT] : ["update_secret", UPDATE];
      const written = await withTransaction(access, ({ rows }) => rows(name, text, [kind, sealed, revision]));
      return written.length === 1;
    },
    receivers: () => withSession(access, (session) => readSightings(session, access.clock)),
  };
}

/** Converts heartbeats from the database's clock to the caller's, because a rotation waits for those of its own last 90 s. */
async function readSightings(session: PgSession, clock: Clock): Promise<readonly ReceiverSighting[]> {
  const instances = await readInstanceRows(session);
  const aheadMs = (await readClock(session, clock)) - clock.now();
  return instances.map((instance) => ({ ...instance, seenAt: instance.seenAt - aheadMs }));
}

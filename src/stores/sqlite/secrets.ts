/** Webhook secrets in the inbox's SQLite file, sealed: for receivers of one machine, and for rotations. */
import { type Clock, systemClock } from "../../internal/clock.ts";
import { choiceOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { loadDriver, type SqliteDatabase, type SqliteDriver } from "../../internal/sqlite-driver.ts";
import type { SecretStore } from "../../sources/messaging/secret-store.ts";
import type { SecretEncoding } from "../../sources/secret.ts";
import { type SealedRow, type SealedWith, type SecretTable, sealedSecrets } from "../sealed-secrets.ts";
import { checkDurable, checkPath, openConnection, prepareFile } from "./connection.ts";
import { OpenFiles } from "./disk-space.ts";
import { asStoreError } from "./failures.ts";
import { readInstances } from "./instances.ts";
import { migrate } from "./schema.ts";
import { immediately, type Patience, untilFree } from "./transaction.ts";

interface SqliteSecretsSettings {
  /** How the service makes keys of its secrets' texts. Default `"utf8"` (DLV-14). */
  readonly encoding?: SecretEncoding;
  /** The constructor that better-sqlite3 exports. Default: loaded at the first use. */
  readonly driver?: SqliteDriver;
  /** How long another connection's lock is waited for, without blocking the event loop: 0 to 60,000 ms. Default 5,000. */
  readonly busyTimeoutMs?: number;
  /** `"check"` refuses a file that needs a migration. Default `"auto"`. */
  readonly migrate?: "auto" | "check";
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

/** Either a key file or a sealing of your own: secrets are never stored plain. */
export type SqliteSecretsOptions = SqliteSecretsSettings & SealedWith;

const OPTIONS = ["keyFile", "sealing", "encoding", "driver", "busyTimeoutMs", "migrate", "clock"];

const SELECT = "select revision, sealed from oncehook_secret where kind = ?";
const INSERT =
  "insert into oncehook_secret (sealed, changed, kind, revision) values (?, ?, ?, ? + 1) on conflict do nothing";
const UPDATE =
  "update oncehook_secret set sealed = ?, changed = ?, revision = revision + 1 where kind = ? and revision = ?";

/**
 * Makes a secret store in the SQLite file at `path`: the receivers' inbox, which is made if it is not there. It is opened at
 * the first use, on a connection of its own, and a receiver's may be open next to it. Receivers read it every second.
 * Once closed it stays closed.
 *
 * @param path - the inbox's file, in a directory that exists, on a local disk
 * @throws SetupError for a wrong option, and for a key file that others can read or that holds no key. Reading rejects with a
 *   StoreError `secret_unreadable` when the secrets were sealed with another key
 *
 * @example
 * const secrets = sqliteSecrets("inbox.db", { keyFile: "webhook.key" });
 * const receiver = createReceiver({ secrets, store: sqliteStore("inbox.db") });
 */
export function sqliteSecrets(path: string, options: SqliteSecretsOptions): SecretStore {
  const file = readSettings(path, options);
  const { location } = file.patience;
  const place = {
    location,
    table: "oncehook_secret",
    open: async () => {
      const { db, files } = await openFile(file);
      return tableOf(db, files, file.patience);
    },
    asStoreError: (error: unknown) => asStoreError(error, location),
  };
  return sealedSecrets("sqliteSecrets()", place, options);
}

/** How the file is opened. */
interface FileSettings {
  readonly path: string;
  readonly driver: SqliteDriver | undefined;
  readonly migrate: "auto" | "check";
  readonly patience: Patience;
}

function readSettings(path: string, options: SqliteSecretsOptions): FileSettings {
  refuseUnknownOptions("sqliteSecrets()", options, OPTIONS);
  const file = checkPath(path);
  return {
    path: file,
    driver: options.driver,
    migrate: choiceOption("migrate", options.migrate, "auto", ["auto", "check"]),
    patience: {
      clock: options.clock ?? systemClock,
      busyTimeoutMs: numberOption("busyTimeoutMs", options.busyTimeoutMs, 5_000, { min: 0, max: 60_000, unit: "ms" }),
      location: `sqlite:${file}`,
    },
  };
}

async function openFile(settings: FileSettings): Promise<{ readonly db: SqliteDatabase; readonly files: OpenFiles }> {
  const driver = settings.driver ?? (await loadDriver());
  const file = prepareFile(settings.path);
  return untilFree(settings.patience, () => {
    const db = openConnection(driver, file);
    try {
      immediately(db, () => migrate(db, settings.migrate));
      checkDurable(db);
      return { db, files: new OpenFiles(file) };
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

function tableOf(db: SqliteDatabase, files: OpenFiles, patience: Patience): SecretTable {
  return {
    read: (kind) =>
      // Both columns are there and of these types, because only `replace` writes them.
      untilFree(patience, () => (db.prepare(SELECT).get(kind) as SealedRow | undefined) ?? null),
    async replace(kind, sealed, revision) {
      files.check(db);
      const values = [sealed, patience.clock.now(), kind, revision];
      const sql = revision === 0 ? INSERT : UPDATE;
      const { changes } = await untilFree(patience, () => immediately(db, () => db.prepare(sql).run(...values)));
      checkDurable(db);
      return changes === 1;
    },
    receivers: () => untilFree(patience, () => readInstances(db)),
    close: async () => void db.close(),
  };
}

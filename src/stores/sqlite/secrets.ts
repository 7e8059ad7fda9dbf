/** Webhook secrets in the inbox's SQLite file, sealed: for receivers of one machine, and for whoever rotates. */
import { SetupError, StoreError } from "../../errors.ts";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { foreignLabels } from "../../internal/foreign-error.ts";
import { loadDriver } from "../../internal/load-sqlite.ts";
import { choiceOption, invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { SqliteDatabase, SqliteDriver } from "../../internal/sqlite-driver.ts";
import type { Sealing } from "../../signature/sealing.ts";
import { type SecretEncoding, secretEncodingOption, type WebhookKind } from "../../signature/secret.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  slotsFromText,
  slotsToText,
  unreadable,
} from "../../signature/secret-slots.ts";
import type { ReceiverSighting, SecretSlots, SecretStore, StoredSecrets } from "../../signature/secret-store.ts";
import { checkDurable, openConnection } from "./connection.ts";
import { asStoreError } from "./failures.ts";
import { readInstances } from "./instances.ts";
import { checkPath, prepareFile } from "./location.ts";
import { migrate } from "./migrate.ts";
import { keyFileSealing, MAKE_KEY_FILE } from "./secrets-sealing.ts";
import { immediately, type Patience, untilFree } from "./writer.ts";

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
export type SqliteSecretsOptions = SqliteSecretsSettings &
  (
    | {
        /** A file that only its owner can read, with a key of 32 bytes as 64 hex digits or base64; read at once. */
        readonly keyFile: string;
        readonly sealing?: never;
      }
    | {
        /** Seals with a key of yours, such as one in a key management service. */
        readonly sealing: Sealing;
        readonly keyFile?: never;
      }
  );

const OPTIONS = ["keyFile", "sealing", "encoding", "driver", "busyTimeoutMs", "migrate", "clock"];
const REFRESH_MS = 1_000;

const SELECT = "select revision, sealed from oncehook_secret where kind = ?";
const INSERT =
  "insert into oncehook_secret (sealed, changed, kind, revision) values (?, ?, ?, ? + 1) on conflict do nothing";
const UPDATE =
  "update oncehook_secret set sealed = ?, changed = ?, revision = revision + 1 where kind = ? and revision = ?";

/**
 * Makes a secret store in the SQLite file at `path`: the receivers' inbox, which is made if it is not there. It is opened at
 * the first use, on a connection of its own, and a receiver's may be open beside it. Receivers read it every second.
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
  return new SqliteSecrets(path, options);
}

class SqliteSecrets implements SecretStore {
  readonly refreshMs = REFRESH_MS;
  readonly encoding: SecretEncoding;
  readonly #path: string;
  readonly #driver: SqliteDriver | undefined;
  readonly #migrate: "auto" | "check";
  readonly #sealing: Sealing;
  /** What to do when something sealed does not open. */
  readonly #remedy: string;
  readonly #patience: Patience;
  /** What was opened last of each kind: sealed anew, even the same text is other bytes. */
  readonly #opened = new Map<WebhookKind, { readonly sealed: Uint8Array; readonly text: string }>();
  readonly #underWay = new Set<Promise<unknown>>();
  #opening: Promise<SqliteDatabase> | null = null;
  #closing: Promise<void> | null = null;

  constructor(path: string, options: SqliteSecretsOptions) {
    refuseUnknownOptions("sqliteSecrets()", options, OPTIONS);
    this.#path = checkPath(path);
    this.encoding = secretEncodingOption("encoding", options.encoding);
    this.#driver = options.driver;
    this.#migrate = choiceOption("migrate", options.migrate, "auto", ["auto", "check"]);
    this.#sealing = sealingOption(options);
    this.#remedy =
      options.keyFile === undefined
        ? 'Likely the key of "sealing" is another one now, or its service does not answer.'
        : 'Likely "keyFile" holds another key now: give the one they were sealed with. If it is lost, delete the rows of the table oncehook_secret and store the secrets anew.';
    this.#patience = {
      clock: options.clock ?? systemClock,
      busyTimeoutMs: numberOption("busyTimeoutMs", options.busyTimeoutMs, 5_000, { min: 0, max: 60_000, unit: "ms" }),
      location: `sqlite:${this.#path}`,
    };
  }

  read(kind: WebhookKind): Promise<StoredSecrets | null> {
    return this.#during(async (db) => {
      checkKind(kind);
      const row = await untilFree(this.#patience, () => db.prepare(SELECT).get(kind) as SecretRow | undefined);
      if (row === undefined) return null;
      const text = await this.#openOnce(row.sealed, kind);
      return {
        ...slotsFromText(text, { place: this.#patience.location, encoding: this.encoding }),
        revision: row.revision,
      };
    });
  }

  write(kind: WebhookKind, slots: SecretSlots, revision: number): Promise<boolean> {
    return this.#during(async (db) => {
      checkKind(kind);
      checkRevision(revision);
      const sealed = await this.#seal(slotsToText(checkSlots(slots, this.encoding)), kind);
      const values = [sealed, this.#patience.clock.now(), kind, revision];
      const sql = revision === 0 ? INSERT : UPDATE;
      const { changes } = await untilFree(this.#patience, () => immediately(db, () => db.prepare(sql).run(...values)));
      checkDurable(db);
      return changes === 1;
    });
  }

  receivers(): Promise<readonly ReceiverSighting[]> {
    return this.#during((db) => untilFree(this.#patience, () => readInstances(db)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
    this.#opened.clear();
    const db = await this.#opening?.catch(() => null);
    db?.close();
  }

  #during<T>(operation: (db: SqliteDatabase) => Promise<T>): Promise<T> {
    if (this.#closing !== null) {
      return Promise.reject(new StoreError("closed", "This secret store was closed; make a new one to go on."));
    }
    const running = this.#connect()
      .then(operation)
      .catch((error: unknown) => {
        throw asStoreError(error, this.#patience.location);
      });
    this.#underWay.add(running);
    const done = () => this.#underWay.delete(running);
    running.then(done, done);
    return running;
  }

  /** Opens once; a failure is forgotten, so that the next call tries again. */
  #connect(): Promise<SqliteDatabase> {
    this.#opening ??= this.#openFile().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #openFile(): Promise<SqliteDatabase> {
    const driver = this.#driver ?? (await loadDriver());
    const file = prepareFile(this.#path);
    return untilFree(this.#patience, () => {
      const db = openConnection(driver, file);
      try {
        immediately(db, () => migrate(db, this.#migrate));
        checkDurable(db);
        return db;
      } catch (error) {
        db.close();
        throw error;
      }
    });
  }

  async #seal(text: string, kind: WebhookKind): Promise<Uint8Array> {
    const sealed = await (async () => this.#sealing.seal(Buffer.from(text), contextOf(kind)))().catch((error) => {
      const message = `The secrets could not be sealed${foreignLabels(error)}, and nothing was written.`;
      throw new StoreError("store_unavailable", message);
    });
    if (sealed instanceof Uint8Array && sealed.length > 0) return sealed;
    throw new SetupError(
      "invalid_option",
      'Option "sealing": seal() must give bytes, a Uint8Array; nothing was written.',
    );
  }

  /** Receivers read each second what hardly ever changes, and each opening may be a call of a service. */
  async #openOnce(sealed: Uint8Array, kind: WebhookKind): Promise<string> {
    const known = this.#opened.get(kind);
    if (known !== undefined && Buffer.compare(known.sealed, sealed) === 0) return known.text;
    const text = await this.#open(sealed, kind);
    this.#opened.set(kind, { sealed, text });
    return text;
  }

  async #open(sealed: Uint8Array, kind: WebhookKind): Promise<string> {
    try {
      const plain = await this.#sealing.open(sealed, contextOf(kind));
      return new TextDecoder("utf-8", { fatal: true }).decode(plain);
    } catch (error) {
      const { location } = this.#patience;
      const message = `The ${kind} secrets in ${location} can not be opened${foreignLabels(error)}. ${this.#remedy}`;
      throw unreadable(message);
    }
  }
}

interface SecretRow {
  readonly revision: number;
  readonly sealed: Uint8Array;
}

function contextOf(kind: WebhookKind): string {
  return `oncehook secret ${kind}`;
}

function sealingOption({ keyFile, sealing }: SqliteSecretsOptions): Sealing {
  if ((keyFile === undefined) === (sealing === undefined)) {
    throw new SetupError(
      "invalid_option",
      `sqliteSecrets() takes either "keyFile" or "sealing", because secrets are never stored plain: ${MAKE_KEY_FILE} and pass { keyFile: "webhook.key" }.`,
    );
  }
  if (keyFile !== undefined) {
    if (typeof keyFile === "string" && keyFile !== "") return keyFileSealing(keyFile);
    throw invalidOption("keyFile", `must be the path of a file; ${MAKE_KEY_FILE}`, keyFile);
  }
  if (typeof sealing?.seal === "function" && typeof sealing.open === "function") return sealing;
  throw invalidOption("sealing", "must have the functions seal and open", sealing);
}

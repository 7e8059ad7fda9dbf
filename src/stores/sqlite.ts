/** The inbox in a SQLite file: durable, for one process or several on one machine. */
import { SetupError } from "../errors.ts";
import type { InboxStore, Turn } from "../inbox/store.ts";
import { refuseUnwaited, refuseWithoutConnection } from "../inbox/store-rules.ts";
import { functionOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { SqliteDatabase, SqliteDriver } from "../internal/sqlite-driver.ts";
import { checkPath } from "./sqlite/connection.ts";
import { refuseInEffect } from "./sqlite/effect-connection.ts";
import { beat, markMoved } from "./sqlite/instances.ts";
import { extend, SqliteLanes } from "./sqlite/lanes.ts";
import { changeNotes } from "./sqlite/notes.ts";
import { closed, type InboxSettings, type OpenInbox, openInbox } from "./sqlite/open-inbox.ts";
import { act } from "./sqlite/operator.ts";
import { prune } from "./sqlite/prune.ts";
import {
  find,
  findLanes,
  findQuarantined,
  readAudit,
  readBodies,
  readNextDue,
  readQuarantined,
  readStats,
} from "./sqlite/queries.ts";
import { exportLanes, importPage } from "./sqlite/transfer.ts";

export type { SqliteDatabase, SqliteDriver, SqliteStatement } from "../internal/sqlite-driver.ts";

export { type SqliteSecretsOptions, sqliteSecrets } from "./sqlite/secrets.ts";

export interface SqliteStoreOptions<Db extends SqliteDatabase = SqliteDatabase> {
  /**
   * Your own better-sqlite3 connection to the same file, such as your ORM's. Completions with effects run on it, in a
   * transaction of their own, and wait while it is in one of yours or you read row by row (`iterate()`); its settings are left
   * alone. Default: effects run on the inbox's connection.
   */
  readonly effects?: Db;
  /**
   * Called at each open, before anything is handled: the place for the application's own tables, which effects write to. What
   * it throws fails the open as it is (SQLite's own errors as the cause of a `StoreError`), and the next open calls it again:
   * write `create table if not exists`. It must work synchronously; a promise is refused (`invalid_option`).
   */
  readonly onOpen?: (db: Db) => unknown;
  /**
   * The constructor that better-sqlite3 exports; effects and `onOpen` then get the connection with that package's own types, as an
   * ORM needs it. Default: loaded at open; where it is not installed, Node's own SQLite.
   */
  readonly driver?: SqliteDriver<Db>;
  /** How long another connection's lock is waited for, without blocking the event loop: 0 to 60,000 ms. Default 5,000. */
  readonly busyTimeoutMs?: number;
  /** With less free space on the disk nothing is accepted (`store_full`). Bytes, 0 or more. Default 67,108,864 (64 MiB). */
  readonly minFreeBytes?: number;
  /** With more in the file nothing is accepted (`store_full`). Bytes, 1 or more. Default: no limit. */
  readonly maxDatabaseBytes?: number;
}

const YOUR_OWN = ` Or give your ORM's connection to sqliteStore() as the option "effects".`;

const OPTIONS = ["effects", "onOpen", "driver", "busyTimeoutMs", "minFreeBytes", "maxDatabaseBytes"];

/**
 * Makes an inbox in the SQLite file at `path`, which is made at open, readable by its owner only. A file that exists must belong to
 * this user or root, and nobody else may be able to write it; a link is followed. It must not be mounted by itself or have a second name
 * (hard link): the newest events are in the `-wal` next to it. What it acknowledged
 * survives a power cut: it commits with `synchronous=FULL` and checks that. Several processes of one machine can share it.
 * It warns at open if the file lies where a restart may empty it (`ephemeral_disk`), on another device than its directory
 * (`other_device`), or that others can open (`file_mode`). Needs the package better-sqlite3 12 (13 from Node 22 on),
 * or Node 22.13 or later, whose own SQLite it takes where that package is not installed.
 *
 * @param path - the file, in a directory that exists, on a local disk
 * @throws SetupError `unsafe_location` or `invalid_option`; `open` also `missing_peer`, `incompatible_peer`,
 *   `inbox_too_new`, `migration_needed`, `wrong_receiver_name`, and whatever `onOpen` throws
 *
 * @example
 * const store = sqliteStore("inbox.db");
 * console.log(store.capabilities.durable); // true
 */
export function sqliteStore<Db extends SqliteDatabase = SqliteDatabase>(
  path: string,
  options: SqliteStoreOptions<Db> = {},
): InboxStore<Db> {
  return createStore<Db>(readSettings(path, options));
}

function readSettings<Db extends SqliteDatabase>(path: string, options: SqliteStoreOptions<Db>): InboxSettings {
  refuseUnknownOptions("sqliteStore()", options, OPTIONS);
  const file = checkPath(path);
  const { MAX_SAFE_INTEGER } = Number;
  const bytes = { max: MAX_SAFE_INTEGER, unit: "bytes" };
  const { maxDatabaseBytes } = options;
  return {
    path: file,
    location: `sqlite:${file}`,
    driver: options.driver,
    effects: options.effects,
    // What effects get is a `Db`: the connection given as `effects`, or ours, which is of the default type.
    onOpen: functionOption("onOpen", options.onOpen) as InboxSettings["onOpen"],
    busyTimeoutMs: numberOption("busyTimeoutMs", options.busyTimeoutMs, 5000, { min: 0, max: 60_000, unit: "ms" }),
    minFreeBytes: numberOption("minFreeBytes", options.minFreeBytes, 64 * 1024 * 1024, { ...bytes, min: 0 }),
    maxDatabaseBytes: numberOption("maxDatabaseBytes", maxDatabaseBytes, MAX_SAFE_INTEGER, { ...bytes, min: 1 }),
  };
}

function createStore<Db extends SqliteDatabase>(settings: InboxSettings): InboxStore<Db> {
  let opened: OpenInbox | null = null;
  let opening = false;
  const inbox = (): OpenInbox => {
    if (opened === null) throw closed();
    return opened;
  };
  return {
    capabilities: { durable: true, shared: true, transactional: true },
    location: settings.location,
    async open(context) {
      if (opened !== null || opening) {
        throw new SetupError("already_started", "This SQLite store is open already: give each receiver its own.");
      }
      opening = true;
      try {
        opened = await openInbox(settings, context);
        return opened.rules;
      } finally {
        opening = false;
      }
    },
    // An effect runs on the connection given as `effects`, which is a `Db`, or on ours, which is what `Db` then stands for.
    step: async (turn) => inbox().step(turn as Turn<SqliteDatabase>),
    checkEffect(effect) {
      if (typeof effect !== "function") return refuseInEffect(effect.text);
      refuseUnwaited(effect, "never");
      if (settings.effects === undefined) refuseWithoutConnection(effect, YOUR_OWN);
    },
    extend: async (leases, leaseMs) =>
      inbox().write((work) => {
        const lanes = new SqliteLanes(work);
        return leases.map((ref) => extend(lanes, ref, leaseMs));
      }),
    nextDue: async () => readNextDue(inbox()),
    onWake: (listener) => opened?.wake.add(listener) ?? (() => {}),
    find: async (query) => find(inbox(), query),
    findLanes: async (query) => findLanes(inbox(), query),
    findQuarantined: async (query) => findQuarantined(inbox(), query),
    bodies: async (events, maxBytes) => readBodies(inbox(), events, maxBytes),
    quarantined: async (id) => readQuarantined(inbox(), id),
    lane: async (ref) => {
      const open = inbox();
      return open.during(() => open.lanes.read(ref));
    },
    act: async (request, by) => act(inbox(), request, by),
    audit: async (limit) => readAudit(inbox(), limit),
    stats: async () => readStats(inbox()),
    prune: async (policy) => prune(inbox(), policy),
    export: async (after, limit) => {
      const open = inbox();
      return open.during(() => exportLanes(open.db, after, limit));
    },
    import: async (page) => {
      const open = inbox();
      open.checkFiles();
      return open.write((work) => importPage(work, page));
    },
    admit: async (entries) => inbox().admit(entries),
    changeNotes: async (names, change) => inbox().write((work) => changeNotes(work, names, change)),
    markMoved: async (to) => {
      const open = inbox();
      open.checkFiles();
      return open.write((work) => markMoved(work, to, open.context.instance));
    },
    heartbeat: async (heartbeat) => {
      const open = inbox();
      const { instance } = open.context;
      await open.write(({ db, facts, now }) => beat(db, { holder: facts.holder, instance, beat: heartbeat, now }));
    },
    async close() {
      const open = opened;
      await open?.close();
      if (opened === open) opened = null;
    },
  };
}

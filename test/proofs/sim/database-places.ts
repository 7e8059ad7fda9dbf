/** The same on SQLite in a file, and on Postgres: their own transactions, and their own connections that break. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import type { InboxStore } from "../../../src/index.ts";
import { type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import type { SqliteDriver } from "../../../src/stores/sqlite.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import type { HandledEffect } from "../history.ts";
import { Look, rowStatement, storeAt, write } from "../inbox.ts";
import type { AskedServer } from "./pace.ts";
import type { CommitFails, Connection, Place } from "./places.ts";
import { countedPool, Unanswered } from "./unanswered.ts";

/** Whether a connection of this application works, rather than waits for another's lock. */
const WORKS = `select exists (select 1 from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()
  and state = 'active' and wait_event_type is distinct from 'Lock') as works`;

export class SqlitePlace implements Place {
  readonly #folder = mkdtempSync(join(MEMORY_DISK, "oncehook-sim-"));
  readonly #file = { path: join(this.#folder, "inbox.db") };
  readonly #stores: InboxStore<unknown>[] = [];

  connect(commitFails: CommitFails = () => false): Connection {
    const store = storeAt(this.#file, { driver: driverWith(commitFails) }) as unknown as InboxStore<unknown>;
    this.#stores.push(store);
    return { store, cut: () => store.close() };
  }

  write(tx: unknown, effect: HandledEffect): unknown {
    return write(tx, [rowStatement(this.#file, effect)]);
  }

  async effects(): Promise<readonly HandledEffect[]> {
    const look = new Look(this.#file);
    return look.effects().finally(() => look.remove());
  }

  async remove(): Promise<void> {
    await Promise.allSettled(this.#stores.map((store) => store.close()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A driver whose commits fail as on a disk with faults. */
function driverWith(commitFails: CommitFails): SqliteDriver {
  return class extends Database {
    override exec(text: string): this {
      if (text !== "commit" || !commitFails()) return super.exec(text);
      super.exec("rollback");
      throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });
    }
  };
}

export class PostgresPlace implements Place {
  readonly #schema: { readonly url: string; readonly schema: string };
  readonly #pools: pg.Pool[] = [];
  readonly #look: Look;
  readonly #ready: Promise<unknown>;
  readonly #unanswered = new Unanswered();

  constructor(url: string, schema: string) {
    this.#schema = { url, schema };
    this.#look = new Look(this.#schema);
    this.#ready = this.#look.prepare();
  }

  connect(commitFails: CommitFails = () => false): Connection {
    const { url, schema } = this.#schema;
    const pool = new pg.Pool({ connectionString: url, max: 4, application_name: schema });
    pool.on("error", () => {});
    this.#pools.push(pool);
    const sockets: { destroy(): void }[] = [];
    pool.on("connect", (client) => sockets.push(socketOf(client)));
    const counted = countedPool(pool as unknown as PgPool, this.#unanswered, (client, text) => {
      // Before it is sent, so that the server takes everything back.
      if (/\bcommit$/.test(text) && commitFails()) socketOf(client).destroy();
    });
    const store = postgresStore(counted.pool, { schema, listen: false });
    const open: typeof store.open = async (context) => {
      await this.#ready;
      return store.open(context);
    };
    return {
      store: { ...store, open } as InboxStore<unknown>,
      cut: async () => {
        counted.forget();
        for (const socket of sockets) socket.destroy();
      },
    };
  }

  readonly server: AskedServer = {
    isQuiet: () => this.#unanswered.count === 0,
    answered: () => this.#unanswered.none(),
    rests: async () => {
      const [row] = await this.#look.rows<{ readonly works: boolean }>(WORKS, this.#schema.schema);
      return row?.works === false;
    },
  };

  write(tx: unknown, effect: HandledEffect): unknown {
    return write(tx, [rowStatement(this.#schema, effect)]);
  }

  effects(): Promise<readonly HandledEffect[]> {
    return this.#look.effects();
  }

  async remove(): Promise<void> {
    await this.#look.remove();
    await Promise.allSettled(this.#pools.filter(({ ended }) => !ended).map((pool) => pool.end()));
  }
}

/** pg's own types do not tell of it. */
function socketOf(client: unknown): { destroy(): void } {
  return (client as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream;
}

/** The same on SQLite in a file, and on Postgres: their own transactions, and their own connections that break. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import type { InboxStore } from "../../../src/index.ts";
import { type PgClient, type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { type SqliteDatabase, type SqliteDriver, sqliteStore } from "../../../src/stores/sqlite.ts";
import type { HandledEffect } from "../history.ts";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import type { AskedServer } from "./pace.ts";
import type { CommitFails, Connection, Place } from "./places.ts";
import { countedPool, Unanswered } from "./unanswered.ts";

interface EffectRow extends Omit<HandledEffect, "sequence" | "late" | "replay"> {
  /** Postgres returns a text. */
  readonly sequence: number | string;
  readonly late: number | boolean;
  readonly replay: number | boolean;
}

const COLUMNS = "identity, message, sequence, attempt, late, replay, marker";
const READ = `select identity, message as "messageId", sequence, attempt, late, replay, marker from`;
/** Whether a connection of this application works, rather than waits for another's lock. */
const WORKS = `select exists (select 1 from pg_stat_activity where application_name = $1 and pid <> pg_backend_pid()
  and state = 'active' and wait_event_type is distinct from 'Lock') as works`;

export class SqlitePlace implements Place {
  readonly #folder = mkdtempSync(join(MEMORY_DISK, "oncehook-sim-"));
  readonly #path = join(this.#folder, "inbox.db");
  readonly #stores: InboxStore<SqliteDatabase>[] = [];

  connect(commitFails: CommitFails = () => false): Connection {
    const store = sqliteStore(this.#path, {
      ...{ minFreeBytes: 0, driver: driverWith(commitFails) },
      onOpen: (db) =>
        db.exec(`create table if not exists effect (id integer primary key, identity text, message text, sequence integer,
          attempt integer, late integer, replay integer, marker text)`),
    });
    this.#stores.push(store);
    return { store: store as InboxStore<unknown>, cut: () => store.close() };
  }

  write(tx: unknown, effect: HandledEffect): void {
    const { identity, messageId, sequence, attempt, late, replay, marker } = effect;
    const row = [identity, messageId, sequence, attempt, Number(late), Number(replay), marker];
    (tx as SqliteDatabase).prepare(`insert into effect (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?)`).run(...row);
  }

  async effects(): Promise<readonly HandledEffect[]> {
    const db = new Database(this.#path, { readonly: true });
    try {
      return (db.prepare(`${READ} effect order by id`).all() as EffectRow[]).map(toEffect);
    } finally {
      db.close();
    }
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
  readonly #url: string;
  readonly #schema: string;
  readonly #pools: pg.Pool[] = [];
  readonly #own: pg.Pool;
  readonly #ready: Promise<unknown>;
  readonly #unanswered = new Unanswered();

  constructor(url: string, name: string) {
    this.#url = url;
    this.#schema = name;
    this.#own = this.#pool(1);
    this.#ready = this.#own.query(`create table ${name}_effect (id bigint generated always as identity, identity text,
      message text, sequence bigint, attempt int, late boolean, replay boolean, marker text)`);
  }

  connect(commitFails: CommitFails = () => false): Connection {
    const pool = this.#pool(4);
    const sockets: { destroy(): void }[] = [];
    pool.on("connect", (client) => sockets.push(socketOf(client)));
    const counted = countedPool(pool as unknown as PgPool, this.#unanswered, (client, text) => {
      // Before it is sent, so that the server takes everything back.
      if (/\bcommit$/.test(text) && commitFails()) socketOf(client).destroy();
    });
    const store = postgresStore(counted.pool, { schema: this.#schema, listen: false });
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
      const { rows } = await this.#own.query<{ readonly works: boolean }>(WORKS, [this.#schema]);
      return rows[0]?.works === false;
    },
  };

  write(tx: unknown, effect: HandledEffect): unknown {
    const { identity, messageId, sequence, attempt, late, replay, marker } = effect;
    const row = [identity, messageId, sequence, attempt, late, replay, marker];
    return (tx as PgClient).query(
      `insert into ${this.#schema}_effect (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7)`,
      row,
    );
  }

  async effects(): Promise<readonly HandledEffect[]> {
    const { rows } = await this.#own.query<EffectRow>(`${READ} ${this.#schema}_effect order by id`);
    return rows.map(toEffect);
  }

  async remove(): Promise<void> {
    await this.#own.query(`drop schema if exists ${this.#schema} cascade; drop table ${this.#schema}_effect`);
    await Promise.allSettled(this.#pools.filter(({ ended }) => !ended).map((pool) => pool.end()));
  }

  #pool(max: number): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.#url, max, application_name: this.#schema });
    pool.on("error", () => {});
    this.#pools.push(pool);
    return pool;
  }
}

/** pg's own types do not tell of it. */
function socketOf(client: unknown): { destroy(): void } {
  return (client as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream;
}

function toEffect({ sequence, late, replay, ...effect }: EffectRow): HandledEffect {
  return { ...effect, sequence: Number(sequence), late: Boolean(late), replay: Boolean(replay) };
}

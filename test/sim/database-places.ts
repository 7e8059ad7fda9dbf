/** The same on SQLite in a file, and on Postgres: their own transactions, and their own connections that break. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import type { InboxStore } from "../../src/index.ts";
import { type PgClient, type PgPool, postgresStore } from "../../src/stores/postgres.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import type { HandledEffect } from "../prove/history.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import type { Connection, Place } from "./places.ts";

interface EffectRow extends Omit<HandledEffect, "late" | "replay"> {
  readonly late: number | boolean;
  readonly replay: number | boolean;
}

const COLUMNS = "identity, message, sequence, attempt, late, replay, marker";
const READ = `select identity, message as "messageId", sequence, attempt, late, replay, marker from`;

export class SqlitePlace implements Place {
  readonly #folder = mkdtempSync(join(MEMORY_DISK, "oncehook-sim-"));
  readonly #path = join(this.#folder, "inbox.db");
  readonly #stores: InboxStore<SqliteDatabase>[] = [];

  connect(): Connection {
    const store = sqliteStore(this.#path, {
      minFreeBytes: 0,
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

export class PostgresPlace implements Place {
  readonly #url: string;
  readonly #schema: string;
  readonly #pools: pg.Pool[] = [];
  readonly #own: pg.Pool;
  readonly #ready: Promise<unknown>;
  #underWay = 0;

  constructor(url: string, name: string) {
    this.#url = url;
    this.#schema = name;
    this.#own = this.#pool(1);
    this.#ready = this.#own.query(`create table ${name}_effect (id bigint generated always as identity, identity text,
      message text, sequence int, attempt int, late boolean, replay boolean, marker text)`);
  }

  connect(): Connection {
    const pool = this.#pool(4);
    const sockets: { destroy(): void }[] = [];
    // pg's own types do not tell of the socket.
    pool.on("connect", (client) =>
      sockets.push(
        (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream,
      ),
    );
    const store = postgresStore(pool as unknown as PgPool, { schema: this.#schema, listen: false });
    const open: typeof store.open = async (context) => {
      await this.#ready;
      return store.open(context);
    };
    const awaited = this.#awaited({ ...store, open } as InboxStore<unknown>);
    return {
      store: awaited.store,
      cut: async () => {
        awaited.forget();
        for (const socket of sockets) socket.destroy();
      },
    };
  }

  readonly isQuiet = (): boolean => this.#underWay === 0;

  /** Counts the calls that have no answer yet; those of a process that has ended get none. */
  #awaited(store: InboxStore<unknown>): { readonly store: InboxStore<unknown>; forget(): void } {
    let mine = 0;
    let isForgotten = false;
    const count = (by: number) => {
      if (isForgotten) return;
      mine += by;
      this.#underWay += by;
    };
    const counted =
      <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
      async (...args: Args): Promise<T> => {
        count(1);
        try {
          return await call(...args);
        } finally {
          count(-1);
        }
      };
    const { open, step, extend, nextDue, act, heartbeat, prune, close } = store;
    const calls = {
      ...{ open: counted(open), step: counted(step), extend: counted(extend), nextDue: counted(nextDue) },
      ...{ act: counted(act), heartbeat: counted(heartbeat), prune: counted(prune), close: counted(close) },
    };
    const forget = () => {
      count(-mine);
      isForgotten = true;
    };
    return { store: { ...store, ...calls }, forget };
  }

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
    const pool = new pg.Pool({ connectionString: this.#url, max });
    pool.on("error", () => {});
    this.#pools.push(pool);
    return pool;
  }
}

function toEffect({ late, replay, ...effect }: EffectRow): HandledEffect {
  return { ...effect, late: Boolean(late), replay: Boolean(replay) };
}

import pg from "pg";
import { describe, expect, inject, test } from "vitest";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { storeContract } from "../../src/testing/contracts/store.ts";
import type { StoreUnderTest } from "../../src/testing/contracts/store-bench.ts";
import { sized } from "../setup/form.ts";
import { instanceOf } from "../stores/sqlite-turns.ts";

/** Turns on it are sent as on a pool of the store's own; on all others of these tests, statement by statement. */
const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 8, pipeline: true });
let places = 0;

async function makeStore(): Promise<StoreUnderTest<PgClient>> {
  const schema = `oncehook_test_${process.pid}_${++places}`;
  await pool.query(`create table ${schema}_note (id int generated always as identity primary key, text text)`);
  const make = () => postgresStore(pool as never, { schema, listen: false });
  return {
    store: make(),
    reopen: async () => make(),
    instance: instanceOf,
    effects: {
      write: (tx, text) => tx.query(`insert into ${schema}_note (text) values ($1)`, [text]),
      read: async () => {
        const { rows } = await pool.query(`select text from ${schema}_note order by id`);
        return rows.map((row) => row.text);
      },
    },
    async dispose() {
      await pool.query(`drop schema if exists ${schema} cascade; drop table ${schema}_note`);
    },
  };
}

describe("postgresStore()", () => {
  storeContract({ describe, test, expect, makeStore, fastCheck: { runs: sized({ quick: 2, full: 8 }) } });
});

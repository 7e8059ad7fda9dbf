import pg from "pg";
import { afterAll, describe, expect, inject, test } from "vitest";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { storeContract } from "../../contracts/store.ts";
import type { StoreUnderTest } from "../../contracts/store-bench.ts";
import { sized } from "../../setup/form.ts";
import { instanceOf } from "../sqlite-turns.ts";

/** Turns on it are sent as on a pool of the store's own; on all others of these tests, statement by statement. */
const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 8, pipeline: true });
let places = 0;
/** Schemas whose tests have ended, and which were emptied. Making and dropping one takes as long as most of these tests. */
const empty: string[] = [];

async function makeStore(): Promise<StoreUnderTest<PgClient>> {
  const schema = empty.pop() ?? (await newPlace());
  const make = () => postgresStore(pool as never, { schema, listen: false });
  return {
    store: make(),
    reopen: async () => make(),
    instance: instanceOf,
    effects: {
      write: (tx, text) => tx.query(`insert into ${schema}_note (text) values ($1)`, [text]),
      statement: (text) => ({ text: `insert into ${schema}_note (text) values ($1) returning id`, values: [text] }),
      read: async () => {
        const { rows } = await pool.query(`select text from ${schema}_note order by id`);
        return rows.map((row) => row.text);
      },
    },
    async dispose() {
      await pool.query(emptying(schema));
      empty.push(schema);
    },
  };
}

async function newPlace(): Promise<string> {
  const schema = `oncehook_test_${process.pid}_${++places}`;
  await pool.query(`create table ${schema}_note (id int generated always as identity primary key, text text)`);
  return schema;
}

/** Leaves the tables as migrations make them. A schema that was never opened stays missing. */
function emptying(schema: string): string {
  return `do $$
    declare name text;
    begin
      truncate ${schema}_note restart identity;
      if to_regclass('${schema}.meta') is null then return; end if;
      for name in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' loop
        execute format('delete from ${schema}.%I', name);
      end loop;
      for name in select relname from pg_class where relnamespace = '${schema}'::regnamespace and relkind = 'S' loop
        perform setval(format('${schema}.%I', name), 1, false);
      end loop;
      insert into ${schema}.tally (instance) values (0);
      delete from ${schema}.meta where key not in ('schema', 'min_reader');
    end $$`;
}

afterAll(async () => {
  for (const schema of empty) await pool.query(`drop schema if exists ${schema} cascade; drop table ${schema}_note`);
});

describe("postgresStore()", () => {
  storeContract({ describe, test, expect, makeStore, fastCheck: { runs: sized({ quick: 2, full: 8 }) } });
});

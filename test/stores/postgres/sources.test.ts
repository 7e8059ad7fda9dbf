/** Every adapter with every preset, lanes by position, and processes that restart, on Postgres. */
import pg from "pg";
import { afterAll, describe, inject, onTestFinished } from "vitest";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { sourceCases } from "../../adapters/source-cases.ts";
import { restartProperty } from "../../receiver/restart-property.ts";
import { sized } from "../../setup/form.ts";
import { type Place, shuffledLanes } from "../../sources/shuffled-lanes.ts";
import { newSchema, sql } from "./place.ts";

const schema = `oncehook_sources_${process.pid}`;
const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 4 });

afterAll(async () => {
  await pool.query(`drop schema if exists ${schema} cascade`);
  await pool.end();
});

describe("on Postgres", () => sourceCases(() => postgresStore(pool as never, { schema, listen: false }) as never));

async function placeOnPostgres(): Promise<Place<PgClient>> {
  const own = newSchema();
  const table = `${own}_state`;
  await sql(`create table ${table} (object text primary key, id text)`);
  onTestFinished(() => sql(`drop table ${table}`).then(() => {}));
  const upsert = `insert into ${table} values ($1, $2) on conflict (object) do update set id = excluded.id`;
  return {
    store: postgresStore(pool as never, { schema: own, listen: false }),
    write: (ctx, object, state) => ctx.commit((client) => client.query(upsert, [object, state])),
    read: async () => new Map((await sql(`select object, id from ${table}`)).map(({ object, id }) => [object, id])),
  };
}

describe("shuffled lanes on Postgres", () => shuffledLanes(placeOnPostgres));

describe("processes that restart, on Postgres", () => {
  const makePlace = async () => {
    const own = newSchema();
    return {
      open: () => postgresStore(pool as never, { schema: own, listen: false }) as never,
      dispose: async () => {},
    };
  };
  restartProperty(makePlace, sized({ quick: 10, full: 100 }));
});

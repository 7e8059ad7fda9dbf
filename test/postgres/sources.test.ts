/** Every adapter with every preset, on Postgres. */
import pg from "pg";
import { afterAll, describe, inject } from "vitest";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sourceCases } from "../adapters/source-cases.ts";

const schema = `oncehook_sources_${process.pid}`;
const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 4 });

afterAll(async () => {
  await pool.query(`drop schema if exists ${schema} cascade`);
  await pool.end();
});

describe("on Postgres", () => sourceCases(() => postgresStore(pool as never, { schema, listen: false }) as never));

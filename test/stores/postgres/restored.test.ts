/** The inbox's tables are put back under a running receiver, as by a restore, or by a failover to a standby that lagged. */
import { describe, expect, it } from "vitest";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { makeBench } from "../../receiver/bench.ts";
import { restoredUnderHandler } from "../../support/restored.ts";
import { newPool, newSchema, sql } from "./place.ts";

/** Keeps all rows and sequences of a schema in another one. What it returns puts them back in one transaction. */
async function keep(schema: string): Promise<() => Promise<void>> {
  const kept = newSchema();
  const tables = (await sql(`select tablename as name from pg_tables where schemaname = '${schema}'`)).map(
    ({ name }) => `${name}`,
  );
  const sequences = await sql(
    `select sequencename as name, coalesce(last_value, 1) as value, last_value is not null as called
     from pg_sequences where schemaname = '${schema}'`,
  );
  await sql(
    [`create schema ${kept}`, ...tables.map((name) => `create table ${kept}.${name} as table ${schema}.${name}`)].join(
      ";",
    ),
  );
  const back = [
    ...tables.map((name) => `delete from ${schema}.${name}`),
    ...tables.map((name) => `insert into ${schema}.${name} overriding system value table ${kept}.${name}`),
    ...sequences.map(({ name, value, called }) => `select setval('${schema}.${name}', ${value}, ${called})`),
  ];
  return async () => void (await sql(`begin; ${back.join("; ")}; commit`));
}

describe("an inbox on Postgres that is restored under a running receiver", () => {
  it("loses and completes no event for another one, and takes again what its sender repeats (I2, I3)", async () => {
    const schema = newSchema();
    const bench = makeBench(postgresStore(newPool(), { schema, listen: false }));
    const begun = await restoredUnderHandler(bench, () => keep(schema));
    expect(begun.at(-1)).toBe("b");
  });
});

/** The inbox's tables are put back under a running receiver, as by a restore, or by a failover to a standby that lagged. */
import { describe, expect, it } from "vitest";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { makeBench } from "../../receiver/bench.ts";
import { restoredUnderHandler } from "../../support/restored.ts";
import { event, turn } from "../sqlite-turns.ts";
import { openAt } from "./desk.ts";
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

  it("stores under its own tenant and type what it accepts before it notices, next to another process", async () => {
    const schema = newSchema();
    const [store, other] = [await openAt(schema), await openAt(schema)];
    const accept = (through: typeof store, id: string, name: string, sequence = 1) => {
      const lane = { source: "service", tenant: `client ${name}`, name: id, order: "sequence" } as const;
      const accepts = [event(id, sequence, { lane, eventType: `message.${name}` })];
      return through.step(turn<PgClient>({ accepts }));
    };
    await accept(store, "a", "kept");
    const restore = await keep(schema);
    await accept(store, "b", "lost");
    await restore();
    await accept(other, "c", "new");
    // The first event of a message is stored by one statement, any other by a transaction.
    await accept(store, "d", "lost");
    await accept(store, "e", "lost", 2);
    const { items } = await other.find({ limit: 10, order: "oldest" });
    expect(items.map(({ lane, eventType }) => [lane.name, lane.tenant, eventType])).toEqual([
      ["a", "client kept", "message.kept"],
      ["c", "client new", "message.new"],
      ["d", "client lost", "message.lost"],
      ["e", "client lost", "message.lost"],
    ]);
  });
});

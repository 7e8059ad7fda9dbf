/** A database or role whose transactions are stricter by default than the inbox's algorithm takes for granted. */
import { describe, expect, it } from "vitest";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { newPool, newSchema } from "./place.ts";

describe.each(["repeatable read", "serializable"])("where transactions are %s by default", (isolation) => {
  const newStrictPool = () => newPool({ options: `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}` });

  it("an inbox is made by one of several processes that open it at once", async () => {
    const schema = newSchema();
    const stores = [1, 2, 3, 4].map(() => postgresStore(newStrictPool(), { schema, listen: false }));
    await Promise.all(stores.map((store) => store.open(contextOf())));
    await Promise.all(stores.map((store) => store.close()));
  });

  it("an event is completed in one that sees what was committed while it waited for the lane (I5)", async () => {
    const store = postgresStore(newStrictPool(), { schema: newSchema(), listen: false });
    await store.open(contextOf());
    const { leases } = await store.step(turn<PgClient>({ accepts: [event("m")], claim: { limit: 1 } }));
    const seen: unknown[] = [];
    const effect = async (client: PgClient) =>
      void seen.push(...(await client.query("show transaction_isolation")).rows);
    const settles = leases.map((lease) => ({
      ...{ kind: "complete" as const, lease, outcome: "handled" as const },
      effects: [effect],
    }));
    await store.step(turn<PgClient>({ settles }));
    expect(seen).toEqual([{ transaction_isolation: "read committed" }]);
    await store.close();
  });
});

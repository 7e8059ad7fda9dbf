/** A database or role whose transactions are stricter by default than the inbox's algorithm takes for granted. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { event, turn } from "../sqlite-turns.ts";
import { complete, leases, openAt, SETTLED, settle } from "./desk.ts";
import { newPool, newSchema, sql, until } from "./place.ts";

/** A transaction of another process that has written and not committed. */
async function uncommitted(text: string): Promise<{ commit(): Promise<void> }> {
  const client = await newPool().connect();
  onTestFinished(() => client.release());
  await client.query(`begin; ${text}`);
  return { commit: async () => void (await client.query("commit")) };
}

describe.each(["repeatable read", "serializable"])("where transactions are %s by default", (isolation) => {
  /** A store whose connections the server shows under the name of its schema. */
  async function strictStore(schema = newSchema()) {
    const options = `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}`;
    const store = await openAt(schema, newPool({ application_name: schema, options }));
    /** Resolves once it waits for another transaction in a statement that ends like this. */
    const waits = (end: string) => {
      const text = `select 1 from pg_stat_activity where application_name = '${schema}' and wait_event_type = 'Lock' and query like '%${end}'`;
      return until(async () => (await sql(text)).length > 0);
    };
    const accept = (...ids: readonly string[]) => store.step(turn<PgClient>({ accepts: ids.map((id) => event(id)) }));
    return { schema, store, waits, accept };
  }

  it("an inbox is made by one of several processes that open it at once", async () => {
    const schema = newSchema();
    await Promise.all([1, 2, 3, 4].map(() => strictStore(schema)));
  });

  it("events are stored although other processes create their lanes first, one after the other", async () => {
    const { schema, waits, accept } = await strictStore();
    await accept("known");
    const make = (id: string) =>
      uncommitted(`insert into ${schema}.lane (id, name, source, tenant, ord)
        select nextval('${schema}.lane_id'), '${id}', source, tenant, ord from ${schema}.lane where name = 'known'`);
    const [a, b] = [await make("a"), await make("b")];
    // Two events of a lane do not fit into the one statement that accepts events of new lanes.
    const accepting = accept("a", "a", "b");
    await waits("");
    await a.commit();
    // Now a statement of its own creates all lanes, and waits for the other one.
    await waits("on conflict do nothing returning 1");
    await b.commit();
    expect((await accepting).accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate", "accepted"]);
  });

  it("an event is completed in one that sees what was committed while it waited for the lane (I5)", async () => {
    const { store } = await strictStore();
    const [lease] = await leases(store, "m");
    const seen: unknown[] = [];
    const look = async (client: PgClient) => void seen.push(...(await client.query("show transaction_isolation")).rows);
    expect(await settle(store, complete(lease, look))).toEqual([SETTLED]);
    expect(seen).toEqual([{ transaction_isolation: "read committed" }]);
  });
});

/** A server that is not there, goes away or refuses: deliveries get 503, nothing that was acknowledged is lost, no restart. */
import { describe, expect, it } from "vitest";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { outbound } from "../../receiver/events.ts";
import { contextOf, event, openForReceiver, turn } from "../sqlite-turns.ts";
import { openAt } from "./desk.ts";
import { newPool, newSchema, serve, sql, tapped } from "./place.ts";
import { askClosed, makeRelay } from "./relay.ts";

const body = (messageId: string) => outbound("queued", { messageId });

describe("a server that is down", () => {
  it("at the start: 503, and the next delivery after its return is taken", async () => {
    const relay = await makeRelay();
    const { receiver, post } = await serve(postgresStore(relay.url, { schema: newSchema() }));
    receiver.onAny(() => {});
    expect(await post(body("m1"))).toBe(503);
    expect(await post(body("m1"))).toBe(503);
    await relay.start();
    expect(await post(body("m1"))).toBe(200);
    expect(await receiver.drain()).toEqual({ claimed: 1, complete: true });
  });
});

describe("a connection whose socket is closed when a turn writes to it", () => {
  it("gave no answer, and the next turn has another one", async () => {
    const relay = await makeRelay();
    await relay.start();
    const pool = newPool({ connectionString: relay.url, max: 1 });
    let isClosing = false;
    tapped(pool, (_asked, send, client) => {
      if (!isClosing) return send();
      isClosing = false;
      return askClosed(relay, client, send);
    });
    const store = await openAt(newSchema(), pool);
    const step = (id: string) => store.step(turn<PgClient>({ accepts: [event(id)] }));
    await step("names");
    isClosing = true;
    await expect(step("m")).rejects.toMatchObject({
      ...{ code: "store_unavailable", fields: { sqlState: null }, cause: { code: "EPIPE" } },
      message: expect.stringMatching(/cannot be used now: EPIPE\.$/),
    });
    expect(pool.totalCount).toBe(0);
    expect((await step("m")).accepted).toMatchObject([{ outcome: "accepted" }]);
  });
});

describe("a connection whose server accepts no writes any more", () => {
  it("is not used again, as it would be under steady traffic", async () => {
    const pool = newPool({ max: 1 });
    const store = await openAt(newSchema(), pool);
    const step = (id: string, limit = 0) => store.step(turn<PgClient>({ accepts: [event(id)], claim: { limit } }));
    await step("names");
    // A pooler may lead an open connection to another server.
    const becomeReadOnly = () => pool.query("set default_transaction_read_only = on");
    await becomeReadOnly();
    await expect(step("m", 1)).rejects.toMatchObject({ code: "store_unavailable", fields: { sqlState: "25006" } });
    expect(pool.totalCount).toBe(0);
    expect((await step("m", 1)).accepted).toMatchObject([{ outcome: "accepted" }]);
    await becomeReadOnly();
    // The statement that accepts events of new lanes by itself has a second way, on another connection.
    expect((await step("n")).accepted).toMatchObject([{ outcome: "accepted" }]);
  });
});

describe("a pool whose connections are all taken", () => {
  it("answers after five seconds, and gives back what comes later", async () => {
    const clock = createFakeClock();
    const pool = newPool({ max: 1 });
    const store = postgresStore(pool, { schema: newSchema() });
    await openForReceiver(store, { clock });
    const taken = await pool.connect();
    const refused = store.step(turn<PgClient>({ accepts: [event("m")] })).catch((error: unknown) => error);
    await clock.advance(5_000);
    const message = expect.stringMatching(/within 5000 ms/);
    expect(await refused).toMatchObject({ code: "store_unavailable", message });
    taken.release();
    const { accepted } = await store.step(turn<PgClient>({ accepts: [event("m")] }));
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    await store.close();
    expect(pool).toMatchObject({ totalCount: 1, idleCount: 1, waitingCount: 0 });
  });
});

describe("limits of the role", () => {
  it("end a statement that waits too long as an outage, and the next turn passes", async () => {
    const schema = newSchema();
    const pool = newPool({ options: "-c statement_timeout=100" });
    const store = await openAt(schema, pool);
    const other = await newPool().connect();
    await other.query(`begin; lock table ${schema}.lane`);
    const accepts = [event("m")];
    const outage = { code: "store_unavailable", fields: { sqlState: "57014" } };
    await expect(store.step(turn<PgClient>({ accepts }))).rejects.toMatchObject(outage);
    await other.query("rollback");
    other.release();
    expect((await store.step(turn<PgClient>({ accepts }))).accepted).toMatchObject([{ outcome: "accepted" }]);
  });

  it("that end a transaction while it begins leave its connection as good as it was", async () => {
    const pool = newPool({ max: 1 });
    let isLate = false;
    tapped(pool, (asked, send) => {
      if (!isLate || !asked.text.startsWith("begin")) return send();
      isLate = false;
      return send({ ...asked, text: `${asked.text}; set local statement_timeout = 1; select pg_sleep(1)` });
    });
    const store = await openAt(newSchema(), pool);
    const client = await pool.connect();
    client.release();
    isLate = true;
    // A first event alone would be accepted by one statement.
    const step = () => store.step(turn<PgClient>({ accepts: [event("m", 1), event("m", 2)] }));
    await expect(step()).rejects.toMatchObject({ code: "store_unavailable", fields: { sqlState: "57014" } });
    expect((await step()).accepted).toMatchObject([{ outcome: "accepted" }, { outcome: "accepted" }]);
    // The connection was given back, and not replaced by another one.
    expect(await pool.connect()).toBe(client);
    client.release();
  });
});

describe("a server that is not safe", () => {
  it.each([
    [{ fsync: "off" }, "not_durable", /fsync is off/],
    [{ pages: "off" }, "not_durable", /full_page_writes is off/],
    [{ version: 120_022 }, "incompatible_peer", /13 or later; this server is 12/],
  ])("is refused: %j", async (lie, code, message) => {
    const schema = newSchema();
    const pool = newPool();
    tapped(pool, async (asked, send) => {
      const result = await send();
      return asked.text.includes("'fsync'") ? { ...result, rows: [{ ...result.rows[0], ...lie }] } : result;
    });
    const opening = postgresStore(pool, { schema }).open(contextOf());
    await expect(opening).rejects.toMatchObject({ name: "SetupError", code, message: expect.stringMatching(message) });
    expect(await sql(`select to_regnamespace('${schema}') as there`)).toEqual([{ there: null }]);
  });
});

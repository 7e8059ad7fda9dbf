/** Pools of one connection, and poolers that give each transaction another connection. */
import { describe, expect, inject, it } from "vitest";
import { type PgPool, postgresStore } from "../../src/stores/postgres.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { outbound } from "../receiver/events.ts";
import { newPool, newSchema, serve, sql, until } from "./place.ts";
import { transactionPooler } from "./transaction-pooler.ts";

const KINDS = ["queued", "sent", "delivery"] as const;

/** Delivers three messages in the wrong order and resolves with the events in the order of their handling. */
async function work(pool: PgPool, options: { readonly prepare?: boolean; readonly listen?: boolean } = {}) {
  const { receiver, post } = await serve(postgresStore(pool, { schema: newSchema(), ...options }));
  const handled: string[] = [];
  receiver.onAny((event, ctx) => {
    ctx.commit((client) => client.query("select $1::text", [event.eventType]));
    handled.push(`${ctx.meta.lane.messageId} ${event.eventType}`);
  });
  await receiver.start();
  const bodies = ["a", "b", "c"].flatMap((messageId) =>
    [...KINDS].reverse().map((kind) => outbound(kind, { messageId })),
  );
  expect(await Promise.all(bodies.map(post))).toEqual(Array(9).fill(200));
  await until(async () => (await receiver.inbox.stats()).counters.handled === 9);
  return ["a", "b", "c"].map((id) => handled.filter((line) => line.startsWith(`${id} `)).map((line) => line.slice(2)));
}

const IN_ORDER = Array(3).fill(KINDS.map((kind) => `message.${kind}`));

describe("postgresStore()", () => {
  it("works with a pool of one connection", async () => {
    expect(await work(newPool({ max: 1 }))).toEqual(IN_ORDER);
  });

  it("borrows one connection for a turn whose names it knows", async () => {
    const pool = newPool();
    // A clock that stands: nothing else borrows one now and then.
    const clock = createFakeClock(Date.now());
    const { post } = await serve(postgresStore(pool, { schema: newSchema(), listen: false }), { clock });
    expect(await post(outbound("queued", { messageId: "a" }))).toBe(200);
    let borrowed = 0;
    pool.on("acquire", () => {
      borrowed += 1;
    });
    expect(await post(outbound("queued", { messageId: "b" }))).toBe(200);
    expect(borrowed).toBe(1);
  });

  it("works behind a transaction pooler, without names and without listening", async () => {
    const pooler = transactionPooler();
    expect(await work(pooler, { prepare: false, listen: false })).toEqual(IN_ORDER);
    expect(pooler.seen.size).toBeGreaterThan(5);
  });

  it("pipelines the turns on two of its own connections, and lends effects one that does not", async () => {
    const url = inject("postgresUrl");
    const schema = newSchema();
    const { receiver, post } = await serve(postgresStore(url, { schema, listen: false }));
    const pipelined: unknown[] = [];
    receiver.onAny((_event, ctx) => ctx.commit((client) => void pipelined.push(client.pipeline)));
    await receiver.start();
    expect(await post(outbound("queued", { messageId: "m" }))).toBe(200);
    await until(() => pipelined.length === 1);
    expect(pipelined).toEqual([false]);
  });

  it("makes each lane once when two processes with pipelined turns make it at the same time (I1, I5)", async () => {
    const schema = newSchema();
    const open = () => serve(postgresStore(inject("postgresUrl"), { schema, listen: false }));
    const [one, other] = [await open(), await open()];
    const handled: string[] = [];
    one.receiver.onAny((event, ctx) => void handled.push(`${ctx.meta.lane.messageId} ${event.eventType}`));
    const ids = Array.from({ length: 60 }, (_, index) => `m${index}`);
    const answers = await Promise.all(
      ids.flatMap((messageId) => [
        one.post(outbound("queued", { messageId })),
        other.post(outbound("sent", { messageId })),
      ]),
    );
    expect(new Set(answers)).toEqual(new Set([200]));
    const lanes = await one.receiver.inbox.findLanes({ limit: 1000 });
    expect(lanes.items.length).toBe(ids.length);
    await one.receiver.drain();
    expect(handled.length).toBe(2 * ids.length);
  });

  it("makes a pool of so many connections as it is told, and ends it", async () => {
    const url = new URL(inject("postgresUrl"));
    const schema = newSchema();
    // Other tests have connections of the same name.
    url.searchParams.set("application_name", schema);
    const { receiver, post } = await serve(postgresStore(url.href, { schema, maxConnections: 2, listen: false }));
    receiver.onAny(() => {});
    await Promise.all(Array.from({ length: 20 }, (_, index) => post(outbound("queued", { messageId: `m${index}` }))));
    const connections = () => sql(`select pid from pg_stat_activity where application_name = '${schema}'`);
    expect((await connections()).length).toBeLessThanOrEqual(2);
    await receiver.stop();
    await until(async () => (await connections()).length === 0);
  });
});

/** Pools of one connection, and poolers that give each transaction another connection. */
import { describe, expect, it } from "vitest";
import { type PgClient, type PgPool, postgresStore } from "../../src/stores/postgres.ts";
import { outbound } from "../receiver/events.ts";
import { newPool, newSchema, serve, sql, until } from "./place.ts";

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

/**
 * A transaction pooler: each transaction runs on another connection of the server, and no session state lasts. Statements have
 * no names, or it fails.
 */
function transactionPooler(): PgPool & { readonly seen: Set<number> } {
  const pool = newPool({ max: 3 });
  const seen = new Set<number>();
  const facade = (): PgClient => {
    let held: { readonly client: PgClient; readonly pid: number } | null = null;
    const take = async () => {
      // pg's own types say more than is needed here.
      const client = (await pool.connect()) as unknown as PgClient & { processID: number };
      return { client, pid: client.processID };
    };
    const query = async (asked: { readonly text: string; readonly name?: string } | string, values?: unknown[]) => {
      const text = typeof asked === "string" ? asked : asked.text;
      if (typeof asked !== "string" && asked.name !== undefined) throw new Error("A named statement.");
      held ??= await take();
      const { client, pid } = held;
      seen.add(pid);
      try {
        return await client.query(asked as never, values as never);
      } finally {
        const { rows } = await client
          .query("select pg_current_xact_id_if_assigned() is not null or now() <> statement_timestamp() as is_open")
          .catch(() => ({ rows: [{ is_open: true }] }));
        const isOver = /^(commit|rollback)/i.test(text) || (!/^begin/i.test(text) && rows[0]?.is_open !== true);
        if (isOver) {
          await client.query("discard all");
          client.release(true);
          held = null;
        }
      }
    };
    return { query, on: () => {}, removeListener: () => {}, release: () => {} } as unknown as PgClient;
  };
  return { seen, connect: (callback) => callback(undefined, facade()), end: () => pool.end(), on: () => {} };
}

describe("postgresStore()", () => {
  it("works with a pool of one connection", async () => {
    expect(await work(newPool({ max: 1 }))).toEqual(IN_ORDER);
  });

  it("works behind a transaction pooler, without names and without listening", async () => {
    const pooler = transactionPooler();
    expect(await work(pooler, { prepare: false, listen: false })).toEqual(IN_ORDER);
    expect(pooler.seen.size).toBeGreaterThan(5);
  });

  it("makes a pool of so many connections as it is told, and ends it", async () => {
    const url = new URL((await import("vitest")).inject("postgresUrl"));
    const schema = newSchema();
    const { receiver, post } = await serve(postgresStore(url.href, { schema, maxConnections: 2, listen: false }));
    receiver.onAny(() => {});
    await Promise.all(Array.from({ length: 20 }, (_, index) => post(outbound("queued", { messageId: `m${index}` }))));
    const connections = () => sql("select pid from pg_stat_activity where application_name = 'oncehook'");
    expect((await connections()).length).toBeLessThanOrEqual(2);
    await receiver.stop();
    await until(async () => (await connections()).length === 0);
  });
});

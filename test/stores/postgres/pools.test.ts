/** Pools of one connection, and poolers that give each transaction another connection. */
import { createHash } from "node:crypto";
import { describe, expect, inject, it } from "vitest";
import { silentLogger } from "../../../src/internal/logger.ts";
import { lookForPooler } from "../../../src/stores/postgres/open.ts";
import { PgStatements, withSession } from "../../../src/stores/postgres/session.ts";
import { type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { outbound } from "../../receiver/events.ts";
import { contextOf } from "../sqlite-turns.ts";
import { noPgBouncer } from "./pgbouncer.ts";
import { newPool, newSchema, serve, sql, until } from "./place.ts";
import { startPgBouncer, startPooler } from "./poolers.ts";

describe("postgresStore()", () => {
  it("works with a pool of one connection", async () => {
    expect(await load(() => newPool({ max: 1 }))).toMatchObject(ALL_TAKEN);
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

/** A logger, and what it was warned of. */
function warningsOf() {
  const warnings: object[] = [];
  return { warnings, logger: { ...silentLogger, warn: (fields: object) => void warnings.push(fields) } };
}

const LOST = (option: "prepare" | "listen") => expect.objectContaining({ code: "transaction_pooler", option });

/** Two receivers of one inbox take 120 events in bursts; their answers, what was handled, and what was warned of. */
async function load(
  database: string | (() => PgPool),
  options: { readonly prepare?: boolean; readonly listen?: boolean } = {},
) {
  const schema = newSchema();
  const { warnings, logger } = warningsOf();
  const place = () => (typeof database === "string" ? database : database());
  const open = () => serve(postgresStore(place(), { schema, ...options }), { logger });
  const served = [await open(), await open()];
  const handled: string[] = [];
  for (const { receiver } of served) {
    receiver.onAny((event, ctx) => {
      ctx.commit((client) => client.query("select $1::text", [event.eventType]));
      handled.push(ctx.meta.lane ?? "");
    });
    receiver.onLate(() => {});
    await receiver.start();
  }
  const answers: number[] = [];
  for (let round = 0; round < 6; round++) {
    const posts = Array.from({ length: 20 }, (_, index) =>
      served[index % 2]?.post(outbound("queued", { messageId: `m${round} ${index}` })),
    );
    for (const answer of await Promise.all(posts)) answers.push(answer ?? 0);
  }
  await until(async () => (await served[0]?.receiver.inbox.stats())?.counters.handled === 120, 30_000);
  return { answers: new Set(answers), handled: new Set(handled).size, warnings };
}

const ALL_TAKEN = { answers: new Set([200]), handled: 120 };

describe("behind a transaction pooler that keeps no prepared statements", () => {
  it("that is seen at open, sends statements without names from the beginning, and does not listen", async () => {
    const { url } = await startPooler();
    const { warnings, logger } = warningsOf();
    const store = postgresStore(url, { schema: newSchema() });
    await store.open(contextOf({ logger }));
    await store.close();
    expect(warnings).toEqual([LOST("listen"), LOST("prepare")]);
  });

  it("that is not seen at open, is noticed with the first lost statement: no delivery fails of it", async () => {
    const { warnings, ...taken } = await load((await startPooler({ pid: "true", order: "next" })).url, {
      listen: false,
    });
    expect(taken).toEqual(ALL_TAKEN);
    expect(warnings).toEqual([LOST("prepare"), LOST("prepare")]);
  });

  it("is not asked about, nor warned of, where both options are off", async () => {
    const pooler = await startPooler({ order: "next" });
    const { warnings, ...taken } = await load(pooler.url, { listen: false, prepare: false });
    expect({ ...taken, warnings }).toEqual({ ...ALL_TAKEN, warnings: [] });
  });

  it("stops listening when the server's connection went to others", async () => {
    const clock = createFakeClock(Date.now());
    const { warnings, logger } = warningsOf();
    const { url } = await startPooler({ pid: "true", order: "next" });
    const store = postgresStore(url, { schema: newSchema(), prepare: false });
    await store.open(contextOf({ clock, logger }));
    const stop = store.onWake?.(() => {});
    await until(async () => {
      await clock.advance(5_000);
      return warnings.length > 0;
    });
    await clock.advance(60_000);
    stop?.();
    await store.close();
    expect(warnings).toEqual([LOST("listen")]);
  });

  it("that is PgBouncer itself, takes and handles every event", { tags: "full" }, async ({ skip }) => {
    if (noPgBouncer !== null) skip(noPgBouncer);
    const { warnings, ...taken } = await load((await startPgBouncer()).url);
    expect(taken).toEqual(ALL_TAKEN);
    expect(warnings).toContainEqual(LOST("prepare"));
    expect(warnings).toContainEqual(LOST("listen"));
  });

  it("names what PgBouncer in statement mode, or with a parameter that it refuses, needs", async ({ skip }) => {
    if (noPgBouncer !== null) skip(noPgBouncer);
    const { url } = await startPgBouncer({ pool_mode: "statement" });
    const open = (address: string) => postgresStore(address, { schema: newSchema() }).open(contextOf());
    await expect(open(url)).rejects.toMatchObject({ message: expect.stringContaining("set pool_mode to transaction") });
    const refused = { message: expect.stringContaining("ignore_startup_parameters") };
    await expect(open(`${url}?options=-c%20work_mem%3D8MB`)).rejects.toMatchObject(refused);
    const own = await startPooler();
    await expect(open(`${own.url}?options=-c%20work_mem%3D8MB`)).rejects.toMatchObject(refused);
  });
});

describe("behind a pooler that keeps what a connection has", () => {
  it("prepares and listens: in session mode", { tags: "full" }, async () => {
    const { warnings, ...taken } = await load((await startPooler({ mode: "session", servers: 40 })).url);
    expect({ ...taken, warnings }).toEqual({ ...ALL_TAKEN, warnings: [] });
  });

  it("prepares, where it keeps statements apart but shares connections: only LISTEN is lost", async () => {
    // As PgBouncer does from 1.21 on, which names each client's statements anew.
    const query = async () => ({ rows: [{ pid: 99 }] });
    const client = { processID: -7, query, on: () => {}, removeListener: () => {}, release: () => {} };
    const pool = { connect: (take: (error: undefined, client: unknown) => void) => take(undefined, client) } as never;
    const clock = createFakeClock();
    const access = { pool, clock, schema: "s", statements: new PgStatements("s", true) };
    const kept = await withSession(access, (session) => lookForPooler(access, session, 99));
    expect(kept).toEqual({ statements: true, listening: false });
  });
});

it("names a statement by its text, so that another version's is not run in its place", async () => {
  const pool = newPool({ max: 1 });
  const { receiver } = await serve(postgresStore(pool, { schema: newSchema() }));
  await receiver.inbox.stats();
  await receiver.inbox.find({});
  const { rows } = await pool.query("select name, statement from pg_prepared_statements");
  expect(rows.length).toBeGreaterThan(3);
  for (const { name, statement } of rows) {
    expect(name.split(" ").at(-1)).toBe(createHash("sha256").update(statement).digest("hex").slice(0, 16));
  }
});

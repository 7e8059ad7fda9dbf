/** Declared effects: many events in one write, each of which succeeds or fails alone. */
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { LANE_ORDERS } from "../../../src/inbox/lane-key.ts";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { EffectStatement } from "../../../src/inbox/store.ts";
import { type PgClient, type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { event, turn } from "../sqlite-turns.ts";
import { complete, failed, openDesk, openHandling, SETTLED, UNFINISHED } from "./desk.ts";
import { newPool, sql, tapped } from "./place.ts";

const insert = (schema: string, ...values: readonly unknown[]): EffectStatement => ({
  text: `insert into public.${schema}_note values ($1)`,
  values,
});

interface ToldPool {
  readonly pool: PgPool & pg.Pool;
  /** The texts that its connections are sent. */
  readonly sent: readonly string[];
  /** The same, by connection. */
  readonly connections: readonly (readonly string[])[];
  /** The values that one is sent before it answers. */
  readonly writes: readonly (readonly unknown[])[];
}

function toldPool(options: pg.PoolConfig = {}): ToldPool {
  const sent: string[] = [];
  const connections: string[][] = [];
  const writes: unknown[][] = [];
  const pool = newPool(options);
  pool.on("connect", (client) => {
    const own: string[] = [];
    connections.push(own);
    const query: (...asked: readonly unknown[]) => unknown = client.query.bind(client) as never;
    let write: unknown[] | null = null;
    client.query = ((...asked: readonly [string | pg.QueryConfig]) => {
      const { text, values = [] } = typeof asked[0] === "string" ? { text: asked[0] } : asked[0];
      sent.push(text);
      own.push(text);
      if (write === null) {
        write = [];
        writes.push(write);
      }
      write.push(...values);
      const answer = query(...asked);
      const answered = () => {
        write = null;
      };
      if (answer instanceof Promise) answer.then(answered, answered);
      return answer;
    }) as never;
  });
  return { pool, sent, connections, writes };
}

/** Its beginnings of transactions. */
const begun = (sent: readonly string[]) =>
  sent.filter((text) => /^begin isolation level read committed; execute/.test(text));

describe("declared effects on Postgres", () => {
  it("take 4 messages and 6 statements for an event with one, and none for a look at the lane", async () => {
    const { pool, sent, connections } = toldPool();
    const { store, schema, leases, settle, notes } = await openDesk(pool);
    const ids = Array.from({ length: 40 }, (_, index) => `m${index}`);
    const held = await leases(...ids);
    const settled = await settle(...held.map((lease, index) => complete(lease, insert(schema, ids[index]))));
    expect(settled).toEqual(held.map(() => SETTLED));
    expect(await notes()).toEqual(ids.toSorted());
    const ofEvents = connections.flatMap((texts) =>
      texts.flatMap((text, index) => (begun([text]).length > 0 ? [texts.slice(index, index + 4)] : [])),
    );
    expect(ofEvents).toHaveLength(40);
    expect(ofEvents.filter((texts) => texts.at(-1) !== "commit")).toEqual([]);
    expect(ofEvents.flat().join("; ").split("; ")).toHaveLength(40 * 6);
    expect(sent.filter((text) => text.includes("set constraints"))).toEqual([]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 40 }, gauges: { pending: 0 } });
  });

  it("fail alone in one write: a lost lease, a unique key, a deferred key and a guard of the application's", async () => {
    const { pool, writes } = toldPool();
    const { schema, leases, settle, notes } = await openDesk(pool);
    await sql(`create table public.${schema}_child (parent text references public.${schema}_note (text) deferrable initially deferred);
      create function public.${schema}_refuse() returns trigger language plpgsql as $$ begin
        if new.text = 'refused' then raise exception 'guarded'; end if; return new; end $$;
      create trigger refuse before insert on public.${schema}_note for each row execute function public.${schema}_refuse()`);
    onTestFinished(() =>
      sql(`drop table public.${schema}_child; drop function public.${schema}_refuse cascade`).then(() => {}),
    );
    const scene = ["a", "lost", "twice", "deferred", "guarded", "z"];
    // Four connections share what there is: each writes six.
    const others = Array.from({ length: 3 * scene.length }, (_, index) => `other ${index + 10}`);
    const [a, lost, twice, deferred, guarded, z, ...rest] = await leases(...scene, ...others);
    await sql(`insert into public.${schema}_note values ('taken')`);
    await sql(`update ${schema}.lane set token = token + 1 where id = ${lost?.lane}`);
    const child = { text: `insert into public.${schema}_child values ($1)`, values: ["nobody"] };
    const settled = await settle(
      complete(a, insert(schema, "a")),
      complete(lost, insert(schema, "lost")),
      complete(twice, insert(schema, "before"), insert(schema, "taken")),
      complete(deferred, insert(schema, "deferred"), child),
      complete(guarded, insert(schema, "refused")),
      complete(z, insert(schema, "z")),
      ...rest.map((lease, index) => complete(lease, insert(schema, others[index]))),
    );
    const effects = ["a", "lost", "before", "taken", "deferred", "nobody", "refused", "z"];
    expect(writes).toContainEqual(effects);
    expect(settled).toMatchObject([
      ...[SETTLED, { status: "lost" }, failed({ code: "23505" }), failed({ code: "23503" }), failed({ code: "P0001" })],
      ...[SETTLED, ...others.map(() => SETTLED)],
    ]);
    expect(await notes()).toEqual(["a", ...others, "taken", "z"]);
    expect(await sql(`select attempts from ${schema}.event where id = ${guarded?.event}`)).toEqual([{ attempts: 1 }]);
  });

  it("wait for a lock that somebody holds by themselves, while others go on", async () => {
    const { schema, leases, ask, settle, notes } = await openDesk();
    const [waits, free] = await leases("waits", "free");
    const holder = new pg.Client({ connectionString: newPool().options.connectionString });
    await holder.connect();
    await holder.query(`begin; insert into public.${schema}_note values ('waits')`);
    const [blocked, other] = [complete(waits, insert(schema, "waits")), complete(free, insert(schema, "free"))];
    const [first, second] = await ask(blocked, other);
    expect(first).toEqual(UNFINISHED);
    // On a busy machine it takes longer than the turn waits.
    expect(second?.status === "unfinished" ? await settle(other) : [second]).toEqual([SETTLED]);
    await holder.query("rollback");
    await holder.end();
    expect(await settle(blocked)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["free", "waits"]);
  });

  it("complete the events of a lane one after the other, each in its first text", async () => {
    const { pool, sent } = toldPool();
    const { store, schema, settle, notes } = await openDesk(pool);
    await store.step(turn<PgClient>({ accepts: [1, 2, 3].map((sequence) => event("m", sequence)) }));
    for (const sequence of [1, 2, 3]) {
      const { leases: held } = await store.step(turn<PgClient>({ claim: { limit: 1 } }));
      expect(held).toMatchObject([{ sequence }]);
      expect(await settle(complete(held[0], insert(schema, `${sequence}`)))).toEqual([SETTLED]);
    }
    expect(await notes()).toEqual(["1", "2", "3"]);
    expect(sent.filter((text) => text.includes("set constraints"))).toEqual([]);
  });

  it("are run by themselves where pg alone can write a value, or the server cannot prepare the text", async () => {
    const { schema, leases, settle, notes } = await openDesk();
    const [a, b, c] = await leases("a", "b", "c");
    const own = { toPostgres: () => "by itself" };
    const cycle: unknown[] = [];
    cycle.push({ cycle });
    const notified = { text: "notify nobody", values: [] };
    const settles = [
      complete(a, insert(schema, own)),
      complete(b, insert(schema, "b"), notified),
      complete(c, insert(schema, cycle)),
    ];
    expect(await settle(...settles)).toMatchObject([SETTLED, SETTLED, { status: "effect_failed" }]);
    expect(await notes()).toEqual(["b", "by itself"]);
  });

  it("work on connections that cannot pipeline, and behind a pooler that keeps no statements", async () => {
    for (const breaks of ["pipeline", "names"] as const) {
      const pool = newPool();
      pool.on("acquire", (client: PgClient) => {
        if (breaks === "pipeline") Object.assign(client, { pipeline: undefined });
        else void client.query("deallocate all");
      });
      const { schema, leases, settle, notes } = await openDesk(pool);
      for (let round = 0; round < 5; round++) {
        const ids = [`${round} a`, `${round} b`, `${round} c`];
        const held = await leases(...ids);
        const settles = held.map((lease, index) => complete(lease, insert(schema, ids[index])));
        expect(await settle(...settles)).toEqual(ids.map(() => SETTLED));
      }
      expect(await notes()).toHaveLength(15);
    }
  });

  it("are not run again when their commit was not answered and happened", async () => {
    const pool = newPool();
    let isCut: boolean | null = null;
    tapped(pool, async (asked, send, { connection }) => {
      const result = await send();
      if (isCut !== false || asked.text !== "commit") return result;
      isCut = true;
      connection.stream.destroy();
      throw new Error("Connection terminated unexpectedly");
    });
    const { store, schema, end, notes } = await openHandling(pool);
    isCut = false;
    expect(await end(insert(schema, "once"))).toEqual([SETTLED]);
    expect(isCut).toBe(true);
    expect(await notes()).toEqual(["once"]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 0 } });
  });

  const store = postgresStore("postgres://localhost/db");

  it.each([
    ["begin", /BEGIN/],
    ["  /* a comment */ Commit", /COMMIT/],
    ["rollback to savepoint x", /ROLLBACK/],
    ["set role other", /SET/],
    ["set local search_path to x", /SET/],
    ["reset all", /RESET/],
    ["insert into x values (1); commit", /one statement/],
    ["", /one statement/],
  ])("refuse %j when it is registered", (text, message) => {
    expect(() => store.checkEffect?.({ text, values: [] })).toThrow(message);
    expect(() => store.checkEffect?.({ text: "insert into x values ('; commit')", values: [] })).not.toThrow();
  });

  it("are no functions without a parameter for the connection, which would use another one", () => {
    expect(() => store.checkEffect?.(() => {})).toThrow(/\(tx\) =>/);
  });
});

describe("the end of a lease in one statement", () => {
  /** What is in the tables, without times. */
  const rowsOf = (schema: string) =>
    sql(`select l.status, l.ready_at is null as idle, l.cursor, l.gap_since is null as no_gap, l.token > 0 as has_token, l.holder, l.leased,
        l.leased_attempts, l.leased_started, e.seq, e.state, e.outcome, e.keep, e.finished is null as open, e.attempts,
        e.started is null as unstarted, e.late, e.forced
      from ${schema}.lane l join ${schema}.event e on e.lane = l.id order by l.id, e.id`);
  const tallyOf = (schema: string) =>
    sql(`select sum(pending)::int as pending, sum(handled)::int as handled from ${schema}.tally`);

  const shapes: readonly (readonly [string, readonly number[], string | null])[] = [
    ["alone", [1], null],
    ["the next in sequence behind it", [1, 2], null],
    ["a gap behind it", [1, 3], null],
    ["a late one behind it", [1, 2], "update @.event set late = true where seq % 1000 <> 1"],
    ["a replay behind it", [1, 2], "update @.event set forced = true where id <> (select min(id) from @.event)"],
    ["one that is held back behind it", [1, 2], "update @.event set gap_wait = 86400000"],
  ];

  it.each(
    LANE_ORDERS.flatMap((order) =>
      shapes.map(([name, sequences, change]) => [order, name, sequences, change] as const),
    ),
  )("writes what the rules write: %s, %s", async (order, _name, sequences, change) => {
    const isShared = order !== "sequence";
    const lane = { source: isShared ? "billing" : "service", tenant: "client", name: "m", order };
    const [first, ...behind] = sequences.map((sequence) => ({
      ...event("m", sequence),
      ...(isShared && { ownId: `own ${sequence}`, gapWaitMs: 0 }),
      lane,
    })) as [NewEvent, ...NewEvent[]];
    const endOf = async (effects: readonly EffectStatement[]) => {
      const { store, schema, settle } = await openDesk();
      await store.step(turn<PgClient>({ accepts: [first] }));
      const { leases: held } = await store.step(turn<PgClient>({ claim: { limit: 1 } }));
      await store.step(turn<PgClient>({ accepts: behind }));
      if (change !== null) await sql(change.replaceAll("@", schema));
      const settled = await settle(complete(held[0], ...effects));
      return { status: settled[0]?.status, rows: await rowsOf(schema), tally: await tallyOf(schema) };
    };
    // Without effects the turn ends it, by the rules.
    expect(await endOf([{ text: "select 1", values: [] }])).toEqual(await endOf([]));
  });

  it("is the same where the role has another isolation than READ COMMITTED", async () => {
    const { pool, sent } = toldPool({ options: "-c default_transaction_isolation=serializable" });
    const { schema, end, notes } = await openHandling(pool);
    expect(await end(insert(schema, "m"))).toEqual([SETTLED]);
    expect(begun(sent)).toHaveLength(1);
    expect(sent.filter((text) => text.startsWith("set constraints"))).toEqual([]);
    expect(await notes()).toEqual(["m"]);
  });
});

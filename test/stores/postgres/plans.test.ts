/** What the store's statements read of a large inbox: a few pages, found by an index. */
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Effect, InboxStore } from "../../../src/inbox/store.ts";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { contextOf, event, turn } from "../sqlite-turns.ts";
import { SETTLED, settle } from "./desk.ts";
import { sql } from "./place.ts";
import { pagesOf, type Run, scannedIn, toldPool } from "./told-plans.ts";

const SCHEMA = `place_${process.pid}_plans`;
const ROWS = 100_000;
/** Pages of 8 KiB. A scan of the smallest index over all rows reads more. */
const MOST_PAGES = 220;
const BATCH = 20;
const CLIENT = { apiClientId: "client" };
/** Longer than the test takes, and no longer than a wait of the inbox. */
const WAIT_MS = 3_600_000;

/** Handled events of 100,000 messages, 20,000 messages that wait for a sequence that never came, and as many that are being handled. */
const FILL = `
  insert into @.client (name) values ('client');
  insert into @.kind (name) values ('message.sent');
  insert into @.lane (id, client, tag, message, cursor, peer) select nextval('@.lane_id'), 1, 0, convert_to('old' || n, 'UTF8'), 1, convert_to('+1555' || n, 'UTF8')
    from generate_series(1, ${ROWS}) as n;
  insert into @.lane (id, client, tag, message, status, ready_at, gap_since) select nextval('@.lane_id'), 1, 0, convert_to('gap' || n, 'UTF8'), 4, @wait, 1
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.lane (id, client, tag, message, status, ready_at, token) select nextval('@.lane_id'), 1, 0, convert_to('held' || n, 'UTF8'), 2, @wait, 1
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.event (id, lane, seq, kind, state, outcome, keep, finished, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
    select nextval('@.event_id'), id, case when status = 0 then 1 else 2 end, 1, case when status = 0 then 1 else 0 end, case when status = 0 then 1 end,
      case when status = 0 then 1 end, case when status = 0 then 1000 + id end, 1, false, false, 0, false, 90000, 1, 1, 1, '\\x00', true from @.lane order by id;
  insert into @.body (event, raw) select id, '{}' from @.event;
  analyze @.lane; analyze @.event; analyze @.body;`;

describe("with 100,000 events", () => {
  const runs: Run[] = [];
  let pool: Pool;
  let store: InboxStore<PgClient>;

  beforeAll(async () => {
    pool = toldPool(inject("postgresUrl"), runs);
    store = postgresStore(pool, { schema: SCHEMA, listen: false });
    await store.open(contextOf());
    await sql(FILL.replaceAll("@wait", `${Date.now() + WAIT_MS}`).replaceAll("@", SCHEMA));
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await sql(`drop schema ${SCHEMA} cascade`);
  });

  const events = (name: string, sequence = 1) =>
    Array.from({ length: BATCH }, (_, index) => event(`${name}${index + 1}`, sequence));
  const complete = async (name: string, effects: readonly Effect<PgClient>[]) => {
    await store.step(turn<PgClient>({ accepts: events(name) }));
    const { leases } = await store.step(turn<PgClient>({ claim: { limit: BATCH } }));
    expect(leases).toHaveLength(BATCH);
    const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects }) as const);
    expect(await settle(store, ...settles)).toEqual(leases.map(() => SETTLED));
  };
  const operations: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["accepts of new messages", () => store.step(turn<PgClient>({ accepts: events("new") }))],
    ["accepts of new messages that wait", () => store.step(turn<PgClient>({ accepts: events("later", 2) }))],
    ["accepts of known messages", () => store.step(turn<PgClient>({ accepts: events("old", 2) }))],
    ["duplicates", () => store.step(turn<PgClient>({ accepts: events("old", 1) }))],
    ["claims", () => store.step(turn<PgClient>({ claim: { limit: 2 * BATCH } }))],
    ["claims of an expired lease", () => store.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }))],
    ["completions", () => complete("done", [])],
    ["completions with declared effects", () => complete("declared", [{ text: "select 1", values: [] }])],
    [
      "completions with effects that are functions",
      () => complete("functions", [(client) => client.query("select 1")]),
    ],
    ["the time until a lane is due", () => store.nextDue()],
    ["what is pending", () => store.find({ states: ["pending"], limit: BATCH })],
    ["what is dead", () => store.find({ states: ["dead"], limit: BATCH })],
    ["the newest events", () => store.find({ limit: BATCH })],
    ["the events of a message", () => store.find({ messageId: "old77", limit: BATCH })],
    ["one lane", () => store.lane({ apiClientId: "client", tag: "outbound", messageId: "old77" })],
    ["lanes that are blocked", () => store.findLanes({ statuses: ["blocked"], limit: 10 })],
    ["lanes in backoff, of a client", () => store.findLanes({ ...CLIENT, statuses: ["backoff"], limit: 10 })],
    ["the newest lanes", () => store.findLanes({ limit: 10 })],
    ["the newest events of a client", () => store.find({ ...CLIENT, limit: 10 })],
    ["the newest events of a type", () => store.find({ eventType: "message.sent", limit: 10 })],
    ["events of a client that is not known", () => store.find({ apiClientId: "none", limit: 10 })],
    ["the counters", () => store.stats()],
    ["pruning", () => store.prune({ batch: BATCH, handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 0, deadMs: 0 })],
  ];

  it.each(operations)("%s read a few pages by an index", async (_name, operate) => {
    runs.length = 0;
    await operate();
    const tables = runs.filter((run) => run["Query Text"].includes(SCHEMA));
    expect(tables).not.toHaveLength(0);
    for (const { "Query Text": text, Plan: plan } of tables) {
      expect({ text, scanned: scannedIn(plan) }).toEqual({ text, scanned: [] });
      expect(pagesOf(plan), text).toBeLessThan(MOST_PAGES);
    }
  });

  it("would see a statement that reads them all", async () => {
    runs.length = 0;
    await pool.query(`select * from "${SCHEMA}".lane where peer = $1::bytea`, [Buffer.from("x")]);
    expect(runs.map(({ Plan: plan }) => [scannedIn(plan), pagesOf(plan) > MOST_PAGES])).toEqual([[["lane"], true]]);
  });
});

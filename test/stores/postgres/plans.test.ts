/** What the store's statements read of a large inbox: a few pages, found by an index. */
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { PLACES } from "../../../src/inbox/gap.ts";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { Effect, EventQuery, InboxStore, LaneQuery, LaneRef } from "../../../src/inbox/store.ts";
import { ORDER } from "../../../src/stores/database.ts";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import { event, openForReceiver, turn } from "../sqlite-turns.ts";
import { SETTLED, settle } from "./desk.ts";
import { sql } from "./place.ts";
import { pagesOf, type Run, scannedIn, toldPool } from "./told-plans.ts";

const SCHEMA = `place_${process.pid}_plans`;
const ROWS = 100_000;
/** Pages of 8 KiB. A scan of the smallest index over all rows reads more. */
const MOST_PAGES = 220;
const BATCH = 20;
/** The lane whose event has a type of its own. */
const RARE = 77_777;
const CLIENT = { source: "service", tenant: "client" };
/** More than are looked for one by one. */
const TENANTS = 1_100;
/** Longer than the test takes, and no longer than a wait of the inbox. */
const WAIT_MS = 3_600_000;

const isOfShop = (n: string) => `(${n} > ${BATCH} and ${n} % 3 = 0)`;
/**
 * Of the lanes a third are of another source and have one event each, a third are of one tenant of the service, as are the first ones, and
 * a third of 500 others.
 */
const keyOf = (name: string) => `case when not ${isOfShop("n")} then convert_to('${name}' || n, 'UTF8') end,
    case when ${isOfShop("n")} then 'shop' else 'service' end,
    convert_to(case when ${isOfShop("n")} then case when n % 2 = 0 then '' else 'eu' end when n <= ${BATCH} or n % 3 = 1 then 'client' else 'client' || n % 500 end, 'UTF8'),
    case when ${isOfShop("n")} then ${ORDER.none} else ${ORDER.sequence} end`;

/**
 * Handled events of 100,000 messages, 20,000 messages that wait for a sequence that never came, as many that are being handled, and as many
 * handled events of one lane.
 */
const FILL = `
  insert into @.lane (id, name, source, tenant, ord, cursor, peer) select nextval('@.lane_id'), ${keyOf("old")}, 1, convert_to('+1555' || n, 'UTF8')
    from generate_series(1, ${ROWS}) as n;
  insert into @.lane (id, name, source, tenant, ord, status, ready_at, gap_since) select nextval('@.lane_id'), convert_to('gap' || n, 'UTF8'), 'service', 'client', ${ORDER.sequence}, 4, @wait, 1
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.lane (id, name, source, tenant, ord, status, ready_at, token) select nextval('@.lane_id'), ${keyOf("held")}, 2, @wait, 1
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.event (id, lane, seq, type, source, tenant, own_id, state, outcome, keep, finished, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
    select nextval('@.event_id'), id, case when status = 0 then 1 else 2 end, case when id = ${RARE} then 'message.rare' else 'message.sent' end::bytea, source, tenant,
      case when name is null then convert_to('evt_' || id, 'UTF8') end, case when status = 0 then 1 else 0 end, case when status = 0 then 1 end,
      case when status = 0 then 1 end, case when status = 0 then 1000 + id end, 1, false, false, 0, false, 90000, 1, 1, 1, '\\x00', true from @.lane order by id;
  insert into @.lane (id, name, source, tenant, ord, cursor) select nextval('@.lane_id'), 'sub_1', 'billing', '', ${ORDER.position}, ${ROWS * PLACES};
  insert into @.event (id, lane, seq, type, source, tenant, own_id, shared, state, outcome, keep, finished, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
    select nextval('@.event_id'), currval('@.lane_id'), n * ${PLACES}, 'invoice.paid', 'billing', '', convert_to('sub_' || n, 'UTF8'), true, 1, 1, 1, 1000000 + n, 1, false, false, 0, false, 0, 1, 1, 1, '\\x00', true
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.body (event, raw) select id, '{}' from @.event;
  analyze @.lane; analyze @.event; analyze @.body;`;

describe("with 100,000 events", () => {
  const runs: Run[] = [];
  let pool: Pool;
  let store: InboxStore<PgClient>;

  beforeAll(async () => {
    pool = toldPool(inject("postgresUrl"), runs);
    store = postgresStore(pool, { schema: SCHEMA, listen: false });
    await openForReceiver(store);
    await sql(FILL.replaceAll("@wait", `${Date.now() + WAIT_MS}`).replaceAll("@", SCHEMA));
  });

  afterAll(async () => {
    await store.close();
    await pool.end();
    await sql(`drop schema ${SCHEMA} cascade`);
  });

  const events = (name: string, sequence = 1) =>
    Array.from({ length: BATCH }, (_, index) => event(`${name}${index + 1}`, sequence));
  const aloneOf = (source: string, name: string) =>
    Array.from({ length: BATCH }, (_, index) => {
      const lane = { source, tenant: null, name: null, order: null };
      return event("", 0, { lane, ownId: `${name}${6 * (index + BATCH)}` });
    });
  const inLane = (name: string, position: number) =>
    Array.from({ length: BATCH }, (_, index) => {
      const lane = { source: "billing", tenant: null, name: "sub_1", order: "position" } as const;
      return event("", position + index, { lane, ownId: `${name}${index + 1}`, gapWaitMs: 0 });
    });
  const complete = async (name: string, effects: readonly Effect<PgClient>[]) => {
    await store.step(turn<PgClient>({ accepts: events(name) }));
    const { leases } = await store.step(turn<PgClient>({ claim: { limit: BATCH } }));
    expect(leases).toHaveLength(BATCH);
    const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects }) as const);
    expect(await settle(store, ...settles)).toEqual(leases.map(() => SETTLED));
  };
  const accept = async (accepts: readonly NewEvent[], outcome: "accepted" | "duplicate") => {
    const { accepted } = await store.step(turn<PgClient>({ accepts }));
    expect(new Set(accepted.map((answer) => answer.outcome))).toEqual(new Set([outcome]));
  };
  const found = async (query: Omit<EventQuery, "limit">, count: number) =>
    expect((await store.find({ ...query, limit: 10 })).items).toHaveLength(count);
  const foundLanes = async (query: Omit<LaneQuery, "limit">, count: number) =>
    expect((await store.findLanes({ ...query, limit: 10 })).items).toHaveLength(count);
  const lane = async (ref: LaneRef) => expect(await store.lane(ref)).toMatchObject({ events: [{}] });
  const operations: readonly (readonly [string, () => Promise<unknown>])[] = [
    // Before there are newer events of no source.
    ["the newest events of a source", () => found({ source: "shop" }, 10)],
    ["accepts of new messages", () => accept(events("new"), "accepted")],
    ["accepts of new messages that wait", () => accept(events("later", 2), "accepted")],
    ["accepts of known messages", () => accept(events("old", 2), "accepted")],
    ["duplicates", () => accept(events("old", 1), "duplicate")],
    ["accepts of events that are alone", () => accept(aloneOf("shop", "new_"), "accepted")],
    ["duplicates of events that are alone", () => accept(aloneOf("shop", "evt_"), "duplicate")],
    ["accepts into a long lane", () => accept(inLane("new_", ROWS), "accepted")],
    ["duplicates in a long lane", () => accept(inLane("sub_", 1), "duplicate")],
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
    ["the events of a message", () => found({ lane: "old79" }, 1)],
    ["the event of an id", () => found({ id: "evt_60" }, 1)],
    ["the event of an id, with its source", () => found({ id: "evt_60", source: "shop" }, 1)],
    ["one lane", () => lane({ ...CLIENT, name: "old79", order: "sequence" })],
    ["one lane by its number", () => lane(79)],
    ["the lane of an event", () => lane({ source: "shop", tenant: null, id: "evt_60" })],
    ["lanes that are blocked", () => store.findLanes({ statuses: ["blocked"], limit: 10 })],
    ["lanes in backoff, of a client", () => store.findLanes({ ...CLIENT, statuses: ["backoff"], limit: 10 })],
    ["the newest lanes", () => store.findLanes({ limit: 10 })],
    ["the newest events of a client", () => found(CLIENT, 10)],
    ["the oldest events of a client", () => found({ ...CLIENT, order: "oldest" }, 10)],
    ["the events of a client before another one", () => found({ ...CLIENT, after: ROWS / 2 }, 10)],
    ["the newest events of a tenant", () => found({ tenant: "client7" }, 10)],
    ["the newest events without a tenant", () => found({ tenant: null }, 10)],
    ["the newest events of a source without a tenant", () => found({ source: "shop", tenant: null }, 10)],
    ["the newest events of a type", () => found({ eventType: "message.sent" }, 10)],
    ["the events of a type that is rare", () => found({ eventType: "message.rare" }, 1)],
    ["the newest lanes of a client", () => foundLanes(CLIENT, 10)],
    ["the newest lanes of a source", () => foundLanes({ source: "shop" }, 10)],
    ["events of a tenant that is not known", () => found({ tenant: "none" }, 0)],
    ["events of a type that is not known", () => found({ eventType: "none" }, 0)],
    ["events of a source that is not known", () => found({ source: "none" }, 0)],
    ["events of an id that is not known", () => found({ id: "none" }, 0)],
    ["events of a lane that is not known", () => found({ lane: "none" }, 0)],
    ["lanes of a tenant that is not known", () => foundLanes({ tenant: "none" }, 0)],
    ["lanes of a source that is not known", () => foundLanes({ source: "none" }, 0)],
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

  it("finds the events of a source with more tenants than it looks for one by one, and those of each", async () => {
    const [first, last] = [1, TENANTS].map((n) => `tenant ${n + 10_000}`) as [string, string];
    await sql(
      `insert into @.event (id, lane, seq, type, source, tenant, own_id, state, outcome, keep, finished, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
         select nextval('@.event_id'), 1, n + 10, 'message.sent', 'many', convert_to('tenant ' || n + 10000, 'UTF8'), convert_to('many ' || n, 'UTF8'), 1, 1, 1, 1, 1, false, false, 0, false, 0, 1, 1, 1, '\\x00', false
         from generate_series(1, ${TENANTS}) as n`.replaceAll("@", SCHEMA),
    );
    const tenants = async (query: Omit<EventQuery, "limit">) =>
      (await store.find({ ...query, limit: 2 })).items.map(({ ownId }) => ownId);
    expect(await tenants({ source: "many" })).toEqual([`many ${TENANTS}`, `many ${TENANTS - 1}`]);
    expect(await tenants({ source: "many", order: "oldest" })).toEqual(["many 1", "many 2"]);
    expect(await tenants({ source: "many", tenant: last })).toEqual([`many ${TENANTS}`]);
    expect(await tenants({ tenant: first })).toEqual(["many 1"]);
  });

  it("would see a statement that reads them all", async () => {
    runs.length = 0;
    await pool.query(`select * from "${SCHEMA}".lane where peer = $1::bytea`, [Buffer.from("x")]);
    expect(runs.map(({ Plan: plan }) => [scannedIn(plan), pagesOf(plan) > MOST_PAGES])).toEqual([[["lane"], true]]);
  });
});

/** What the store's statements read of a large inbox: a few pages, found by an index. */
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { type PgClient, type PgPool, postgresStore } from "../../src/stores/postgres.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { sql } from "./place.ts";

const SCHEMA = `place_${process.pid}_plans`;
const ROWS = 100_000;
/** Pages of 8 KiB. A scan of the smallest index over all rows reads more. */
const MOST_PAGES = 220;
const BATCH = 20;

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A pool that notes what it is asked. */
function noting(pool: Pool, statements: Map<string, Statement>): PgPool {
  return {
    end: () => pool.end(),
    on: (name, listener) => pool.on(name, listener),
    connect: (callback) =>
      pool.connect((error, client) => callback(error, client === undefined ? undefined : note(client, statements))),
  };
}

function note(client: PoolClient, statements: Map<string, Statement>): PgClient {
  const ask = client.query.bind(client);
  const query = (asked: string | { readonly text: string; readonly values?: readonly unknown[] }, more?: unknown) => {
    if (typeof asked !== "string" && asked.values !== undefined)
      statements.set(asked.text, { text: asked.text, values: asked.values });
    return ask(asked as never, more as never);
  };
  // pg's own types say more than is needed here.
  return Object.assign(client, { query }) as unknown as PgClient;
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
}

async function explain(pool: Pool, { text, values }: Statement): Promise<{ pages: number; scanned: string[] }> {
  const client = await pool.connect();
  try {
    await client.query("begin; set local enable_seqscan = off");
    // What was inserted once cannot be inserted again.
    const how = text.includes("insert into") ? "format json" : "analyze, buffers, format json";
    const { rows } = await client.query(`explain (${how}) ${text}`, [...values]);
    const { Plan: plan }: { Plan: Plan } = rows[0]["QUERY PLAN"][0];
    const scanned = nodesOf(plan)
      .filter((node) => node["Node Type"] === "Seq Scan" && /^(?:lane|event|body)$/.test(node["Relation Name"] ?? ""))
      .map((node) => node["Relation Name"] ?? "");
    return { pages: (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0), scanned };
  } finally {
    await client.query("rollback");
    client.release();
  }
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** Handled events of 100,000 messages, and 20,000 messages that wait for a sequence that never came. */
const FILL = `
  insert into @.client (name) values ('client');
  insert into @.kind (name) values ('message.sent');
  insert into @.lane (id, client, tag, message, cursor, peer) select nextval('@.lane_id'), 1, 0, convert_to('old' || n, 'UTF8'), 1, convert_to('+1555' || n, 'UTF8')
    from generate_series(1, ${ROWS}) as n;
  insert into @.lane (id, client, tag, message, status, ready_at, gap_since) select nextval('@.lane_id'), 1, 0, convert_to('gap' || n, 'UTF8'), 4, 9999999999999, 1
    from generate_series(1, ${ROWS / 5}) as n;
  insert into @.event (id, lane, seq, kind, state, outcome, keep, finished, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
    select nextval('@.event_id'), id, case when status = 0 then 1 else 2 end, 1, case when status = 0 then 1 else 0 end, case when status = 0 then 1 end,
      case when status = 0 then 1 end, case when status = 0 then 1000 + id end, 1, false, false, 0, false, 90000, 1, 1, 1, '\\x00', true from @.lane order by id;
  insert into @.body (event, raw) select id, '{}' from @.event;
  analyze @.lane; analyze @.event; analyze @.body;`;

describe("with 100,000 events", () => {
  const statements = new Map<string, Statement>();
  let plain: Pool;
  let store: InboxStore<PgClient>;

  beforeAll(async () => {
    const { Pool } = (await import("pg")).default;
    const { inject } = await import("vitest");
    plain = new Pool({ connectionString: inject("postgresUrl"), max: 3 });
    store = postgresStore(noting(plain, statements), { schema: SCHEMA, listen: false });
    await store.open(contextOf());
    await sql(FILL.replaceAll("@", SCHEMA));
  });

  afterAll(async () => {
    await store.close();
    await plain.end();
    await sql(`drop schema ${SCHEMA} cascade`);
  });

  const events = (name: string, sequence = 1) =>
    Array.from({ length: BATCH }, (_, index) => event(`${name}${index + 1}`, sequence));
  const operations: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["accepts of new messages", () => store.step(turn<PgClient>({ accepts: events("new") }))],
    ["accepts of known messages", () => store.step(turn<PgClient>({ accepts: events("old", 2) }))],
    ["duplicates", () => store.step(turn<PgClient>({ accepts: events("old", 1) }))],
    ["claims", () => store.step(turn<PgClient>({ claim: { limit: BATCH } }))],
    ["claims of an expired lease", () => store.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }))],
    [
      "completions",
      async () => {
        const { leases } = await store.step(turn<PgClient>({ claim: { limit: BATCH } }));
        expect(leases).toHaveLength(BATCH);
        const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const);
        await store.step(turn<PgClient>({ settles }));
      },
    ],
    ["the time until a lane is due", () => store.nextDue()],
    ["what is pending", () => store.find({ states: ["pending"], limit: BATCH })],
    ["what is dead", () => store.find({ states: ["dead"], limit: BATCH })],
    ["the newest events", () => store.find({ limit: BATCH })],
    ["the events of a message", () => store.find({ messageId: "old77", limit: BATCH })],
    ["one lane", () => store.lane({ apiClientId: "client", tag: "outbound", messageId: "old77" })],
    ["lanes that are blocked", () => store.findLanes({ statuses: ["blocked"], limit: 10 })],
    [
      "lanes in backoff, of a client",
      () => store.findLanes({ statuses: ["backoff"], apiClientId: "client", limit: 10 }),
    ],
    ["the newest lanes", () => store.findLanes({ limit: 10 })],
    ["the newest events of a client", () => store.find({ apiClientId: "client", limit: 10 })],
    ["the newest events of a type", () => store.find({ eventType: "message.sent", limit: 10 })],
    ["events of a client that is not known", () => store.find({ apiClientId: "none", limit: 10 })],
    ["the counters", () => store.stats()],
    ["pruning", () => store.prune({ batch: BATCH, handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 0, deadMs: 0 })],
  ];

  it.each(operations)("%s read a few pages by an index", async (_name, operate) => {
    statements.clear();
    await operate();
    expect(statements.size).toBeGreaterThan(0);
    for (const statement of statements.values()) {
      const { pages, scanned } = await explain(plain, statement);
      expect({ text: statement.text, scanned }).toEqual({ text: statement.text, scanned: [] });
      expect(pages, statement.text).toBeLessThan(MOST_PAGES);
    }
  });

  it("would see a statement that reads them all", async () => {
    const text = `select * from "${SCHEMA}".lane where peer = $1::bytea`;
    expect((await explain(plain, { text, values: [Buffer.from("x")] })).pages).toBeGreaterThan(MOST_PAGES);
  });
});

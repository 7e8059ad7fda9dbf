import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { EventQuery, Lease, Settle } from "../../src/inbox/store.ts";
import { STATUS } from "../../src/stores/database.ts";
import { PRUNABLE, PRUNABLE_UNTIMED } from "../../src/stores/sqlite/prune.ts";
import {
  endsSql,
  findSql,
  lanesSql,
  NEXT_SOURCE,
  NEXT_TENANT,
  OLDEST_PENDING,
  OWNED,
} from "../../src/stores/sqlite/queries.ts";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";
import { SQL } from "../../src/stores/sqlite/statements.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { connect, makePath, open, watchedDriver } from "./sqlite-place.ts";
import { event, quarantine, turn } from "./sqlite-turns.ts";

const complete = (lease: Lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const;

/** Bytes of the file and of its log. */
function bytesOf(path: string): Buffer {
  const files = [path, `${path}-wal`].filter((file) => existsSync(file));
  return Buffer.concat(files.map((file) => readFileSync(file)));
}

describe("erased data", () => {
  const NUMBER = "+15559876543";
  const TEXT = "meet me at the harbour";

  it.each([
    ["a short body", ""],
    ["a body over many pages", "x".repeat(50_000)],
  ])("is in the bytes of neither file nor log any more: %s", async (_name, filling) => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const bodyOf = (id: string) => Buffer.from(JSON.stringify({ id, to: NUMBER, text: TEXT, filling }));
    const about = (id: string, sequence = 1): NewEvent =>
      event(id, sequence, { raw: bodyOf(id), peer: NUMBER, externalReference: `for ${NUMBER}` });
    const accepts = [...Array(40).keys()].map((n) => about(`m${n}`));
    const { leases } = await store.step(turn({ accepts, claim: { limit: 30 } }));
    const failure = { code: "failed", message: `No route to ${NUMBER}.`, durationMs: 1 };
    const [first, second, ...others] = leases;
    const settles: Settle<SqliteDatabase>[] = [
      ...others.map(complete),
      { kind: "retry", lease: first!, delayMs: 60_000, failure },
      { kind: "dead", lease: second!, failure, onDead: "block" },
    ];
    await store.step(turn({ settles }));
    const conflict = event("m5", 1, { raw: Buffer.from(`{"other":"${TEXT} for ${NUMBER}"}`) });
    const held = quarantine(Buffer.from(`{"broken": "${NUMBER} ${TEXT}"`));
    await store.step(turn({ accepts: [conflict], quarantines: [held] }));
    expect(bytesOf(path).includes(NUMBER)).toBe(true);
    expect(bytesOf(path).includes(TEXT)).toBe(true);

    expect(await store.act({ kind: "erase", subject: { peer: NUMBER } }, "operator")).toEqual({ ok: true, count: 41 });
    expect(bytesOf(path).includes(NUMBER)).toBe(false);
    expect(bytesOf(path).includes(TEXT)).toBe(false);
    expect((await store.find({ limit: 100 })).items).toHaveLength(40);
  });
});

describe("a turn with a row that cannot be stored", () => {
  it("stores and leases its neighbours, and leaves nothing of the row", async () => {
    const store = await open(sqliteStore(makePath()));
    const bad = event("bad", 1, { trace: { not: "a text" } as unknown as string });
    const elsewhere = { ...bad.lane, tenant: "new client" };
    const worse = { ...event("worse"), raw: null as unknown as Buffer };
    const accepts = [event("a"), { ...bad, lane: elsewhere }, worse, event("b"), event("b")];
    const { accepted, leases } = await store.step(turn({ accepts, claim: { limit: 5 } }));
    const outcomes = accepted.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["accepted", "failed", "failed", "accepted", "duplicate"]);
    expect(leases.map(({ key, event: id, acceptIndex }) => [key.name, id, acceptIndex])).toEqual([
      ["a", 1, 0],
      ["b", 2, 3],
    ]);
    expect(await store.lane(elsewhere)).toBeNull();
    expect(await store.stats()).toMatchObject({ gauges: { pending: 2 }, counters: { accepted: 2, duplicates: 1 } });
    await store.step(turn({ accepts: [event("bad", 1, { lane: elsewhere })] }));
    expect(await store.lane(elsewhere)).toMatchObject({ key: elsewhere, status: "ready" });
  });
});

describe("space", () => {
  it("accepts nothing beyond maxDatabaseBytes, and settles and claims all the same", async () => {
    const path = makePath();
    const clock = createFakeClock();
    const store = await open(sqliteStore(path, { maxDatabaseBytes: 400_000 }), { clock });
    const filling = Buffer.alloc(300_000, "x");
    const accepts = [event("a", 1, { raw: filling }), event("b")];
    const { leases } = await store.step(turn({ accepts, claim: { limit: 1 } }));
    await clock.advance(1_000);
    const refused = event("c", 1, { signedAt: Date.now() + 60_000 });
    const quarantines = [quarantine(Buffer.from("?"))];
    const full = turn({ accepts: [refused], quarantines, settles: leases.map(complete), claim: { limit: 5 } });
    expect(await store.step(full)).toMatchObject({
      accepted: [{ outcome: "failed", error: { code: "store_full" } }],
      quarantined: [{ outcome: "failed", error: { code: "store_full" } }],
      settled: [{ status: "settled" }],
      leases: [{ key: { name: "b" } }],
    });
    // Pruning goes by the service's timestamps: those of refused deliveries count too, or nothing would ever be pruned.
    expect((await store.stats()).newestSignedAt).toBe(refused.signedAt);
  });

  it("accepts nothing with less than minFreeBytes on the disk", async () => {
    const store = await open(sqliteStore(makePath(), { minFreeBytes: Number.MAX_SAFE_INTEGER }));
    const { accepted } = await store.step(turn({ accepts: [event("m")] }));
    expect(accepted).toMatchObject([{ outcome: "failed", error: { code: "store_full" } }]);
  });

  it("answers store_full when SQLite has no page left, and recovers by itself (I2)", async () => {
    const { driver, connection } = watchedDriver();
    const store = await open(sqliteStore(makePath(), { driver }));
    const { leases } = await store.step(turn({ accepts: [event("a")], claim: { limit: 1 } }));
    connection().pragma(`max_page_count = ${connection().pragma("page_count", { simple: true })}`);
    const big = event("big", 1, { raw: Buffer.alloc(100_000) });
    const result = await store.step(turn({ accepts: [big], settles: leases.map(complete) }));
    expect(result).toMatchObject({
      accepted: [{ outcome: "failed", error: { code: "store_full" } }],
      settled: [{ status: "settled" }],
    });
    connection().pragma("max_page_count = 1000000");
    expect((await store.step(turn({ accepts: [big] }))).accepted).toMatchObject([{ outcome: "accepted" }]);
  });

  it("gives pruned pages back to the file system", async () => {
    const path = makePath();
    const clock = createFakeClock(Date.now());
    const store = await open(sqliteStore(path), { clock });
    const accepts = [...Array(50).keys()].map((n) => event(`m${n}`, 1, { raw: Buffer.alloc(20_000, "y") }));
    const { leases } = await store.step(turn({ accepts, claim: { limit: 50 } }));
    await store.step(turn({ settles: leases.map(complete) }));
    await clock.advance(60_000);
    await store.step(turn({ accepts: [event("new", 1, { signedAt: clock.now() })] }));
    const db = connect(path, { readonly: true });
    const pages = () => Number(db.pragma("page_count", { simple: true }));
    const before = pages();
    const ages = { handledBodiesMs: 1_000, otherBodiesMs: 1_000, identitiesMs: 1_000_000, deadMs: 1_000_000 };
    expect(await store.prune({ ...ages, batch: 100 })).toMatchObject({ bodies: 50, events: 0, more: false });
    expect(pages()).toBeLessThan(before / 2);
  });
});

/** A database of the inbox's tables. With `events` an application's `analyze` has come upon as many of them. */
function analysed(events: number | null, perLane: number): Database.Database {
  const db = new Database(":memory:");
  for (const { sql } of MIGRATIONS) db.exec(sql);
  if (events === null) return db;
  db.exec(`
    with recursive n (id) as (select 0 union all select id + 1 from n limit ${events / perLane})
    insert into oncehook_lane (name, source, tenant, ord, status, cursor, token, below) select 'm' || id, 'service', 'client', 1, 0, 1, 1, 0 from n;
    with recursive n (id) as (select 0 union all select id + 1 from n limit ${events})
    insert into oncehook_event (lane, seq, type, source, tenant, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest)
      select 1 + id / ${perLane}, 1 + id % ${perLane}, 'message.sent', 'service', 'client', 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, x'00' from n;
    insert into oncehook_body (event, raw) select id, x'00' from oncehook_event;
    analyze`);
  return db;
}

describe.each([
  ["that was never analysed", null, 1],
  ["analysed with 1 event", 1, 1],
  ["analysed with 2 events of a lane", 2, 2],
  ["analysed with 300 lanes", 300, 1],
  ["analysed with 300 events of a lane", 300, 300],
])("query plans of a file %s", (_how, events, perLane) => {
  const db = analysed(events, perLane);
  const plan = (sql: string) => {
    const values = Array.from({ length: (sql.match(/\?/g) ?? []).length }, () => 1);
    return (db.prepare(`explain query plan ${sql}`).all(...values) as { detail: string }[]).map(({ detail }) => detail);
  };

  const found = (query: Partial<EventQuery>) => findSql({ ...query, limit: 10 }).sql;
  const lanes = (status: number) => lanesSql({ status, filters: [], limit: 10 }, [0, 1]).sql;

  it("read the ends of a table and no more of it", () => {
    for (const table of ["oncehook_event", "oncehook_lane", "oncehook_quarantine"] as const) {
      const steps = plan(endsSql(table)).filter((step) => step.includes(table));
      expect(steps).toEqual([`SEARCH ${table}`, `SEARCH ${table}`]);
    }
  });

  it("scan no table on the hot path", () => {
    const statements = Object.values(SQL).filter((sql) => /^(select|update|delete)/.test(sql));
    expect(statements.length).toBeGreaterThan(30);
    for (const sql of statements) expect(plan(sql).join("; "), sql).not.toMatch(/\bSCAN\b/);
  });

  it.each([
    ["due lanes", SQL.dueLanes, /oncehook_lane_due \(ready_at/],
    ["expired leases", SQL.expiredLanes, /oncehook_lane_lease \(ready_at/],
    ["whether one is expired", SQL.expiredLease, /oncehook_lane_lease \(ready_at/],
    ["the next due time", SQL.soonest, /oncehook_lane_due.*oncehook_lane_lease/],
    ["a lane's head", SQL.head, /oncehook_event_place \(lane=\? AND seq>/],
    ["a lane's late head", SQL.lateHead, /oncehook_event_place \(lane=/],
    ["a replay below a cursor by position", SQL.replayBelow, /oncehook_event_place \(lane=\? AND seq</],
    ["a late head by position", SQL.lateByPosition, /oncehook_event_place \(lane=\? AND seq</],
    ["what waits behind a lease", SQL.idleLane, /oncehook_event_place \(lane=\? AND seq>/],
    ["whether a sequence is settled", SQL.settledAt, /oncehook_event_place \(lane=\? AND seq=/],
    ["what can be pruned", PRUNABLE, /oncehook_event_keep \(keep=\? AND finished</],
    ["and where no time was signed", PRUNABLE_UNTIMED, /oncehook_event_untimed \(keep=\? AND finished</],
    ["the oldest pending event", OLDEST_PENDING, /oncehook_event_open \(state=/],
    ["dead letters, newest first", found({ states: ["dead"] }), /oncehook_event_open \(state=\?\)(?!.*TEMP B-TREE)/],
    ["unhandled events", found({ outcome: "unhandled" }), /oncehook_event_unhandled/],
    ["conflicts", found({ conflict: true }), /oncehook_event_conflict/],
    ["late events", found({ late: true }), /oncehook_event_late/],
    ["an error", found({ errorCode: "x" }), /oncehook_event_error/],
    ["a lane", found({ lane: "x" }), /oncehook_lane_key \(name=\?\)/],
    ["an event's own id", found({ id: "x" }), /oncehook_event_own_id \(own_id=\?\)/],
    ["a known event", SQL.knownById, /oncehook_event_own_id \(own_id=\? AND source=\? AND tenant=\?\)/],
    [
      "a source and a tenant, newest first",
      `select id ${OWNED} order by id desc limit 9`,
      /oncehook_event_owner \(source=\? AND tenant=\?\)(?!.*TEMP B-TREE)/,
    ],
    ["the next source", NEXT_SOURCE, /oncehook_event_owner \(source>\?\)/],
    ["the next tenant of a source", NEXT_TENANT, /oncehook_event_owner \(source=\? AND tenant>\?\)/],
    ["blocked lanes, newest first", lanes(STATUS.blocked), /oncehook_lane_parked \(status=\?[^;]*(?!.*TEMP B-TREE)/],
    ["lanes in a gap", lanes(STATUS.gap), /oncehook_lane_parked \(status=\? AND rowid>/],
    ["lanes in backoff", lanes(STATUS.backoff), /oncehook_lane_parked \(status=\? AND rowid>/],
    ["lanes that are being handled", lanes(STATUS.leased), /oncehook_lane_lease/],
  ])("use the small index for %s", (_what, sql, index) => {
    expect(plan(sql).join("; ")).toMatch(index);
  });
});

/** A large SQLite inbox goes to Postgres in a process that is killed on the way; then a receiver goes on there. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { InboxStore, Lease, Settle, Turn } from "../../../src/inbox/store.ts";
import { copyInbox } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { seededRandom } from "../../../src/tools/testing/index.ts";
import { sized } from "../../setup/form.ts";
import { failureOf } from "../../support/failure-of.ts";
import { makePath } from "../sqlite-place.ts";
import { event, openForReceiver, quarantine, turn } from "../sqlite-turns.ts";
import { newPool, newSchema, sql, urlOf } from "./place.ts";

/** 20,000 take some 7 s on two idle cores: for a copy that was changed. */
const EVENTS = Number(process.env.COPY_EVENTS ?? sized({ quick: 2_000, full: 4_000 }));
const SEED = Number(process.env.COPY_SEED ?? 20_261_120);
const BATCH = 500;
/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../../.build/test/stores/postgres/copy-child.js", import.meta.url));

const random = seededRandom(SEED);

async function open<Tx>(store: InboxStore<Tx>): Promise<InboxStore<Tx>> {
  await openForReceiver(store);
  return store;
}

function eventOf(lane: number, sequence: number): NewEvent {
  const name = `msg_${lane}`;
  const raw = new TextEncoder().encode(JSON.stringify({ name, sequence, text: "x".repeat(200) }));
  const key = { source: "service", tenant: `client_${lane % 3}`, name, order: "sequence" } as const;
  return event(name, sequence, { lane: key, raw, gapWaitMs: lane % 7 === 0 ? 3_600_000 : 0 });
}

function step<Tx>(store: InboxStore<Tx>, wish: Partial<Omit<Turn<Tx>, "claim">> & { limit?: number }) {
  const { limit = 0, ...rest } = wish;
  const quarantineQuota = { maxRows: 1_000, maxBytes: 1_000_000 };
  return store.step(turn<Tx>({ quarantineQuota, ...rest, claim: { limit } }));
}

/** Ends a lease one way or another; some stay leased. */
function settleOf(lease: Lease): Settle<never>[] {
  const failure = { code: "handler_failed", message: "It failed.", durationMs: 5 };
  const chance = random();
  if (chance < 0.7) return [{ kind: "complete", lease, outcome: chance < 0.1 ? "unhandled" : "handled", effects: [] }];
  if (chance < 0.8) return [{ kind: "retry", lease, delayMs: 0, failure }];
  if (chance < 0.9) return [{ kind: "dead", lease, failure, onDead: chance < 0.85 ? "block" : "continue" }];
  return chance < 0.99 ? [{ kind: "release", lease, delayMs: 0, ran: false }] : [];
}

/** Shuffled within a window, some twice, four to a lane. */
async function fill(store: InboxStore<unknown>): Promise<void> {
  let settles: Settle<never>[] = [];
  for (let first = 0; first < EVENTS; first += BATCH) {
    const numbers = Array.from({ length: BATCH }, (_, index) => first + index);
    const order = numbers.map((number) => ({ number, key: random() })).sort((a, b) => a.key - b.key);
    const accepts = order.map(({ number }) => eventOf(number >> 2, (number % 4) + 1));
    const { leases } = await step(store, { settles, accepts: [...accepts, ...accepts.slice(0, 10)], limit: 200 });
    settles = leases.flatMap(settleOf);
  }
  const quarantines = Array.from({ length: 20 }, (_, index) => quarantine(Buffer.from(`{${index}`)));
  await step(store, { settles, quarantines });
}

/** Runs the copy in a process of its own; with `killAfter`, until that many pages were told. Returns its last line. */
async function copyInChild(path: string, schema: string, killAfter?: number): Promise<string> {
  const place = [path, inject("postgresUrl"), schema];
  const child = spawn(process.execPath, [CHILD, ...place], { stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  let [lines, last] = [0, ""];
  for await (const line of createInterface({ input: child.stdout })) {
    last = line;
    if (++lines === killAfter) child.kill("SIGKILL");
  }
  await closed;
  return last;
}

/**
 * What is handed out from now on, in its order, each completed. Every turn has a millisecond of its own: lanes that became ready in two
 * turns of the same one are told apart by their ids and not by their turns.
 */
async function handOuts<Tx>(store: InboxStore<Tx>): Promise<string[]> {
  const seen: string[] = [];
  let settles: Settle<Tx>[] = [];
  for (;;) {
    const before = Date.now();
    while (Date.now() === before) await new Promise(setImmediate);
    const { leases } = await step(store, { settles, limit: 200 });
    if (leases.length === 0) return seen;
    seen.push(...leases.map(({ event, sequence, attempt }) => `${event} ${sequence} ${attempt}`));
    settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }));
  }
}

describe("copyInbox()", () => {
  it(`takes ${EVENTS} events to Postgres, killed on the way and run again: the same counts and order (I1, I2, I4)`, async () => {
    const [path, schema, pool] = [makePath(), newSchema(), newPool()];
    const fromStore = () => sqliteStore(path, { minFreeBytes: 0 });
    const toStore = () => postgresStore(pool, { schema, listen: false });
    const source = await open(fromStore());
    await fill(source as InboxStore<unknown>);
    await source.close();

    const pages = Math.ceil(EVENTS / 4 / 250);
    const killAfter = 1 + Math.floor(random() * (pages - 1));
    expect(await copyInChild(path, schema, killAfter)).toMatch(/^copy /);
    await expect(open(toStore())).rejects.toMatchObject({ code: "copy_unfinished" });

    const result = JSON.parse(await copyInChild(path, schema));
    expect(result).toMatchObject({ events: EVENTS, lanes: EVENTS / 4, quarantined: 20 });
    expect(result.lanesBefore).toBeGreaterThanOrEqual(killAfter * 250);
    expect(result.lanesBefore).toBeLessThan(EVENTS / 4);
    for (const state of ["pending", "done", "dead", "attempts"]) expect(result[state]).toBeGreaterThan(0);

    const [from, to] = [await open(fromStore()), await open(toStore())];
    const [before, after] = [await from.stats(), await to.stats()];
    for (const figure of ["gauges", "counters", "newestSignedAt", "serviceResigns"] as const) {
      expect(after[figure]).toEqual(before[figure]);
    }

    // Everything that was accepted is known there: the service's retries change nothing.
    const retries = Array.from({ length: 400 }, (_, index) => eventOf((index * 7) % (EVENTS / 4), (index % 4) + 1));
    const { accepted } = await step(to, { accepts: retries });
    expect(new Set(accepted.map(({ outcome }) => outcome))).toEqual(new Set(["duplicate"]));

    // Leases are not copied, so the source gets to the same place by taking its own back.
    const twin = memoryStore({ volatile: true, maxEvents: EVENTS });
    await from.close();
    await copyInbox({ from: fromStore(), to: twin });
    const expected = await handOuts(await open(twin as InboxStore<unknown>));
    const seen = await handOuts(to);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).toEqual(expected);
    // Each once, and none that the source had handled.
    expect(new Set(seen.map((line) => line.split(" ")[0])).size).toBe(seen.length);
    expect((await to.stats()).counters.handled).toBe(before.counters.handled + seen.length);
    await to.close();
  }, 300_000);

  it("takes a wait that ends in a fraction of a millisecond, as SQLite may hold it (I9)", async () => {
    const source = await open(sqliteStore(makePath()));
    const { leases } = await step(source, { accepts: [eventOf(1, 1)], limit: 1 });
    const failure = { code: "handler_failed", message: "It failed.", durationMs: 1 };
    await step(source, { settles: leases.map((lease) => ({ kind: "retry", lease, delayMs: 3_600_000.4, failure })) });
    const [lane] = await source.export(0, 1);
    await source.close();
    const target = postgresStore(newPool(), { schema: newSchema(), listen: false });
    expect(await copyInbox({ from: source, to: target })).toMatchObject({ lanes: 1, pending: 1 });
    const to = await open(target);
    expect(await to.lane(lane?.id ?? 0)).toMatchObject({ status: "backoff", readyAt: Math.round(lane?.readyAt ?? 0) });
    await to.close();
  });

  it("names the rights it needs on another role's sequences, and continues once they are granted", async () => {
    const [role, there] = [`place_${process.pid}_copier`, newSchema()];
    await (await open(postgresStore(inject("postgresUrl"), { schema: there, listen: false }))).close();
    await sql(`create role ${role} login password 'secret'; grant usage on schema ${there} to ${role};
      grant all on all tables in schema ${there} to ${role}; grant usage on all sequences in schema ${there} to ${role}`);
    onTestFinished(() => sql(`drop owned by ${role}; drop role ${role}`).then(() => {}));
    const source = memoryStore({ volatile: true });
    await step((await open(source)) as InboxStore<unknown>, { accepts: [eventOf(1, 1)] });
    await source.close();
    const to = postgresStore(urlOf({ user: role }), { schema: there, listen: false });
    await expect(copyInbox({ from: source, to })).rejects.toMatchObject({
      ...{ code: "store_unavailable", fields: { sqlState: "42501" } },
      message: expect.stringContaining("copyInbox() also needs SELECT and UPDATE on the sequences"),
    });
    await sql(`grant select, update on all sequences in schema ${there} to ${role}`);
    expect(await copyInbox({ from: source, to })).toMatchObject({ lanes: 1, events: 1, lanesBefore: 1 });
  });

  it("refuses a process that read the rules before the inbox was marked, and opens after it", async () => {
    const target = newSchema();
    const store = () => postgresStore(newPool(), { schema: target, listen: false });
    await (await open(store())).close();
    const marking = new pg.Client({ connectionString: inject("postgresUrl") });
    await marking.connect();
    onTestFinished(() => marking.end());
    // As markMoved() does, which all others wait for before they enter themselves.
    await marking.query("begin");
    await marking.query(`select pg_advisory_xact_lock(hashtext('oncehook open "${target}"'))`);
    const opening = failureOf(open(store()));
    const waiting = `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
      and pid in (select pid from pg_stat_activity where query like '%open "${target}"%')`;
    await expect.poll(async () => (await sql(waiting))[0]?.n).toBe(1);
    await marking.query(`insert into ${target}.meta values ('moved_to', 'elsewhere:')`);
    await marking.query("commit");
    expect(await opening).toMatchObject({ code: "inbox_moved", fields: { movedTo: "elsewhere:" } });
    expect(await sql(`select * from ${target}.instance`)).toEqual([]);
  });
});

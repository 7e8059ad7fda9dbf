/** Events that begin their messages, accepted in one statement: what it stores, and what is run as any other turn. */

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { SequenceRules, TurnResult } from "../../../src/inbox/store.ts";
import { ORDER } from "../../../src/stores/database.ts";
import { type Bench, nameOf } from "../../contracts/store-bench.ts";
import type { HeldPool } from "./interleavings-pool.ts";
import { type Scene, scene } from "./interleavings-scene.ts";

const ONE_STATEMENT = ["accept_fresh"];
const FEW = 16;

/** A scene whose first process has accepted an event. */
async function begun(firstSequence: SequenceRules["firstSequence"] = 1): Promise<Scene> {
  const all = await scene(firstSequence);
  await all.one.accept(all.one.of("first", 1));
  return all;
}

/** What `work` sends. */
async function sentBy(pool: HeldPool, work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = pool.sent.length;
  await work();
  return pool.sent.slice(before);
}

const outcomesOf = async (accepting: Promise<TurnResult>) => outcomesIn(await accepting);
const outcomesIn = ({ accepted }: TurnResult) => accepted.map(({ outcome }) => outcome);

describe("events that begin their messages", () => {
  const wish = { peer: "+1", externalReference: "order 1", trace: "00-1" };
  const alone = { order: null };
  const headed = { head: '{"x":"y"}', untimed: true } as const;
  const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

  it.each<readonly [string, string, (one: Bench, name: string) => readonly NewEvent[]]>([
    [
      "by sequence",
      "accept_fresh",
      (one, name) => [
        one.of(name, 1, { ...wish, gapWaitMs: 1.5 }),
        one.of(`${name} of no tenant`, 1, { lane: { tenant: null }, raw: Buffer.from("{}") }),
      ],
    ],
    [
      "alone in their lanes",
      "accept_fresh_of_source",
      (one, name) => [
        one.of(name, 0, { lane: alone, raw: Buffer.from("{}"), ...wish }),
        one.of(digestOf(name), 0, { lane: alone }),
        one.of(name, 0, { lane: { ...alone, source: "shop", tenant: null } }),
      ],
    ],
    [
      "of every order",
      "accept_fresh_of_source",
      (one, name) => [
        one.of(name, 1, wish),
        one.of(name, 0, { lane: alone, ...headed }),
        one.of(name, 7, { lane: { order: "position" }, ownId: `${name} 7`, gapWaitMs: 0, ...wish, ...headed }),
        one.of(name, 0, { lane: { order: "arrival" }, ownId: `${name} of arrival`, gapWaitMs: 0, ...headed }),
      ],
    ],
  ])("are stored as a turn stores them that locks its lanes: %s", async (_, statement, events) => {
    const { one, onesPool, pool, schema } = await begun();
    const answers: TurnResult[] = [];
    const sent = await sentBy(onesPool, async () => answers.push(await one.accept(...events(one, "fresh"))));
    expect(sent).toEqual([statement]);
    const locking = await sentBy(onesPool, async () =>
      answers.push(await one.step({ accepts: events(one, "other"), claim: { lane: 1_000_000 } })),
    );
    expect(locking).toContain("lock");
    const [stored, expected] = await Promise.all(
      answers.map(async ({ accepted }) => {
        const ids = accepted.map((answer) => (answer.outcome === "accepted" ? answer.event : 0));
        const { rows } = await pool.query(
          `select to_jsonb(l) - '{id,name}'::text[] as lane, to_jsonb(e) - '{id,lane,seq,digest,own_id}'::text[] as event, b.head,
             octet_length(l.name) as name, octet_length(e.own_id) as own_id,
             case when l.ord = ${ORDER.arrival} then e.seq - e.id else e.seq end as seq,
             encode(e.digest, 'hex') = encode(sha256(b.raw), 'hex') as is_whole
           from ${schema}.lane l join ${schema}.event e on e.lane = l.id join ${schema}.body b on b.event = e.id
           where e.id = any($1) order by e.id`,
          [ids],
        );
        return rows;
      }),
    );
    expect(stored).toHaveLength(events(one, "").length);
    expect(stored).toEqual(expected);
    for (const row of stored ?? []) expect(row.is_whole).toBe(true);
    // Both are known by the same ids.
    for (const name of ["fresh", "other"])
      expect(new Set(await outcomesOf(one.accept(...events(one, name))))).toEqual(new Set(["duplicate"]));
  });

  it("are alone in their lanes: each is found by its own id, whatever their number, and comes again as a duplicate", async () => {
    const { one, onesPool } = await begun();
    const events = ["a", "b", "c"].map((id) => one.of(id, 0, { lane: alone }));
    expect(await sentBy(onesPool, () => one.accept(...events))).toEqual(["accept_fresh_of_source"]);
    const lanes = await Promise.all(["a", "b", "c"].map((id) => one.lane(id, alone)));
    expect(lanes.map(({ key }) => key)).toEqual(events.map(({ lane }) => lane));
    expect(new Set(lanes.map(({ id }) => id)).size).toBe(3);
    // The same id from another source, or of another tenant, is another event.
    const others = [{ source: "shop" }, { tenant: "other" }, { tenant: null }].map((lane) =>
      one.of("a", 0, { lane: { ...alone, ...lane } }),
    );
    expect(await sentBy(onesPool, () => one.accept(...others))).toEqual(["accept_fresh_of_source"]);
    const again = await sentBy(onesPool, async () => {
      expect(await outcomesOf(one.accept(one.of("d", 0, { lane: alone }), ...events.slice(0, 1)))).toEqual([
        "accepted",
        "duplicate",
      ]);
    });
    expect(again.slice(0, 2)).toEqual(["accept_fresh_of_source", expect.stringMatching(/^begin/)]);
    expect(await one.store.stats()).toMatchObject({ counters: { accepted: 8, duplicates: 1 } });
    expect((await one.claim()).map(nameOf)).toEqual(["first", "a", "b", "c", "a", "a", "a", "d"]);
  });

  it("are no duplicates of the name of a lane", async () => {
    const { one, onesPool } = await begun();
    expect(await sentBy(onesPool, () => one.accept(one.of("first", 0, { lane: alone })))).toEqual([
      "accept_fresh_of_source",
    ]);
    expect(await one.store.stats()).toMatchObject({ counters: { accepted: 2, duplicates: 0 } });
  });

  it("without a signed time say nothing about the newest one, and are counted", async () => {
    const { one, onesPool } = await begun();
    const { newestSignedAt } = await one.store.stats();
    const ahead = { lane: alone, untimed: true, signedAt: one.clock.now() + 60_000 } as const;
    expect(await sentBy(onesPool, () => one.accept(one.of("a", 0, ahead)))).toEqual(["accept_fresh_of_source"]);
    const stats = { newestSignedAt, gauges: { pending: 2 }, counters: { accepted: 2 } };
    expect(await one.store.stats()).toMatchObject(stats);
  });

  it("are not held up by events of another source that are not the first", async () => {
    const { one, onesPool } = await begun();
    const paid = (ownId: string, at: number) =>
      one.of("sub_1", at, { lane: { order: "position" }, ownId, gapWaitMs: 0 });
    await one.accept(paid("a", 1));
    for (const [number, turns] of [16, 32].entries()) {
      const sent = await sentBy(onesPool, () => one.accept(paid(`b${number}`, 2 + number)));
      expect(sent.slice(0, 2)).toEqual(["accept_fresh_of_source", expect.stringMatching(/^begin/)]);
      expect(await sentBy(onesPool, () => one.accept(one.of(`m${number}`, 1)))).toEqual(ONE_STATEMENT);
      for (let turn = 0; turn < turns; turn++) {
        const locking = await sentBy(onesPool, () => one.accept(paid(`${number} ${turn}`, 10)));
        expect(locking).not.toContain("accept_fresh_of_source");
      }
    }
    expect(await sentBy(onesPool, () => one.accept(paid("last", 11)))).toContain("accept_fresh_of_source");
  });

  it("do not wait for one of a lower position", async () => {
    const { one, onesPool } = await begun();
    const position = { lane: { order: "position" }, ownId: "evt_1" } as const;
    expect(await sentBy(onesPool, () => one.accept(one.of("a", 7, { ...position, gapWaitMs: 1 })))).toContain("lock");
    expect((await one.lane("a", position.lane)).status).toBe("gap");
  });

  it.each([
    { firstSequence: 0, first: 0, later: 1 },
    { firstSequence: 3, first: 3, later: 4 },
    { firstSequence: "any", first: 7, later: null },
  ] as const)("are those that wait for none before them: $firstSequence comes first", async (rule) => {
    const { one, onesPool } = await begun(rule.firstSequence);
    expect(await sentBy(onesPool, () => one.accept(one.of("a", rule.first)))).toEqual(ONE_STATEMENT);
    expect((await one.lane("a")).status).toBe("ready");
    if (rule.later === null) return;
    expect(await sentBy(onesPool, () => one.accept(one.of("b", rule.later)))).toContain("lock");
    expect((await one.lane("b")).status).toBe("gap");
  });

  it("are answered with their numbers, counted, and handed out in the order in which they came", async () => {
    const { one } = await begun();
    await one.clock.advance(1);
    const { accepted } = await one.accept(one.of("z", 1), one.of("a", 1));
    const lanes = [await one.lane("z"), await one.lane("a")];
    const numbers = lanes.map(({ id, events: [first] }) => ({ outcome: "accepted", lane: id, event: first?.id }));
    expect(accepted).toEqual(numbers);
    const stats = { gauges: { pending: 3 }, counters: { accepted: 3 }, newestSignedAt: one.clock.now() };
    expect(await one.store.stats()).toMatchObject(stats);
    expect((await one.claim()).map(nameOf)).toEqual(["first", "z", "a"]);
  });
});

/**
 * Runs both turns, each of which stops before the row that has its text in `column`, until both wait. Two that stop each other would be a
 * deadlock then.
 */
async function meetBefore<T>(
  { pool, schema, onesPool, othersPool }: Scene,
  table: "lane" | "event",
  column: string,
  texts: { readonly one: string; readonly other: string },
  turns: () => readonly Promise<T>[],
): Promise<readonly T[]> {
  await pool.query(`create function ${schema}.stop() returns trigger language plpgsql as $$ begin
      if current_setting('application_name') || encode(new.${column}, 'escape') in ('${schema}_one${texts.one}', '${schema}_other${texts.other}')
      then perform pg_advisory_xact_lock_shared(${process.pid}); end if; return new; end $$;
    create trigger stop before insert on ${schema}.${table} for each row execute function ${schema}.stop()`);
  const barrier = await pool.connect();
  await barrier.query(`select pg_advisory_lock(${process.pid})`);
  const running = Promise.all(turns());
  await Promise.all([onesPool.waits(), othersPool.waits()]);
  await barrier.query(`select pg_advisory_unlock(${process.pid})`);
  barrier.release();
  const results = await running;
  expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
  return results;
}

describe("two turns that make the same lanes", () => {
  it("make them in one order, and never wait for each other in a circle", async () => {
    const both = await begun();
    const { one, other } = both;
    await other.accept(other.of("second", 1));
    const results = await meetBefore(both, "lane", "name", { one: "b", other: "a" }, () => [
      one.accept(one.of("a", 1), one.of("b", 1)),
      other.accept(other.of("b", 1), other.of("a", 1)),
    ]);
    const outcomes = results.flatMap(outcomesIn);
    expect(outcomes.toSorted()).toEqual(["accepted", "accepted", "duplicate", "duplicate"]);
  });
});

describe("two turns that accept the same events in different lanes", () => {
  const WAYS = ["one statement", "a transaction"] as const;
  type Way = (typeof WAYS)[number];
  const orders = [
    ["a", "b"],
    ["b", "a"],
  ] as const;
  const cases = WAYS.flatMap((first) =>
    WAYS.flatMap((second) => orders.map((seconds) => ({ first, second, seconds, order: seconds.join(" and ") }))),
  );
  const turn = (bench: Bench, way: Way, accepts: readonly NewEvent[]) =>
    way === "one statement" ? bench.accept(...accepts) : bench.step({ accepts, claim: { lane: 1_000_000 } });

  it.each(cases)("take each once: a and b by $first, $order by $second", async ({ first, second, seconds }) => {
    const both = await begun();
    const { one, other, onesPool, othersPool, pool, schema } = both;
    await other.accept(other.of("second", 1));
    const shared = (ownId: string) => one.of(`lane ${ownId}`, 1, { lane: { order: "position" }, ownId, gapWaitMs: 0 });
    const alone = (ownId: string) => other.of(ownId, 0, { lane: { order: null } });
    const results = await meetBefore(both, "event", "own_id", { one: "b", other: seconds[1] }, () => [
      turn(one, first, ["a", "b"].map(shared)),
      turn(other, second, seconds.map(alone)),
    ]);
    const outcomes = results.map((result) => outcomesIn(result).join());
    expect(outcomes.toSorted()).toEqual(["accepted,accepted", "duplicate,duplicate"]);
    expect(onesPool.sent.includes("accept_fresh_of_source")).toBe(first === "one statement");
    expect(othersPool.sent.includes("accept_fresh_of_source")).toBe(second === "one statement");
    for (const id of ["a", "b"]) expect(await one.find({ id })).toMatchObject([{ state: "pending", duplicates: 1 }]);
    const stats = { gauges: { pending: 4 }, counters: { accepted: 4, duplicates: 2, conflicts: 0 } };
    expect(await one.store.stats()).toMatchObject(stats);
    expect((await one.claim()).map(({ ownId }) => ownId ?? "").toSorted()).toEqual(["", "", "a", "b"]);
    // The turn that came second has left nothing.
    const { rows } = await pool.query(
      `select (select count(*)::int from ${schema}.lane) as lanes, (select count(*)::int from ${schema}.event) as events,
         (select count(*)::int from ${schema}.body) as bodies`,
    );
    expect(rows).toEqual([{ lanes: 4, events: 4, bodies: 4 }]);
  });

  it.each(WAYS)("and of two tenants that have one id, in opposite orders, by %s", async (way) => {
    const both = await begun();
    const { one, other } = both;
    await other.accept(other.of("second", 1));
    const of = (tenant: string) => one.of("evt_1", 0, { lane: { order: null, tenant } });
    const results = await meetBefore(both, "event", "tenant", { one: "b", other: "a" }, () => [
      turn(one, way, ["a", "b"].map(of)),
      turn(other, way, ["b", "a"].map(of)),
    ]);
    const outcomes = results.map((result) => outcomesIn(result).join());
    expect(outcomes.toSorted()).toEqual(["accepted,accepted", "duplicate,duplicate"]);
  });
});

describe("a turn is run as any other", () => {
  const others: readonly (readonly [string, (one: Bench) => Promise<unknown>])[] = [
    ["that accepts nothing", (one) => one.step()],
    ["with an event that is not the first", (one) => one.accept(one.of("a", 1), one.of("b", 2))],
    ["with two events of a message", (one) => one.accept(one.of("a", 1), one.of("a", 0))],
    [
      "with an event that comes twice, in different lanes",
      (one) => one.accept(one.of("a", 1, { ownId: "evt_1" }), one.of("b", 1, { ownId: "evt_1" })),
    ],
    [
      "with a value that cannot be sent",
      (one) => one.accept(one.of("a", 1), one.of("b", 1, { peer: 5 as unknown as string })),
    ],
    ["that claims", (one) => one.step({ accepts: [one.of("a", 1)], claim: { limit: 1 } })],
    ["that claims a lane", (one) => one.step({ accepts: [one.of("a", 1)], claim: { lane: 1 } })],
    ["that quarantines", (one) => one.step({ accepts: [one.of("a", 1)], quarantines: [one.quarantine("{")] })],
    ["that counts repeats", (one) => one.accept(one.of("a", 1, { repeats: { count: 1, signedAt: one.clock.now() } }))],
    [
      "that settles",
      async (one) => {
        const lease = await one.claimOne();
        await one.step({ accepts: [one.of("a", 1)], settles: [one.complete(lease)] });
      },
    ],
  ];

  it.each(others)("%s", async (_what, run) => {
    const { one, onesPool } = await begun();
    const sent = await sentBy(onesPool, () => run(one));
    expect(sent.filter((name) => name.startsWith("accept_fresh"))).toEqual([]);
    expect(sent).toContain("commit");
  });

  it("when a lane is there already, and so are the next ones: deliveries repeat in bursts", async () => {
    const { one, onesPool } = await begun();
    await one.accept(one.of("a", 1));
    const again = await sentBy(onesPool, async () => {
      expect(await outcomesOf(one.accept(one.of("b", 1), one.of("a", 1)))).toEqual(["accepted", "duplicate"]);
    });
    expect(again.slice(0, 2)).toEqual([...ONE_STATEMENT, expect.stringMatching(/^begin/)]);
    for (let index = 0; index < FEW; index++) {
      const sent = await sentBy(onesPool, () => one.accept(one.of(`m${index}`, 1)));
      expect(sent).not.toContain("accept_fresh");
    }
    expect(await sentBy(onesPool, () => one.accept(one.of("c", 1)))).toEqual(ONE_STATEMENT);
    expect(await one.store.stats()).toMatchObject({ counters: { accepted: FEW + 4, duplicates: 1 } });
  });

  it("when another process makes its lane meanwhile (I1, I5)", async () => {
    const { meet, one, other, othersPool, drained } = await begun();
    await other.accept(other.of("second", 1));
    const [first, second] = await meet("commit", [
      () => one.step({ accepts: [one.of("m", 2)] }),
      () => other.accept(other.of("m", 1)),
    ]);
    expect([...first.accepted, ...second.accepted].map(({ outcome }) => outcome)).toEqual(["accepted", "accepted"]);
    expect(othersPool.sent).toContain("lock");
    expect((await drained()).toSorted()).toEqual([1, 1, 1, 2]);
  });

  it("when the table does not keep a lane: nothing of its event is left", async () => {
    const { one, pool, schema } = await begun();
    await pool.query(`create function ${schema}.swallow() returns trigger language plpgsql as 'begin return null; end';
      create trigger swallow before insert on ${schema}.lane for each row execute function ${schema}.swallow()`);
    await expect(one.accept(one.of("a", 1))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/new lanes do not stay in its tables/),
    });
    const { rows } = await pool.query(`select count(*)::int as events from ${schema}.event`);
    expect(rows).toEqual([{ events: 1 }]);
  });

  it("not when the answer is lost, as by a pooler: it was written", async () => {
    const { one, onesPool } = await begun();
    const hold = onesPool.holdAnswer("accept_fresh");
    const accepting = one.accept(one.of("a", 1));
    await hold.reached;
    hold.release(Object.assign(new Error("server conn crashed?"), { code: "08P01" }));
    await expect(accepting).rejects.toThrow();
    expect(onesPool.sent.slice(-1)).toEqual(ONE_STATEMENT);
    expect(await one.at(1, "a")).toMatchObject({ state: "pending", duplicates: 0 });
  });
});

describe("a clock that went back more than a second", () => {
  it("makes lanes due that were ready before, though it is noticed after the commit", async () => {
    const { one, onesPool } = await begun();
    one.clock.set(one.clock.now() - 1_001);
    const sent = await sentBy(onesPool, () => one.accept(one.of("a", 1)));
    expect(sent).toEqual([...ONE_STATEMENT, expect.stringMatching(/^begin/), "make_due", "commit"]);
    expect((await one.lane("first")).readyAt).toBe(one.clock.now());
  });

  it("is none where another turn wrote later than a slow one began", async () => {
    const { one, onesPool } = await begun();
    const hold = onesPool.holdAnswer("accept_fresh");
    const slow = one.accept(one.of("slow", 1));
    await hold.reached;
    one.clock.set(one.clock.now() + 60_000);
    await one.accept(one.of("a", 1));
    const { readyAt } = await one.lane("a");
    const sent = await sentBy(onesPool, () => {
      hold.release();
      return slow;
    });
    expect(sent).toEqual([]);
    expect((await one.lane("a")).readyAt).toBe(readyAt);
    one.clock.set(one.clock.now() - 1_001);
    expect(await sentBy(onesPool, () => one.accept(one.of("b", 1)))).toContain("make_due");
  });

  it("is seen to by the next who writes, where that fails: the events are stored", async () => {
    const { one, pool, schema } = await begun();
    await pool.query(`create function ${schema}.refuse() returns trigger language plpgsql as $$ begin
        raise exception 'no'; end $$;
      create trigger refuse before update on ${schema}.lane for each row execute function ${schema}.refuse()`);
    one.clock.set(one.clock.now() - 1_001);
    expect(await outcomesOf(one.accept(one.of("a", 1)))).toEqual(["accepted"]);
    await pool.query(`drop trigger refuse on ${schema}.lane`);
    expect((await one.lane("first")).readyAt).toBeGreaterThan(one.clock.now());
    await one.accept(one.of("b", 1));
    expect((await one.lane("first")).readyAt).toBe(one.clock.now());
  });
});

/** Events that begin their messages, accepted in one statement: what it stores, and what is run as any other turn. */
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../../src/inbox/record.ts";
import type { InboxRules } from "../../../src/inbox/store.ts";
import { TAG } from "../../../src/stores/database.ts";
import type { Bench } from "../../contracts/store-bench.ts";
import type { HeldPool } from "./interleavings-pool.ts";
import { type Scene, scene } from "./interleavings-scene.ts";

const ONE_STATEMENT = ["accept_fresh"];
const FEW = 16;

/** A scene whose first process knows the names of the bench's events. */
async function known(firstSequence: InboxRules["firstSequence"] = 1): Promise<Scene> {
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

const outcomesOf = async (accepting: ReturnType<Bench["accept"]>) =>
  (await accepting).accepted.map(({ outcome }) => outcome);

describe("events that begin their messages", () => {
  const wish = { peer: "+1", externalReference: "order 1", trace: "00-1" };
  const source = { identity: "evt_1", head: '{"x":"y"}', untimed: true } as const;

  it.each<readonly [string, string, (one: Bench, message: string) => readonly NewEvent[]]>([
    [
      "of the messaging service",
      "accept_fresh",
      (one, message) => [
        one.of(message, 1, { ...wish, gapWaitMs: 1.5 }),
        one.of(message, 0, { lane: { tag: "inbound" }, raw: Buffer.from("{}") }),
        one.of(message, 0, { lane: { tag: "unlaned" } }),
      ],
    ],
    ["of another source", "accept_fresh", (one, message) => [one.of(message, 0, { lane: { tag: "single" } })]],
    [
      "of other sources",
      "accept_fresh_of_source",
      (one, message) => [
        one.of(message, 1, wish),
        one.of(message, 0, { lane: { tag: "single" }, untimed: true, head: source.head }),
        one.of(message, 7, { lane: { tag: "position" }, gapWaitMs: 0, ...wish, ...source }),
        one.of(message, 0, { lane: { tag: "arrival" }, gapWaitMs: 0, ...source }),
      ],
    ],
  ])("are stored as a turn stores them that locks its lanes: %s", async (_, statement, events) => {
    const { one, onesPool, pool, schema } = await known();
    const sent = await sentBy(onesPool, () => one.accept(...events(one, "fresh")));
    expect(sent).toEqual([statement]);
    const locking = await sentBy(onesPool, () =>
      one.step({ accepts: events(one, "other"), claim: { lane: 1_000_000 } }),
    );
    expect(locking).toContain("lock");
    const rowsOf = async (message: string) => {
      const { rows } = await pool.query(
        `select to_jsonb(l) - '{id,message}'::text[] as lane, to_jsonb(e) - '{id,lane,seq,digest}'::text[] as event, b.head,
           case when l.tag = ${TAG.arrival} then e.seq - e.id else e.seq end as seq,
           encode(e.digest, 'hex') = encode(sha256(b.raw), 'hex') as is_whole
         from ${schema}.lane l join ${schema}.event e on e.lane = l.id join ${schema}.body b on b.event = e.id
         where l.message = $1 order by e.id`,
        [Buffer.from(message)],
      );
      return rows;
    };
    const stored = await rowsOf("fresh");
    expect(stored).toHaveLength(events(one, "").length);
    expect(stored).toEqual(await rowsOf("other"));
    for (const row of stored) expect(row.is_whole).toBe(true);
  });

  it("without a signed time say nothing about the newest one, and are counted", async () => {
    const { one, onesPool } = await known();
    const { newestSignedAt } = await one.store.stats();
    const ahead = { lane: { tag: "single" }, untimed: true, signedAt: one.clock.now() + 60_000 } as const;
    expect(await sentBy(onesPool, () => one.accept(one.of("a", 0, ahead)))).toEqual(["accept_fresh_of_source"]);
    const stats = { newestSignedAt, gauges: { pending: 2 }, counters: { accepted: 2 } };
    expect(await one.store.stats()).toMatchObject(stats);
  });

  it("are not held up by events of another source that are not the first", async () => {
    const { one, onesPool } = await known();
    const paid = (identity: string, at: number) =>
      one.of("sub_1", at, { lane: { tag: "position" }, identity, gapWaitMs: 0 });
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
    const { one, onesPool } = await known();
    const position = { lane: { tag: "position" }, identity: "evt_1" } as const;
    expect(await sentBy(onesPool, () => one.accept(one.of("a", 7, { ...position, gapWaitMs: 1 })))).toContain("lock");
    expect((await one.lane("a", position.lane)).status).toBe("gap");
  });

  it.each([
    { firstSequence: 0, first: 0, later: 1 },
    { firstSequence: 3, first: 3, later: 4 },
    { firstSequence: "any", first: 7, later: null },
  ] as const)("are those that wait for none before them: $firstSequence comes first", async (rule) => {
    const { one, onesPool } = await known(rule.firstSequence);
    expect(await sentBy(onesPool, () => one.accept(one.of("a", rule.first)))).toEqual(ONE_STATEMENT);
    expect((await one.lane("a")).status).toBe("ready");
    if (rule.later === null) return;
    expect(await sentBy(onesPool, () => one.accept(one.of("b", rule.later)))).toContain("lock");
    expect((await one.lane("b")).status).toBe("gap");
  });

  it("are answered with their numbers, counted, and handed out in the order in which they came", async () => {
    const { one } = await known();
    await one.clock.advance(1);
    const { accepted } = await one.accept(one.of("z", 1), one.of("a", 1));
    const lanes = [await one.lane("z"), await one.lane("a")];
    const numbers = lanes.map(({ id, events: [first] }) => ({ outcome: "accepted", lane: id, event: first?.id }));
    expect(accepted).toEqual(numbers);
    const stats = { gauges: { pending: 3 }, counters: { accepted: 3 }, newestSignedAt: one.clock.now() };
    expect(await one.store.stats()).toMatchObject(stats);
    expect((await one.claim()).map(({ key }) => key.messageId)).toEqual(["first", "z", "a"]);
  });
});

describe("two turns that make the same lanes", () => {
  it("make them in one order, and never wait for each other in a circle", async () => {
    const { one, other, onesPool, othersPool, pool, schema } = await known();
    await other.accept(other.of("second", 1));
    // Each stops before the lane that it was given last.
    await pool.query(`create function ${schema}.stop() returns trigger language plpgsql as $$ begin
        if current_setting('application_name') || encode(new.message, 'escape') in ('${schema}_oneb', '${schema}_othera')
        then perform pg_advisory_xact_lock_shared(${process.pid}); end if; return new; end $$;
      create trigger stop before insert on ${schema}.lane for each row execute function ${schema}.stop()`);
    const barrier = await pool.connect();
    await barrier.query(`select pg_advisory_lock(${process.pid})`);
    const accepting = Promise.all([
      one.accept(one.of("a", 1), one.of("b", 1)),
      other.accept(other.of("b", 1), other.of("a", 1)),
    ]);
    await Promise.all([onesPool.waits(), othersPool.waits()]);
    await barrier.query(`select pg_advisory_unlock(${process.pid})`);
    barrier.release();
    const outcomes = (await accepting).map(({ accepted }) => accepted.map(({ outcome }) => outcome));
    expect(outcomes.flat().toSorted()).toEqual(["accepted", "accepted", "duplicate", "duplicate"]);
    expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
  });
});

describe("a turn is run as any other", () => {
  const others: readonly (readonly [string, (one: Bench) => Promise<unknown>])[] = [
    ["that accepts nothing", (one) => one.step()],
    ["with an event that is not the first", (one) => one.accept(one.of("a", 1), one.of("b", 2))],
    ["with two events of a message", (one) => one.accept(one.of("a", 1), one.of("a", 0))],
    ["with a name that it does not know", (one) => one.accept(one.of("a", 1, { eventType: "message.new" }))],
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
    const { one, onesPool } = await known();
    const sent = await sentBy(onesPool, () => run(one));
    expect(sent.filter((name) => name === "accept_fresh")).toEqual([]);
    expect(sent).toContain("commit");
  });

  it("when a lane is there already, and so are the next ones: deliveries repeat in bursts", async () => {
    const { one, onesPool } = await known();
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
    const { meet, one, other, othersPool, drained } = await known();
    await other.accept(other.of("names", 1));
    const [first, second] = await meet("commit", [
      () => one.step({ accepts: [one.of("m", 2)] }),
      () => other.accept(other.of("m", 1)),
    ]);
    expect([...first.accepted, ...second.accepted].map(({ outcome }) => outcome)).toEqual(["accepted", "accepted"]);
    expect(othersPool.sent).toContain("lock");
    expect((await drained()).toSorted()).toEqual([1, 1, 1, 2]);
  });

  it("when the table does not keep a lane: nothing of its event is left", async () => {
    const { one, pool, schema } = await known();
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
    const { one, onesPool } = await known();
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
    const { one, onesPool } = await known();
    one.clock.set(one.clock.now() - 1_001);
    const sent = await sentBy(onesPool, () => one.accept(one.of("a", 1)));
    expect(sent).toEqual([...ONE_STATEMENT, expect.stringMatching(/^begin/), "make_due", "commit"]);
    expect((await one.lane("first")).readyAt).toBe(one.clock.now());
  });

  it("is none where another turn wrote later than a slow one began", async () => {
    const { one, onesPool } = await known();
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
    const { one, pool, schema } = await known();
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

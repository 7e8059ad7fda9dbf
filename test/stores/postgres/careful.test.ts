/** A turn with rows that Postgres refuses: they fail alone, whatever their neighbours are. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Lease } from "../../../src/inbox/store.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { event, quarantine, turn } from "../sqlite-turns.ts";
import { complete, leases, openAt, SETTLED } from "./desk.ts";
import { newPool, newSchema, sql } from "./place.ts";

/** More than a page of an index takes, and nothing that could be compressed. */
const LONG = randomBytes(6_000).toString("base64");
const long = { source: "service", tenant: "client", name: LONG, order: "sequence" } as const;

describe("step()", () => {
  it("stores and leases the other rows of a batch when some cannot be stored, and keeps nothing of those", async () => {
    const store = await openAt(newSchema());
    const bad = [
      event("", 1, { lane: long }),
      event("new tenant", 1, { lane: { ...long, tenant: LONG, name: "m" } }),
      event("new type", 1, { eventType: LONG }),
      event("time", 1, { occurredAt: 2 ** 64 }),
      event("trace", 1, { trace: "\0" }),
      { ...event("body"), raw: null as unknown as Buffer },
    ];
    const accepts = [event("a"), ...bad, event("b"), event("b"), event("c", 1, { trace: "\0" }), event("d")];
    const { accepted, leases: held } = await store.step(turn<PgClient>({ accepts, claim: { limit: 9 } }));
    const failed = bad.map(() => "failed");
    const outcomes = accepted.map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["accepted", ...failed, "accepted", "duplicate", "failed", "accepted"]);
    const leased = held.map(({ key, acceptIndex }) => [key.name, acceptIndex]);
    expect(leased).toEqual(Object.entries({ a: 0, b: 7, d: 10 }));
    expect(await store.lane(long)).toBeNull();
    expect(await store.stats()).toMatchObject({ gauges: { pending: 3 }, counters: { accepted: 3, duplicates: 1 } });
  });

  it("writes nothing of a batch whose last statement cannot be sent, although its commit could be", async () => {
    const store = await openAt(newSchema(), newPool({ pipeline: true }));
    const accepts = [event("a"), event("time", 1, { occurredAt: 2 ** 64 })];
    const { accepted, quarantined } = await store.step(
      turn<PgClient>({ accepts, quarantines: [quarantine(Buffer.from("{"))] }),
    );
    expect(accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "failed"]);
    expect(quarantined).toEqual(["held"]);
    expect(await store.stats()).toMatchObject({ gauges: { pending: 1, quarantined: 1 } });
  });

  it("reports the reason without the row's values, which the server quotes", async () => {
    const schema = newSchema();
    const store = await openAt(schema);
    await sql(`alter table ${schema}.event add constraint numbered check (trace::int > 0)`);
    const { accepted } = await store.step(turn<PgClient>({ accepts: [event("m", 1, { trace: "quoted" })] }));
    const [answer] = accepted;
    const error = answer?.outcome === "failed" ? answer.error : undefined;
    const cause = { message: expect.stringContaining("quoted") };
    expect(error).toMatchObject({ code: "store_unavailable", fields: { sqlState: "22P02" }, cause });
    expect(String(error)).not.toContain("quoted");
  });

  it("keeps the other bodies when a quarantined body cannot be stored, and settles", async () => {
    const store = await openAt(newSchema());
    const settles = (await leases(store, "m")).map((lease) => complete(lease));
    const [a, b, c] = ["{a", "{b", "{c"].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
    const quarantines = [quarantine(a), quarantine(b, { slot: "\0" }), quarantine(c)];
    const accepts = [event("bad", 1, { trace: "\0" }), event("good")];
    const result = await store.step(turn<PgClient>({ settles, accepts, quarantines }));
    expect(result.settled).toEqual([SETTLED]);
    expect(result.accepted).toMatchObject([{ outcome: "failed" }, { outcome: "accepted" }]);
    expect(result.quarantined).toMatchObject(["held", { outcome: "failed" }, "held"]);
    expect(await store.stats()).toMatchObject({ gauges: { quarantined: 2, pending: 1 }, counters: { handled: 1 } });
  });

  it("fails as a whole, and writes nothing, when none of its rows is at fault", async () => {
    const store = await openAt(newSchema());
    const failure = { code: "e", message: "", durationMs: 1 };
    const retry = (lease: Lease) => ({ kind: "retry", lease, delayMs: Number.NaN, failure }) as const;
    const settles = (await leases(store, "m")).map(retry);
    const stepping = store.step(turn<PgClient>({ settles, accepts: [event("other")] }));
    await expect(stepping).rejects.toMatchObject({ code: "store_unavailable", fields: { sqlState: "22003" } });
    expect(await store.stats()).toMatchObject({ counters: { accepted: 1, retried: 0 } });
  });

  it("makes due what was ready before the clock went back, though its first try was rolled back", async () => {
    const clock = createFakeClock();
    const store = await openAt(newSchema(), newPool(), { clock });
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    clock.set(clock.now() - 3_600_000);
    const accepts = [event("bad", 1, { trace: "\0" })];
    expect(await store.step(turn<PgClient>({ accepts, claim: { limit: 9 } }))).toMatchObject({
      accepted: [{ outcome: "failed" }],
      leases: [{ key: { name: "m" } }],
    });
  });
});

describe("act()", () => {
  it("accepts an operator's name with a character that Postgres does not store", async () => {
    const store = await openAt(newSchema());
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    expect(await store.act({ kind: "discard", event: 1 }, "a\0b\ud83d")).toMatchObject({ ok: true });
    expect(await store.audit(1)).toMatchObject([{ by: "a\ufffdb\ufffd", act: "discard" }]);
  });
});

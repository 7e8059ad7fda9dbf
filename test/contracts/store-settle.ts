/** The store contract on how a lease ends: complete, retry, dead, release; and on effects, which commit with a completion or not at all. */
import { type Bench, type ContractCase, it, nameOf, needing, sequences } from "./store-bench.ts";

export const settleCases: readonly ContractCase[] = [
  it("completes an event once, with its outcome (I8, I10)", async (bench) => {
    await bench.accept(bench.of("a", 1), bench.of("b", 1));
    await bench.clock.advance(5);
    const [a, b] = await bench.claimTwo();
    bench.expect(await bench.settle(bench.complete(a), bench.complete(b, "unhandled"))).toEqual(["settled", "settled"]);
    const finishedAt = bench.clock.now();
    bench.expect(await bench.at(1, "a")).toMatchObject({ state: "done", outcome: "handled", attempts: 1, finishedAt });
    bench.expect(await bench.at(1, "b")).toMatchObject({ state: "done", outcome: "unhandled", finishedAt });
    bench
      .expect(await bench.settle(bench.complete(a), bench.dead(b), bench.retry(a, 0)))
      .toEqual(["lost", "lost", "lost"]);
    bench.expect(await bench.at(1, "b")).toMatchObject({ state: "done", outcome: "unhandled", errorCode: null });
    bench.expect((await bench.store.stats()).counters).toMatchObject({ handled: 1, unhandled: 1, deadLettered: 0 });
  }),
  it("retries an event after its delay and before the rest of its lane, with the attempt on record (I4, I7)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    const failure = { code: "handler_timeout", message: "Too slow.", durationMs: 1_234 };
    await bench.settle(bench.retry(await bench.claimOne(), 10_000, failure));
    const at = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt: at + 10_000, cursor: 1 });
    const { id } = await bench.at(1);
    bench
      .expect(await bench.at(1))
      .toMatchObject({ state: "pending", errorCode: "handler_timeout", error: "Too slow." });
    await bench.clock.advance(9_999);
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(1);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, attempt: 2 });
    bench.expect(await bench.at(1)).toMatchObject({ attempts: 2, startedAt: at });
    const attempt = {
      eventId: id,
      attempt: 1,
      at,
      durationMs: 1_234,
      errorCode: "handler_timeout",
      error: "Too slow.",
    };
    bench.expect((await bench.lane()).attempts).toEqual([attempt]);
    bench.expect((await bench.store.stats()).counters.retried).toBe(1);
  }),
  it("continues a lane after a dead letter (I9, I10)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.dead(await bench.claimOne(), "continue"));
    const finishedAt = bench.clock.now();
    bench.expect(await bench.at(1)).toMatchObject({ state: "dead", finishedAt, errorCode: "handler_failed" });
    bench.expect((await bench.lane()).attempts).toMatchObject([{ attempt: 1, errorCode: "handler_failed" }]);
    bench.expect(sequences(await bench.claim())).toEqual([2]);
    const { gauges, counters } = await bench.store.stats();
    bench.expect([gauges, counters]).toMatchObject([{ dead: 1, blockedLanes: 0 }, { deadLettered: 1 }]);
  }),
  it("blocks a lane after a dead letter on request, whatever else arrives (I4)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.dead(await bench.claimOne(), "block"));
    bench.expect(await bench.lane()).toMatchObject({ status: "blocked", readyAt: null });
    await bench.accept(bench.event(3), bench.event(0));
    await bench.clock.advance(86_400_000);
    bench.expect([await bench.claim(), await bench.store.nextDue()]).toEqual([[], null]);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ blockedLanes: 1, pending: 3 });
  }),
  it("returns a released event to the queue without counting the attempt, and leaves the cursor (I7)", async (bench) => {
    await bench.accept(bench.event(3, { gapWaitMs: 0 }));
    const first = await bench.claimOne();
    bench.expect(await bench.settle(bench.release(first))).toEqual(["settled"]);
    bench.expect(await bench.at(3)).toMatchObject({ state: "pending", attempts: 0, errorCode: null });
    bench.expect(await bench.lane()).toMatchObject({ status: "ready", cursor: 3, attempts: [] });
    const second = await bench.claimOne();
    bench.expect(second).toMatchObject({ sequence: 3, attempt: 1, missing: { from: 1, to: 2 } });
    bench.expect(second.token !== first.token).toBe(true);
  }),
  it("delays a released event on request", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.settle(bench.release(await bench.claimOne(), 7_000));
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt: bench.clock.now() + 7_000 });
    await bench.clock.advance(7_000);
    bench.expect(await bench.claimOne()).toMatchObject({ attempt: 1 });
  }),
  it("settles the rest of a batch around one that is lost", async (bench) => {
    await bench.accept(bench.of("a", 1), bench.of("b", 1));
    const [a, b] = await bench.claimTwo();
    const foreign = { ...a, token: a.token + 1 };
    const settles = [bench.complete(foreign), bench.complete({ ...a, event: b.event }), bench.complete(b)];
    bench.expect(await bench.settle(...settles)).toEqual(["lost", "lost", "settled"]);
    bench
      .expect(await bench.settle(bench.complete({ ...a, lane: 1e9 }), bench.complete(a)))
      .toEqual(["lost", "settled"]);
  }),
  it("renews leases from now, and reports which are lost", async (bench) => {
    await bench.accept(bench.of("a", 1), bench.of("b", 1));
    const [a, b] = await bench.claimTwo({ leaseMs: 30_000 });
    await bench.settle(bench.complete(b));
    await bench.clock.advance(20_000);
    bench.expect(await bench.store.extend([a, b, { ...a, token: a.token - 1 }], 30_000)).toEqual([true, false, false]);
    bench.expect(await bench.lane("a")).toMatchObject({ readyAt: bench.clock.now() + 30_000 });
    await bench.clock.advance(29_999);
    const { leases, recoveryDue } = await bench.step({ claim: { limit: 1 } });
    bench.expect([leases, recoveryDue]).toEqual([[], false]);
    bench.expect(await bench.store.extend([], 30_000)).toEqual([]);
  }),
];

// Effects: what a handler writes commits with its event's completion, or not at all.

/** The effects of a transactional store under test. */
function effectsOf(bench: Bench) {
  const { effects } = bench.place;
  if (effects === undefined) throw new Error("A transactional store needs effects in the contract's makeStore.");
  return {
    write: (text: string) => (tx: unknown) => effects.write(tx, text),
    statement: (text: string) => effects.statement(text),
    read: () => effects.read(),
  };
}

/** @param kind - which of `effectsOf` writes */
const casesOf = (kind: "write" | "statement", effects: string): readonly ContractCase[] => [
  it(`commits ${effects} with the completion, in their order`, async (bench) => {
    const { [kind]: write, read } = effectsOf(bench);
    await bench.accept(bench.event(1));
    const settle = bench.complete(await bench.claimOne(), "handled", [write("one"), write("it's two \\")]);
    bench.expect(await bench.settle(settle)).toEqual(["settled"]);
    bench.expect([await read(), (await bench.at(1)).state]).toEqual([["one", "it's two \\"], "done"]);
  }),
  it(`reports that a gap begins when a completion with ${effects} ends`, async (bench) => {
    const { [kind]: write, read } = effectsOf(bench);
    await bench.accept(bench.event(1));
    const lease = await bench.claimOne();
    await bench.accept(bench.event(3));
    const settled = await bench.settled([bench.complete(lease, "handled", [write("one")])]);
    bench.expect(settled).toEqual([{ status: "settled", gapBegins: true }]);
    bench.expect(await read()).toEqual(["one"]);
  }),
  it(`passes on the next event of a lane after a completion with ${effects}`, async (bench) => {
    const { [kind]: write, read } = effectsOf(bench);
    await bench.accept(bench.event(1), bench.event(2), bench.of("other", 1));
    const [first, other] = await bench.claim();
    if (first === undefined || other === undefined) throw new Error("Two lanes were due.");
    const settles = [first, other].map((lease) => bench.complete(lease, "handled", [write(nameOf(lease))]));
    bench.expect(await bench.settle(...settles)).toEqual(["settled", "settled"]);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, lane: first.lane });
    bench.expect((await read()).length).toBe(2);
    bench.expect(await bench.store.stats()).toMatchObject({ counters: { handled: 2 }, gauges: { pending: 1 } });
  }),
  it(`commits no ${effects} of a stale completion (I3)`, async (bench) => {
    const { [kind]: write, read } = effectsOf(bench);
    await bench.accept(bench.event(1));
    const stale = await bench.claimOne({ leaseMs: 30_000 });
    await bench.clock.advance(30_000);
    const current = await bench.claimOne({ mode: "recover" });
    const settles = [stale, current].map((lease) => bench.complete(lease, "handled", [write(`token ${lease.token}`)]));
    bench.expect(await bench.settle(...settles)).toEqual(["lost", "settled"]);
    bench.expect(await read()).toEqual([`token ${current.token}`]);
  }),
];

export const effectCases: readonly ContractCase[] = [
  ...needing("plain", [
    it("refuses effects it cannot commit with the completion, and keeps the lease", async (bench) => {
      await bench.accept(bench.event(1));
      const lease = await bench.claimOne();
      let ran = false;
      const effect = () => {
        ran = true;
      };
      const { settled } = await bench.step({ settles: [bench.complete(lease, "handled", [effect])] });
      bench.expect(settled).toMatchObject([{ status: "effect_failed", error: { code: "effects_unsupported" } }]);
      bench.expect([ran, (await bench.lane()).status]).toEqual([false, "leased"]);
      bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
    }),
  ]),
  ...needing("transactional", [
    ...casesOf("write", "effects"),
    ...casesOf("statement", "declared effects"),
    it("undoes all of a completion one of whose statements fails, and only that one; the lease is still held", async (bench) => {
      const { statement, read } = effectsOf(bench);
      await bench.accept(bench.of("a", 1), bench.of("b", 1), bench.of("c", 1));
      const [a, b, c] = await bench.claim();
      if (a === undefined || b === undefined || c === undefined) throw new Error("Three lanes were due.");
      const wrong = { text: "insert into no_such_table values (1)", values: [] };
      const settles = [a, b, c].map((lease) => {
        const effects = lease === b ? [statement("b"), wrong] : [statement(nameOf(lease))];
        return bench.complete(lease, "handled", effects);
      });
      const settled = await bench.settled(settles);
      bench.expect(settled.map((result) => result.status)).toEqual(["settled", "effect_failed", "settled"]);
      bench.expect((await read()).toSorted()).toEqual(["a", "c"]);
      bench.expect(await bench.at(1, "b")).toMatchObject({ state: "pending", attempts: 1 });
      bench.expect(await bench.settle(bench.complete(b, "handled", [statement("b")]))).toEqual(["settled"]);
    }),
    it("undoes all of a completion whose effect throws, and only that one; the lease is still held", async (bench) => {
      const { write, read } = effectsOf(bench);
      await bench.accept(bench.of("a", 1), bench.of("b", 1), bench.of("c", 1));
      const [a, b, c] = await bench.claim();
      if (a === undefined || b === undefined || c === undefined) throw new Error("Three lanes were due.");
      const error = new Error("No such row.");
      const fail = () => {
        throw error;
      };
      const settles = [bench.complete(a, "handled", [write("a")]), bench.complete(b, "handled", [write("b"), fail])];
      const settled = await bench.settled([...settles, bench.complete(c, "handled", [write("c")])]);
      bench.expect(settled.map((result) => result.status)).toEqual(["settled", "effect_failed", "settled"]);
      bench.expect(settled[1]?.status === "effect_failed" && settled[1].error === error).toBe(true);
      bench.expect((await read()).toSorted()).toEqual(["a", "c"]);
      bench.expect(await bench.at(1, "b")).toMatchObject({ state: "pending", attempts: 1 });
      bench.expect((await bench.store.stats()).counters.handled).toBe(2);
      bench.expect(await bench.settle(bench.retry(b, 1_000))).toEqual(["settled"]);
    }),
    it("does not commit a write that an effect makes after it has returned", async (bench) => {
      const { write, read } = effectsOf(bench);
      await bench.accept(bench.event(1));
      let late: Promise<unknown> = Promise.resolve();
      const leavesBehind = (tx: unknown) => {
        // Not returned, so no store can wait for it. Only what it wrote matters, not whether it failed.
        late = new Promise((resolve) => setImmediate(resolve)).then(() => write("late")(tx)).catch(() => {});
      };
      const settle = bench.complete(await bench.claimOne(), "handled", [leavesBehind]);
      bench.expect(await bench.settle(settle)).toEqual(["settled"]);
      await late;
      bench.expect([await read(), (await bench.at(1)).state]).toEqual([[], "done"]);
    }),
    it("runs no effect of a stale completion (I3)", async (bench) => {
      await bench.accept(bench.event(1));
      const stale = await bench.claimOne({ leaseMs: 30_000 });
      await bench.clock.advance(30_000);
      await bench.claimOne({ mode: "recover" });
      let ran = false;
      const effect = () => {
        ran = true;
      };
      bench.expect(await bench.settle(bench.complete(stale, "handled", [effect]))).toEqual(["lost"]);
      bench.expect(ran).toBe(false);
    }),
  ]),
];

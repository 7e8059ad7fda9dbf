/** The store contract on effects: what a handler writes commits with its event's completion, or not at all. */
import type { Bench, ContractCase } from "./store-contract-bench.ts";

/** The effects of a transactional store under test. */
function effectsOf(bench: Bench) {
  const { effects } = bench.place;
  if (effects === undefined) throw new Error("A transactional store needs effects in the contract's makeStore.");
  return { write: (text: string) => (tx: unknown) => effects.write(tx, text), read: () => effects.read() };
}

export const effectCases: readonly ContractCase[] = [
  {
    name: "refuses effects it cannot commit with the completion, and keeps the lease",
    needs: "plain",
    async run(bench) {
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
    },
  },
  {
    name: "commits effects with the completion, in their order",
    needs: "transactional",
    async run(bench) {
      const { write, read } = effectsOf(bench);
      await bench.accept(bench.event(1));
      const settle = bench.complete(await bench.claimOne(), "handled", [write("one"), write("two")]);
      bench.expect(await bench.settle(settle)).toEqual(["settled"]);
      bench.expect([await read(), (await bench.at(1)).state]).toEqual([["one", "two"], "done"]);
    },
  },
  {
    name: "says that a gap begins as a completion with effects ends",
    needs: "transactional",
    async run(bench) {
      const { write } = effectsOf(bench);
      await bench.accept(bench.event(1));
      const lease = await bench.claimOne();
      await bench.accept(bench.event(3));
      const settled = await bench.settled([bench.complete(lease, "handled", [write("one")])]);
      bench.expect(settled).toEqual([{ status: "settled", gapBegins: true }]);
    },
  },
  {
    name: "undoes all of a completion whose effect throws, and only that one; the lease is still held",
    needs: "transactional",
    async run(bench) {
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
    },
  },
  {
    name: "writes nothing that an effect left behind when it ended",
    needs: "transactional",
    async run(bench) {
      const { write, read } = effectsOf(bench);
      await bench.accept(bench.event(1));
      let late: Promise<unknown> = Promise.resolve();
      const leavesBehind = (tx: unknown) => {
        // Not returned: no store can wait for it. Of the promise's end nothing is asked, only of what it wrote.
        late = new Promise((resolve) => setImmediate(resolve)).then(() => write("late")(tx)).catch(() => {});
      };
      const settle = bench.complete(await bench.claimOne(), "handled", [leavesBehind]);
      bench.expect(await bench.settle(settle)).toEqual(["settled"]);
      await late;
      bench.expect([await read(), (await bench.at(1)).state]).toEqual([[], "done"]);
    },
  },
  {
    name: "runs no effect of a stale completion (I3)",
    needs: "transactional",
    async run(bench) {
      const { write, read } = effectsOf(bench);
      await bench.accept(bench.event(1));
      const stale = await bench.claimOne({ leaseMs: 30_000 });
      await bench.clock.advance(30_000);
      const current = await bench.claimOne({ mode: "recover" });
      const settles = [stale, current].map((lease) =>
        bench.complete(lease, "handled", [write(`epoch ${lease.epoch}`)]),
      );
      bench.expect(await bench.settle(...settles)).toEqual(["lost", "settled"]);
      bench.expect(await read()).toEqual([`epoch ${current.epoch}`]);
    },
  },
];

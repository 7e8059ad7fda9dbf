/** An expired lease and the requests that drive lanes. */
import { describe, expect, it } from "vitest";
import { afterCrash } from "./after-crash.ts";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";

/** Accepts an event of a message and drives its lane; tells how often it was said not to be due. */
async function drive(bench: Bench, messageId: string): Promise<{ refused: number }> {
  const accepted = await bench.accept(messageId);
  if (accepted.outcome === "failed") throw accepted.error;
  const told = { refused: 0 };
  bench.worker.claimOnDemand(accepted.lane, accepted.event, () => told.refused++);
  return told;
}

describe("an expired lease", () => {
  it("that a request drives keeps no worker that starts meanwhile from the rest (I9)", async () => {
    const gate = deferred();
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => (ctx.meta.lane.messageId === "crashed" ? gate.promise : undefined));
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    const { id } = await bench.lane("crashed");
    bench.worker.claimOnDemand(id, 1, () => {});
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    bench.worker.start();
    await bench.accept("other");
    await rounds();
    expect(await bench.states()).toEqual(["pending", "handled"]);
    gate.resolve();
    await rounds();
    await bench.expectNothingLeaked();
  });

  it("lets requests that drive a lane go on when the drain that handles it is cut off", async () => {
    const running: string[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        running.push(ctx.meta.lane.messageId);
        return ctx.meta.lane.messageId === "crashed" ? new Promise<void>(() => {}) : undefined;
      });
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    void bench.worker.drain({ budgetMs: 1_000 });
    await rounds();
    await drive(bench, "driven");
    await rounds();
    expect(running).toEqual(["crashed"]);
    await bench.clock.advance(1_000);
    await rounds();
    expect(running).toEqual(["crashed", "driven"]);
  });

  it("lets requests that drive a lane wait for its end", async () => {
    const gate = deferred();
    const running: string[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        running.push(ctx.meta.lane.messageId);
        if (ctx.meta.lane.messageId === "crashed") await gate.promise;
      });
    const bench = await openBench({ ...(await afterCrash(["crashed"])), register });
    bench.worker.start();
    await rounds();
    const told = await drive(bench, "driven");
    await rounds();
    const turns = bench.recorder.turns.length;
    await rounds(200);
    expect(bench.recorder.turns.length).toBe(turns);
    expect(running).toEqual(["crashed"]);
    gate.resolve();
    await rounds();
    expect(running).toEqual(["crashed", "driven"]);
    expect(told.refused).toBe(0);
  });

  it("is waited for no longer when another process was first, though a request's event still runs", async () => {
    const gates = { before: deferred(), driven: deferred() };
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => gates[ctx.meta.lane.messageId as keyof typeof gates]?.promise);
    const bench = await openBench({ register });
    const claim = { limit: 1, leaseMs: 1_000, maxAttempts: 9, onDead: "continue", takes: () => true } as const;
    const turn = { settles: [], accepts: [], quarantines: [] } as const;
    const elsewhere = (mode: "ordinary" | "recover") =>
      bench.recorder.store.step({ ...turn, quarantineQuota: { maxRows: 1, maxBytes: 1 }, claim: { ...claim, mode } });
    await bench.accept("crashed");
    await elsewhere("ordinary");
    await bench.accept("before");
    void bench.worker.drain({ budgetMs: 2_000 });
    await bench.clock.advance(1_000);
    // The drain learns of the expired lease, and is over before what runs has ended.
    await bench.accept("other");
    await bench.clock.advance(1_000);
    gates.before.resolve();
    await rounds();
    await drive(bench, "driven");
    await rounds();
    expect((await elsewhere("recover")).leases).toHaveLength(1);
    void bench.worker.drain({});
    await rounds();
    expect(await bench.states()).toEqual(["pending", "handled", "handled", "pending"]);
    gates.driven.resolve();
    await rounds();
    expect((await bench.lane("driven")).events[0]?.outcome).toBe("handled");
  });
});

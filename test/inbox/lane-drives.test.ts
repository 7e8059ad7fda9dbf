import { describe, expect, it } from "vitest";
import { OnDemandClaims } from "../../src/inbox/claims.ts";
import type { ClaimRequest, Lease, TurnResult } from "../../src/inbox/store.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { type Bench, deferred, ENDS, openBench, rounds } from "./bench.ts";
import { drive } from "./drive.ts";

describe("Worker.drive()", () => {
  it("handles the lane's event though the worker was never started (RCV-3)", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    const [a] = await Promise.all([bench.accept("a"), bench.accept("b")]);
    const told = drive(bench, a);
    await rounds();
    expect(await bench.states()).toEqual(["handled", "pending"]);
    expect(bench.endings).toEqual([[1, "done"]]);
    expect(told.refused).toBe(0);
    // The one that accepts, the one that claims and the one that settles.
    expect(bench.recorder.turns).toHaveLength(3);
    await bench.expectNothingLeaked();
  });

  it("handles what is before the event in its lane first (I4)", async () => {
    const seen: number[] = [];
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId)) });
    await bench.accept("a", 1);
    const told = drive(bench, await bench.accept("a", 2));
    await rounds();
    expect(seen).toEqual([1, 2]);
    expect(told.refused).toBe(0);
  });

  it("says so when the event waits for a gap, for a backoff, or is done", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny((_, ctx) => {
        if (ctx.meta.lane.messageId === "b") throw new Error("down");
      });
    const bench = await openBench({ register });
    const gap = drive(bench, await bench.accept("a", 2));
    const failing = await bench.accept("b");
    const first = drive(bench, failing);
    await rounds();
    expect([gap.refused, first.refused]).toEqual([1, 0]);
    expect(bench.endings).toEqual([[2, "retry"]]);
    const backoff = drive(bench, failing);
    await rounds();
    expect(backoff.refused).toBe(1);
    const done = await bench.accept("c");
    drive(bench, done);
    await rounds();
    const again = drive(bench, done);
    await rounds();
    expect(again.refused).toBe(1);
  });

  it("says so when the event before it fails", async () => {
    const register = (on: Bench["registry"]) =>
      on.onAny(() => {
        throw new Error("down");
      });
    const bench = await openBench({ register });
    await bench.accept("a", 1);
    const told = drive(bench, await bench.accept("a", 2));
    await rounds();
    expect(told.refused).toBe(1);
  });

  it("joins what runs already, and waits behind it for a later event", async () => {
    const gate = deferred();
    const seen: number[] = [];
    const register = (on: Bench["registry"]) =>
      on.onAny(async (_, ctx) => {
        seen.push(ctx.meta.eventId);
        await gate.promise;
      });
    const bench = await openBench({ register });
    const first = await bench.accept("a", 1);
    const told = [drive(bench, first)];
    await rounds();
    told.push(drive(bench, first));
    const second = await bench.accept("a", 2);
    told.push(drive(bench, second), drive(bench, second));
    await rounds();
    expect(seen).toEqual([1]);
    gate.resolve();
    await rounds();
    expect(seen).toEqual([1, 2]);
    expect(told.map(({ refused }) => refused)).toEqual([0, 0, 0, 0]);
    expect(bench.endings).toEqual([
      [1, "done"],
      [2, "done"],
    ]);
  });

  it("joins what a claim that was under way has leased meanwhile (I10)", async () => {
    const inner = memoryStore({ volatile: true });
    const store = { ...inner, capabilities: { ...inner.capabilities, parallelTurns: true } };
    const [handler, slowTurn] = [deferred(), deferred()];
    const bench = await openBench({ store, register: (on) => on.onAny(() => handler.promise) });
    bench.worker.start();
    await rounds();
    bench.recorder.gate = slowTurn.promise;
    bench.groupCommit.settle(ENDS.effects, () => {});
    await rounds();
    bench.recorder.gate = null;
    const told = drive(bench, await bench.accept("a"));
    slowTurn.resolve();
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(1);
    handler.resolve();
    await rounds();
    expect([told.refused, bench.endings]).toEqual([0, [[1, "done"]]]);
  });

  it("joins what a running worker claims as it settles the event before", async () => {
    const gate = deferred();
    const bench = await openBench({ register: (on) => on.onAny(() => gate.promise) });
    bench.worker.start();
    await bench.accept("a", 1);
    const told = drive(bench, await bench.accept("a", 2));
    await rounds();
    gate.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled"]);
    expect(told.refused).toBe(0);
  });

  it("waits behind an event whose claim is under way", async () => {
    const [handler, claim] = [deferred(), deferred()];
    const bench = await openBench({ register: (on) => on.onAny(() => handler.promise) });
    const [first, second] = await Promise.all([bench.accept("a", 1), bench.accept("a", 2)]);
    bench.recorder.gate = claim.promise;
    const told = [drive(bench, first)];
    await rounds();
    told.push(drive(bench, second));
    claim.resolve();
    await rounds();
    handler.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled"]);
    expect(told.map(({ refused }) => refused)).toEqual([0, 0]);
  });

  it("says so when the turn fails, and at once while paused", async () => {
    const bench = await openBench({ register: (on) => on.onAny(() => {}) });
    const acceptance = await bench.accept("a");
    bench.recorder.failNextTurns = 1;
    const failed = drive(bench, acceptance);
    await rounds();
    expect(failed.refused).toBe(1);
    const queued = drive(bench, acceptance);
    bench.worker.pause();
    expect(queued.refused).toBe(1);
    const paused = drive(bench, acceptance);
    expect(paused.refused).toBe(1);
    const turns = bench.recorder.turns.length;
    await rounds(100);
    expect(bench.recorder.turns.length - turns).toBeLessThan(3);
    bench.worker.resume();
    drive(bench, acceptance);
    await rounds();
    expect(await bench.states()).toEqual(["handled"]);
  });

  it("handles many lanes, more than there are places", async () => {
    const bench = await openBench({ register: (on) => on.onAny(async () => {}), worker: { concurrency: 2 } });
    for (const acceptance of await bench.acceptMany(10)) drive(bench, acceptance);
    await rounds(200);
    expect(await bench.states()).toEqual(Array(10).fill("handled"));
    await bench.expectNothingLeaked();
  });

  it("keeps what waits for a place while another turn claims nothing", async () => {
    const gate = deferred();
    const bench = await openBench({ register: (on) => on.onAny(() => gate.promise), worker: { concurrency: 1 } });
    for (const acceptance of await bench.acceptMany(2)) drive(bench, acceptance);
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(2);
    await bench.accept("other");
    await rounds();
    expect(bench.recorder.outstanding.size).toBe(2);
    gate.resolve();
    await rounds();
    expect(await bench.states()).toEqual(["handled", "handled", "pending"]);
  });

  it("claims a lane whose lease expired when nothing else would, and only that lane (RCV-3)", async () => {
    const hung = new Promise(() => {});
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const before = await openBench({ store, clock, register: (on) => on.onAny(() => hung) });
    const [crashed] = await Promise.all([before.accept("crashed"), before.accept("crashed too")]);
    for (const acceptance of await Promise.all([crashed, before.accept("crashed too")])) drive(before, acceptance);
    await rounds();
    await store.close();
    const bench = await openBench({ store, clock, register: (on) => on.onAny(() => {}) });
    const told = drive(bench, crashed);
    await rounds();
    expect(told.refused).toBe(0);
    expect(await bench.states()).toEqual(["handled", "pending"]);
    const gap = drive(bench, await bench.accept("gap", 2));
    await rounds();
    expect(gap.refused).toBe(1);
    expect(bench.recorder.outstanding.size).toBe(0);
  });
});

describe("OnDemandClaims", () => {
  /** Two requests that wait for events of lane 7, and a lane's claim that comes back. */
  function scene() {
    const claims = new OnDemandClaims();
    const refused: string[] = [];
    claims.add(7, { event: 1, notDue: () => refused.push("first") });
    claims.add(7, { event: 2, notDue: () => refused.push("second") });
    const came = (result: { leases: readonly { lane: number; event: number }[]; recoveryDue: boolean }) => {
      const { leases, ...rest } = result;
      const claim = { mode: "ordinary", lane: 7 } as ClaimRequest;
      claims.claimed(
        claim,
        { ...rest, untaken: [] as const, leases: leases as readonly Lease[] } as unknown as TurnResult,
        false,
      );
    };
    return { claims, refused, came };
  }

  it("tells every request of a lane that it is not due", () => {
    const { refused, came } = scene();
    came({ leases: [], recoveryDue: false });
    expect(refused).toEqual(["first", "second"]);
    came({ leases: [], recoveryDue: false });
    expect(refused).toHaveLength(2);
  });

  it("wants a claim only of a lane that somebody claims, and no longer once it was made", () => {
    const { claims } = scene();
    expect([claims.hasClaims, claims.nextClaim(false)]).toEqual([false, null]);
    claims.wantClaim(8);
    expect(claims.hasClaims).toBe(false);
    claims.wantClaim(7);
    expect(claims.hasClaims).toBe(true);
    expect(claims.nextClaim(false)).toEqual({ lane: 7, mode: "ordinary" });
    expect(claims.hasClaims).toBe(false);
  });

  it("leaves every other claim to a worker that is active, for one lane at least, and none to one that is not", () => {
    const { claims } = scene();
    const next = (workerIsActive: boolean) => {
      claims.wantClaim(7);
      return claims.nextClaim(workerIsActive)?.lane ?? `${claims.takeOwed()} of any`;
    };
    expect([true, true, true, false, false].map(next)).toEqual([7, "1 of any", 7, 7, 7]);
    expect([claims.takeOwed(), claims.takeOwed()]).toEqual([1, 0]);
  });

  it("forgets a lane once the last event that is waited for was claimed", () => {
    const { claims, came } = scene();
    came({ leases: [{ lane: 7, event: 1 }], recoveryDue: false });
    claims.wantClaim(7);
    expect(claims.nextClaim(false)).toEqual({ lane: 7, mode: "ordinary" });
    came({ leases: [{ lane: 7, event: 2 }], recoveryDue: false });
    claims.wantClaim(7);
    expect(claims.hasClaims).toBe(false);
  });

  it("claims anew for recovery only where nothing was claimed", () => {
    const { claims, refused, came } = scene();
    came({ leases: [{ lane: 7, event: 1 }], recoveryDue: true });
    expect([claims.hasClaims, refused]).toEqual([false, []]);
    came({ leases: [], recoveryDue: true });
    expect([claims.nextClaim(false), refused]).toEqual([{ lane: 7, mode: "recover" }, []]);
  });
});

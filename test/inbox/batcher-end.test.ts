/** How the group commit comes to rest, and to its end. */
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { openBench, quarantine, rounds, startBench, watched } from "./bench.ts";

/** The end of a lease that is gone. */
const release = (event = 1) =>
  ({ kind: "release", lease: { lane: event, token: 1, event, cursorBefore: null }, delayMs: 0, ran: false }) as const;

describe("Batcher.close()", () => {
  it("writes what is queued, with what was joined to it", async () => {
    const bench = await openBench();
    const answers = [bench.accept("a"), bench.accept("a"), bench.accept("b")];
    await bench.groupCommit.close();
    expect(await Promise.all(answers)).toMatchObject([
      { outcome: "accepted" },
      { outcome: "duplicate" },
      { outcome: "accepted" },
    ]);
    expect((await bench.events()).map(({ duplicates }) => duplicates)).toEqual([1, 0]);
  });

  it.each([
    ["does not answer", "failNextTurns"],
    ["does not come to an end", "unfinishedTurns"],
  ] as const)("ends after 5 s with a store that %s; claims then count as lost", async (_name, fault) => {
    const bench = await startBench(() => {});
    await bench.accept("a");
    bench.recorder[fault] = 1_000;
    void bench.worker.stop(0);
    const closed = bench.groupCommit.close();
    const over = watched(closed);
    await bench.clock.advance(4_999);
    expect(over()).toBe(false);
    await bench.clock.advance(1);
    await closed;
    await bench.clock.advance(10_000);
    expect(bench.endings).toEqual([[1, "put_back"]]);
    const turns = bench.recorder.turns.length;
    await bench.clock.advance(60_000);
    expect(bench.recorder.turns.length).toBe(turns);
  });

  it("lets the process go, which stays while a settle waits for its next try", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const bench = await openBench({ clock });
    const settle = () => bench.groupCommit.settle(release(), () => {});
    bench.recorder.failNextTurns = 1;
    settle();
    await rounds();
    expect(keeping()).toBe(1);
    await clock.advance(50);
    expect(keeping()).toBe(0);
    bench.recorder.failNextTurns = 1_000;
    settle();
    await rounds();
    expect(keeping()).toBe(1);
    const closed = bench.groupCommit.close();
    await clock.advance(5_000);
    await closed;
    expect(keeping()).toBe(0);
    await clock.advance(60_000);
    expect(keeping()).toBe(0);
  });

  it("refuses what is still queued, and what comes after it, behind a turn that does not end", async () => {
    const bench = await openBench();
    const letGo = bench.hold();
    const underWay = bench.accept("a");
    await rounds();
    const queued = Promise.allSettled([bench.accept("b"), bench.accept("b"), quarantine(bench)]);
    const closed = bench.groupCommit.close();
    await bench.clock.advance(5_000);
    await closed;
    const later = Promise.allSettled([bench.accept("c"), quarantine(bench)]);
    for (const answer of [...(await queued), ...(await later)])
      expect(answer).toMatchObject({
        ...{ status: "rejected", reason: { code: "closed", message: expect.stringContaining("the service retries") } },
      });
    letGo();
    expect(await underWay).toMatchObject({ outcome: "accepted" });
    await rounds();
    expect(bench.recorder.turns).toHaveLength(1);
  });

  it("answers a settle that comes after it", async () => {
    const bench = await openBench();
    await bench.groupCommit.close();
    const settled = await new Promise((resolve) => bench.groupCommit.settle(release(), resolve));
    expect(settled).toEqual({ status: "lost" });
    await rounds();
    expect(bench.recorder.turns).toEqual([]);
  });

  it("answers a settle that waits for its next try, and one whose turn fails later", async () => {
    const bench = await openBench();
    const settled: unknown[] = [];
    const settle = (event: number) =>
      bench.groupCommit.settle(release(event), (result) => settled.push([event, result]));
    bench.recorder.failNextTurns = 2;
    settle(1);
    await rounds();
    const letGo = bench.hold();
    settle(2);
    await rounds();
    const closed = bench.groupCommit.close();
    await bench.clock.advance(5_000);
    await closed;
    expect(settled).toEqual([[1, { status: "lost" }]]);
    letGo();
    await rounds();
    expect(settled).toEqual([
      [1, { status: "lost" }],
      [2, { status: "lost" }],
    ]);
    await bench.clock.advance(60_000);
    expect(bench.recorder.turns).toHaveLength(2);
  });
});

describe("Batcher.idle()", () => {
  it("is idle at once with nothing to do, and when the turn under way has ended", async () => {
    const bench = await openBench();
    await bench.groupCommit.idle();
    const accepted = bench.accept("a");
    await bench.groupCommit.idle();
    expect(bench.recorder.turns.map((turn) => turn.accepts.length)).toEqual([1]);
    await accepted;
  });

  it("is not idle while a settle waits for its next try", async () => {
    const bench = await openBench();
    bench.recorder.failNextTurns = 1;
    bench.groupCommit.settle(release(), () => {});
    await rounds();
    const isIdle = watched(bench.groupCommit.idle());
    await rounds();
    expect(isIdle()).toBe(false);
    await bench.clock.advance(50);
    expect(isIdle()).toBe(true);
  });
});

/** What whoever watches is told, in figures that a standing clock would hide. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { CommitReport, DeliveryReport } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { MINUTE, makeBench, newInboxFile, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

describe("what is told of a delivery", () => {
  it("is whether it was late: below what of its message was handled", async () => {
    const { receiver, deliver } = sqliteBench({ gapWait: "eager" });
    const late: boolean[] = [];
    receiver.instrument({ delivery: () => ({ ended: (report: DeliveryReport) => void late.push(report.late) }) });
    receiver.onAny(() => {}).onLate(() => {});
    await deliver(outbound("sent"));
    await receiver.drain();
    await deliver(outbound("queued"));
    await deliver(outbound("delivery"), { unsigned: true });
    expect(late).toEqual([false, true, false]);
  });
});

describe("what is told of a write transaction", () => {
  it("is how long it took, whenever it began", async () => {
    const { receiver, deliver, clock, store } = sqliteBench();
    const commits: CommitReport[] = [];
    receiver.instrument({ commit: (report: CommitReport) => void commits.push(report) });
    await clock.advance(5_000);
    const { step } = store;
    store.step = async (turn) => {
      await clock.advance(20);
      return step(turn);
    };
    await deliver(inbound());
    expect(commits.filter(({ accepts }) => accepts === 1)).toMatchObject([{ ok: true, durationMs: 20 }]);
  });

  it("counts an end that waits for the user's own transaction once it is written", async () => {
    const file = newInboxFile();
    const user = new Database(file);
    const { receiver, deliver, clock } = makeBench(sqliteStore(file, { effects: user }));
    const commits: CommitReport[] = [];
    receiver.instrument({ commit: (report: CommitReport) => void commits.push(report) });
    receiver.onAny((_, ctx) => ctx.commit(() => {}));
    await deliver(inbound());
    user.exec("begin");
    const drained = receiver.drain();
    await clock.advance(MINUTE);
    const turns = commits.length;
    await clock.advance(MINUTE);
    expect(commits.length).toBeGreaterThan(turns);
    expect(commits.filter(({ settles }) => settles > 0)).toEqual([]);
    user.exec("rollback");
    await clock.advance(MINUTE);
    await drained;
    expect(commits.filter(({ settles }) => settles > 0)).toMatchObject([{ ok: true, settles: 1 }]);
    user.close();
  });

  it("counts an attempt whose effect fails once, as the end that it comes to", async () => {
    const { receiver, deliver } = sqliteBench();
    const commits: CommitReport[] = [];
    receiver.instrument({ commit: (report: CommitReport) => void commits.push(report) });
    receiver.onAny((_, ctx) =>
      ctx.commit((_db) => {
        throw new Error("no");
      }),
    );
    await deliver(inbound());
    await receiver.drain();
    expect(commits.reduce((sum, { settles }) => sum + settles, 0)).toBe(1);
  });

  it("is how many events it retired, whose last attempt was cut off", async () => {
    const { receiver, deliver, clock, store } = sqliteBench({ maxAttempts: 1 });
    const retired: number[] = [];
    receiver.instrument({ commit: (report: CommitReport) => void retired.push(report.retired) });
    receiver.onAny(() => {});
    await deliver(inbound());
    store.faults.afterStep = new Error("cut off");
    await receiver.drain().catch(() => {});
    await clock.advance(MINUTE);
    await receiver.drain();
    expect(retired.filter((count) => count > 0)).toEqual([1]);
    expect((await receiver.inbox.stats()).gauges.dead).toBe(1);
  });
});

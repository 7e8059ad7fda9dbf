/** What a delivery and a write leave behind besides an answer: reports, counters and lines of the log. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { type CommitReport, type DeliveryReport, SetupError } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { MINUTE, makeBench, memoryBench, newInboxFile, sqliteBench } from "./bench.ts";
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

  it("is how long it took, from its head to its answer", async () => {
    const bench = sqliteBench();
    const reports: DeliveryReport[] = [];
    bench.receiver.instrument({ delivery: () => ({ ended: (report) => void reports.push(report) }) });
    await bench.clock.advance(60_000);
    const bytes = Buffer.from(inbound());
    await bench.deliver(bytes, {
      async readBody() {
        await bench.clock.advance(250);
        return { ok: true, bytes };
      },
    });
    expect(reports).toMatchObject([{ outcome: "accepted", durationMs: 250 }]);
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

describe("the counters", () => {
  it("count a failure of the keyring, and none of it when the store fails", async () => {
    const bench = memoryBench();
    bench.store.faults.open = new Error("down");
    expect(await bench.deliver(inbound())).toMatchObject({ status: 503 });
    expect(bench.receiver.counters).toEqual({ "slot:service:current": 1 });
    const broken = memoryBench({ secrets: () => Promise.reject(new Error("vault down")) });
    expect(await broken.deliver(inbound())).toMatchObject({ status: 503 });
    expect(broken.receiver.counters).toEqual({ "refused:keyring_unavailable": 1 });
  });
});

describe("the log", () => {
  it("says of a delivery that it was refused", async () => {
    const { deliver, log } = memoryBench();
    await deliver(inbound(), { unsigned: true });
    expect(log).toMatchObject([{ level: "warn", message: "A delivery was refused." }]);
  });

  it("says of a signed body that is no event where it is kept", async () => {
    const { deliver, log } = sqliteBench();
    await deliver("no event");
    expect(log).toMatchObject([{ level: "warn", message: "Signed body is not a valid event; quarantined." }]);
  });

  it("says that an inbox that can not be opened answers 500, and why", async () => {
    const { deliver, log, store } = memoryBench();
    store.faults.open = new SetupError("inbox_too_new", "The inbox is too new.");
    expect(await deliver(inbound())).toMatchObject({ status: 500 });
    const message = "A delivery was answered with 500. The inbox is too new.";
    expect(log).toMatchObject([{ level: "warn", fields: { code: "inbox_too_new" }, message }]);
  });
});

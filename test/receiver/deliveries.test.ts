/** What a delivery leaves behind beside its answer: counters, lines of the log, and what those who watch are told. */
import { describe, expect, it } from "vitest";
import type { DeliveryReport } from "../../src/inbox/instrumentation.ts";
import { SetupError } from "../../src/index.ts";
import { type Bench, deferred, idleTurns, memoryBench, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

function listenTo<Tx>({ receiver }: Bench<Tx>): DeliveryReport[] {
  const reports: DeliveryReport[] = [];
  receiver.instrument({ delivery: () => ({ ended: (report) => void reports.push(report) }) });
  return reports;
}

describe("the counters", () => {
  it("count who found all slots taken as busy (RCV-4)", async () => {
    const { deliver, store, receiver } = sqliteBench();
    const gate = deferred();
    store.faults.gate = gate.promise;
    const held = Array.from({ length: 256 }, (_, index) => deliver(inbound({ messageId: `m ${index}` })));
    await idleTurns();
    expect(await deliver(inbound())).toMatchObject({ status: 503 });
    gate.resolve();
    await Promise.all(held);
    expect(receiver.counters).toEqual({ "slot:current": 256, "refused:busy": 1 });
  });

  it("count a failure of the keyring, and none of it when the store fails", async () => {
    const bench = memoryBench();
    bench.store.faults.open = new Error("down");
    expect(await bench.deliver(inbound())).toMatchObject({ status: 503 });
    expect(bench.receiver.counters).toEqual({ "slot:current": 1 });
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

describe("those who watch", () => {
  it("are told that the quarantine is full, and the log says so", async () => {
    const bench = sqliteBench();
    const reports = listenTo(bench);
    const junk = (count: number, from: number) =>
      Promise.all(Array.from({ length: count }, (_, index) => bench.deliver(`junk ${from + index}`)));
    for (let row = 0; row < 1_000; row += 200) await junk(200, row);
    await bench.deliver("one more");
    expect(reports.at(-1)).toMatchObject({ outcome: "failed", status: 503, reason: "quarantine_full" });
    expect(bench.log.at(-1)).toMatchObject({
      ...{ level: "error", fields: { code: "quarantine_full" } },
      message:
        "The quarantine is full: a signed body that is not a valid event was answered with 503. Discard or replay quarantined bodies.",
    });
  });

  it("are told which delivery alone was late", async () => {
    const bench = sqliteBench({ gapWait: "eager" });
    const reports = listenTo(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(outbound("delivery"));
    await bench.receiver.drain();
    await bench.deliver(outbound("queued"));
    await bench.deliver(outbound("delivery"));
    expect(reports.map(({ outcome, late }) => [outcome, late])).toEqual([
      ["accepted", false],
      ["late", true],
      ["duplicate", false],
    ]);
  });

  it("are told how long a delivery took, from its head to its answer", async () => {
    const bench = sqliteBench();
    const reports = listenTo(bench);
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

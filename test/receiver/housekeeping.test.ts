/** What an open inbox does by itself: that pruning catches up and keeps out of the way, and what is said and left where it fails or ends. */
import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { memorySecrets } from "../../src/tools/testing/memory-secrets.ts";
import {
  type Bench,
  deferred,
  idleTurns,
  type LogLine,
  MINUTE,
  memoryBench,
  newInboxFile,
  recordedLog,
  SECRET,
  sqliteBench,
  until,
} from "./bench.ts";
import { inbound } from "./events.ts";

/** A store that has `batches` batches to prune; each takes `ms` of the clock. */
function backlog(batches: number, ms = 0) {
  const bench: Bench<never> = memoryBench();
  let pruned = 0;
  bench.store.prune = async () => {
    pruned++;
    if (ms > 0) await bench.clock.advance(ms);
    return { bodies: 500, events: 0, lanes: 0, quarantined: 0, more: pruned < batches };
  };
  bench.receiver.onAny(() => {});
  return { ...bench, pruned: () => pruned };
}

describe("pruning", () => {
  it("by the timer goes on until nothing is left, and gives way between two batches", async () => {
    const { receiver, clock, pruned } = backlog(200);
    await receiver.start();
    await clock.advance(10 * MINUTE);
    expect(pruned()).toBeLessThan(200);
    await until(() => pruned() === 200);
    await idleTurns();
    expect(pruned()).toBe(200);
    await clock.advance(10 * MINUTE);
    expect(pruned()).toBe(201);
  });

  it("by the timer ends when the receiver stops", async () => {
    const { receiver, clock, pruned } = backlog(Number.POSITIVE_INFINITY);
    await receiver.start();
    await clock.advance(10 * MINUTE);
    await receiver.stop();
    const atStop = pruned();
    await idleTurns();
    expect(pruned()).toBe(atStop);
  });

  it("by a drain takes 20 batches at most", async () => {
    const { receiver, pruned } = backlog(200);
    await receiver.drain();
    expect(pruned()).toBe(20);
  });

  it("by a drain takes no more than what is left of its budget", async () => {
    const { receiver, pruned } = backlog(200, 100);
    await receiver.drain({ budgetMs: 350 });
    expect(pruned()).toBe(4);
  });

  it("by a drain that comes to no end is gone on with by the next one, and then left for ten minutes", async () => {
    const { receiver, pruned } = backlog(25);
    await receiver.drain();
    await receiver.drain();
    await receiver.drain();
    expect(pruned()).toBe(25);
  });

  it("by a drain that fails is tried again by the next one", async () => {
    const { receiver, store, pruned } = backlog(1);
    const { prune } = store;
    store.prune = async () => {
      store.prune = prune;
      throw new Error("away");
    };
    await receiver.drain();
    await receiver.drain();
    expect(pruned()).toBe(1);
  });

  it("by 20 drains at once is one of theirs", async () => {
    const { receiver, pruned } = backlog(1, 10);
    await Promise.all(Array.from({ length: 20 }, () => receiver.drain()));
    expect(pruned()).toBe(1);
  });

  it.each([
    [10 * MINUTE - 1, 1],
    [10 * MINUTE, 2],
    [-10 * MINUTE, 2],
  ])("by drains %i ms apart, as of a process that was frozen between, happens %i times", async (ms, times) => {
    const { receiver, clock, pruned } = backlog(1);
    await receiver.drain();
    clock.set(clock.now() + ms);
    await receiver.drain();
    expect(pruned()).toBe(times);
  });

  it("by a drain does not follow at once that by the timer", async () => {
    const { receiver, clock, pruned } = backlog(1);
    await receiver.health();
    await clock.advance(10 * MINUTE);
    await receiver.drain();
    expect(pruned()).toBe(1);
  });
});

describe("a drain's pruning", () => {
  it.each([
    [100, 0],
    [99, 1],
  ])("with a budget of 100 ms, of which handlers took %i, prunes %i batch", async (handledMs, batches) => {
    const { receiver, deliver, clock, store } = sqliteBench();
    receiver.onAny(() => clock.advance(handledMs));
    let pruned = 0;
    store.prune = async () => {
      pruned++;
      await clock.advance(1);
      return { bodies: 500, events: 0, lanes: 0, quarantined: 0, more: true };
    };
    await deliver(inbound());
    await receiver.drain({ budgetMs: 100 });
    expect(pruned).toBe(batches);
    // What was left, or not begun, is gone on with.
    await receiver.drain({ budgetMs: 1 });
    expect(pruned).toBe(batches + 1);
  });
});

/** Secrets in a store, and how often they were read; `gate` holds the reads up. */
async function countedSecrets(refreshMs: number) {
  const secrets = memorySecrets({ refreshMs });
  await secrets.write("inbound", { current: SECRET, previous: [], next: null, rotatedAt: null }, 0);
  const { read } = secrets;
  const counted = { secrets, reads: 0, gate: Promise.resolve() };
  secrets.read = async (kind) => {
    counted.reads++;
    await counted.gate;
    return read(kind);
  };
  return counted;
}

/** What of the housekeeping was said to have failed. */
function failed(log: readonly LogLine[]): unknown[] {
  return log.filter(({ fields }) => "what" in fields).map(({ fields }) => fields.what);
}

describe("housekeeping that fails", () => {
  it("is told by the name of what failed, and that it is tried again", async () => {
    const { receiver, deliver, clock, store, log } = sqliteBench();
    receiver.onAny(() => {}).onLate(() => {});
    await deliver(inbound());
    store.faults.reads = new Error("down");
    await clock.advance(10 * MINUTE);
    expect([...new Set(failed(log))]).toEqual(["heartbeat", "idle worker", "prune"]);
    expect(new Set(log.map(({ message }) => message))).toEqual(
      new Set(["Background work of the inbox failed. It is tried again."]),
    );
    expect(failed(log).filter((what) => what === "heartbeat").length).toBeGreaterThan(50);
    store.faults.reads = null;
    const before = failed(log).length;
    await clock.advance(MINUTE);
    expect(failed(log)).toHaveLength(before);
    expect((await receiver.inbox.stats()).instances).toHaveLength(1);
  });

  it("is told of the first heartbeat and of the last", async () => {
    const { receiver, store, log } = memoryBench();
    receiver.onAny(() => {});
    store.faults.reads = new Error("down");
    await receiver.start();
    await idleTurns();
    expect(failed(log)).toEqual(["heartbeat"]);
    await receiver.stop();
    expect(failed(log)).toEqual(["heartbeat", "heartbeat"]);
  });

  it("is told of a drain's pruning", async () => {
    const { receiver, store, log } = memoryBench();
    receiver.onAny(() => {});
    store.prune = () => Promise.reject(new Error("down"));
    await receiver.drain();
    expect(failed(log)).toEqual(["prune"]);
  });
});

describe("the warning that nobody works", () => {
  it("is not for a process that only refused deliveries", async () => {
    const file = newInboxFile();
    const web = sqliteBench({}, file);
    const other = sqliteBench({ clock: web.clock }, file);
    await web.deliver(inbound());
    await other.deliver(inbound(), { unsigned: true });
    await other.receiver.inbox.stats();
    await web.clock.advance(2 * MINUTE);
    expect(other.receiver.counters).toEqual({ "refused:missing_signature": 1 });
    expect(other.codes()).toEqual(["missing_signature"]);
  });
});

describe("secrets that are kept up to date", () => {
  it("are read no more once others took over, also when they were just being read", async () => {
    const counted = await countedSecrets(500);
    const { receiver, clock, store } = memoryBench({ secrets: counted.secrets });
    await receiver.onAny(() => {}).start();
    await idleTurns();
    const held = deferred();
    counted.gate = held.promise;
    await clock.advance(500);
    const { reads } = counted;
    const reloaded = createReceiver({ secrets: SECRET, store, clock, logger: recordedLog().logger });
    reloaded.onAny(() => {}).takeOver(receiver);
    held.resolve();
    await clock.advance(5_000);
    expect(counted.reads).toBe(reads);
  });

  it("are not read after a reload before the inbox is open", async () => {
    const { receiver, clock, store, codes } = memoryBench();
    const counted = await countedSecrets(500);
    const { log, logger } = recordedLog();
    const reloaded = createReceiver({ secrets: counted.secrets, store, clock, logger });
    reloaded.onAny(() => {}).takeOver(receiver);
    await clock.advance(5_000);
    expect([counted.reads, log, codes()]).toEqual([0, [], []]);
  });
});

describe("a receiver that stops", () => {
  it("does not go on with a heartbeat that was under way", async () => {
    const { receiver, clock, store } = memoryBench();
    await receiver.onAny(() => {}).start();
    await idleTurns();
    const held = deferred();
    const { heartbeat } = store;
    let beats = 0;
    store.heartbeat = async (beat) => {
      beats++;
      await held.promise;
      return heartbeat(beat);
    };
    await clock.advance(10_000);
    const stopped = receiver.stop();
    await idleTurns();
    held.resolve();
    await stopped;
    const atStop = beats;
    await clock.advance(60_000);
    expect(beats).toBe(atStop);
  });
});

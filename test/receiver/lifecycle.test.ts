/** Start, drain, take over: what a receiver does in its process, and says when nobody works. */
import { describe, expect, it } from "vitest";
import { createReceiver, SetupError, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { memorySecrets } from "../../src/tools/testing/memory-secrets.ts";
import { DAY, deferred, incoming, memoryBench, recordedLog, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();

describe("start() and drain()", () => {
  it("throw without a handler, and work once there is one", async () => {
    const { receiver } = memoryBench();
    await expect(receiver.start()).rejects.toMatchObject({
      code: "no_handlers",
      message: expect.stringContaining('receiver.on("message.inbound"'),
    });
    await expect(receiver.drain()).rejects.toMatchObject({ code: "no_handlers" });
    await receiver.onAny(() => {}).start();
    await receiver.start();
    expect(receiver.running).toBe(true);
  });

  it.each(["start", "drain", "the first event"])("close the registration: %s", async (what) => {
    const { receiver, deliver } = memoryBench();
    receiver.onAny(() => {});
    if (what === "start") await receiver.start();
    else if (what === "drain") await receiver.drain();
    else await deliver(body);
    const register = [
      () => receiver.on("message.sent", () => {}),
      () => receiver.onAny(() => {}),
      () => receiver.onUnknown(() => {}),
      () => receiver.onLate(() => {}),
      () => receiver.onConflict(() => {}),
      () => receiver.onError(() => {}),
      () => receiver.onDeadLetter(() => {}),
    ];
    for (const one of register) expect(one).toThrow(SetupError);
  });

  it("leave registration open to who only looked at the inbox before", async () => {
    const { receiver } = memoryBench();
    await receiver.health();
    await receiver.inbox.find();
    expect(() => receiver.on("message.sent", () => {})).not.toThrow();
    await receiver.start();
  });

  it("refuse misspelt options and values out of bounds", async () => {
    const { receiver } = memoryBench();
    receiver.onAny(() => {});
    for (const options of [{ budget: 1 }, { budgetMs: 0 }, { limit: 0 }, { limit: 1.5 }, { budgetMs: 86_400_001 }]) {
      await expect(receiver.drain(options)).rejects.toMatchObject({ code: "invalid_option" });
    }
    for (const options of [{ timeout: 1 }, { timeoutMs: -1 }, { timeoutMs: 3_600_001 }]) {
      await expect(receiver.stop(options)).rejects.toMatchObject({ code: "invalid_option" });
    }
  });

  it("drain what is ready, prune, and count as a worker", async () => {
    const { receiver, deliver, clock } = sqliteBench({ retention: { handledBodiesMs: 0 } });
    const seen: string[] = [];
    receiver.onAny((event) => seen.push(event.eventType));
    await deliver(body);
    await deliver(outbound("sent"));
    expect(await receiver.drain()).toEqual({ claimed: 1, complete: true });
    expect(seen).toEqual(["message.inbound"]);
    clock.set(clock.now() + DAY);
    await deliver(inbound({ messageId: "next day" }));
    await receiver.drain({ limit: 1 });
    const rows = (await receiver.inbox.find({ order: "oldest" })).items;
    expect(rows.map(({ hasBody }) => hasBody)).toEqual([false, true, true]);
  });
});

describe("worker_not_running", () => {
  it("is logged once a minute while something waits and nobody works (once only when due)", async () => {
    const { receiver, deliver, clock, codes, log } = sqliteBench();
    receiver.onAny(() => {}).onLate(() => {});
    await deliver(body);
    await clock.advance(59_000);
    expect(codes()).toEqual([]);
    await clock.advance(2_000);
    expect(codes()).toEqual(["worker_not_running"]);
    expect(log[0]?.message).toMatch(/receiver\.start\(\).*receiver\.drain\(\)/);
    expect((await receiver.health()).reasons).toEqual(["worker_not_running"]);
    await clock.advance(60_000);
    expect(codes()).toHaveLength(2);
    await receiver.start();
    await clock.advance(120_000);
    expect(codes()).toHaveLength(2);
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
  });

  it("is neither logged nor a reason of health when nothing is due", async () => {
    const { receiver, clock, codes } = memoryBench();
    await receiver.health();
    await clock.advance(200_000);
    expect(codes()).toEqual([]);
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
  });

  it("is neither logged nor a reason of health while a drain runs, however long, nor just after", async () => {
    const { receiver, deliver, clock, codes } = sqliteBench({ concurrency: 1 });
    receiver.onAny(() => new Promise<void>((resolve) => void clock.setTimeout(resolve, 10_000))).onLate(() => {});
    for (let n = 0; n < 10; n++) await deliver(inbound({ messageId: `m ${n}` }));
    const drained = receiver.drain();
    for (let n = 0; n < 9; n++) await clock.advance(10_000);
    expect((await receiver.health()).reasons).toEqual([]);
    await clock.advance(10_000);
    expect(await drained).toEqual({ claimed: 10, complete: true });
    await deliver(inbound({ messageId: "after" }));
    await clock.advance(30_000);
    expect((await receiver.health()).reasons).toEqual([]);
    expect(codes()).toEqual([]);
  });
});

describe("takeOver()", () => {
  it("keeps the store and the worker, with the new handlers", async () => {
    const { receiver, deliver, clock, store } = sqliteBench();
    const seen: string[] = [];
    await receiver.on("message.inbound", () => seen.push("old")).start();
    await deliver(body);
    await until(() => seen.length === 1);
    const reloaded = createReceiver({ secrets: SECRET, store, clock, logger: recordedLog().logger });
    reloaded.on("message.inbound", () => seen.push("new"));
    reloaded.takeOver(receiver);
    expect(reloaded.key).toBe(receiver.key);
    expect(reloaded.running).toBe(true);
    const other = incoming(inbound({ messageId: "second" }), clock.now());
    expect((await reloaded.handle(other)).status).toBe(200);
    await until(() => seen.length === 2);
    expect(seen).toEqual(["old", "new"]);
    expect(() => reloaded.onAny(() => {})).toThrow(SetupError);
    await reloaded.start();
  });

  it("keeps up to date and tells of the new one's secrets, no longer of the old one's (RCV-9)", async () => {
    const kept = (current: string) => ({ current, previous: [], next: null, rotatedAt: null });
    const [old, reread] = [memorySecrets({ refreshMs: 500 }), memorySecrets({ refreshMs: 1_000 })];
    for (const secrets of [old, reread]) await secrets.write("inbound", kept(SECRET), 0);
    const { receiver, clock, store } = sqliteBench({ secrets: old });
    const version = async () => (await receiver.inbox.stats()).instances[0]?.keyringVersion;
    const changed = async (before: unknown) => until(async () => (await version()) !== before, "another version");
    await receiver.onAny(() => {}).start();
    await changed(undefined);
    let reads = 0;
    old.read = async () => {
      reads++;
      return null;
    };
    const reloaded = createReceiver({ secrets: reread, store, clock, logger: recordedLog().logger }).onAny(() => {});
    const before = await version();
    await reread.write("inbound", kept("another-signing-secret-of-32-byt"), 1);
    reloaded.takeOver(receiver);
    await changed(before);
    const taken = await version();
    await reread.write("inbound", kept("a-third-signing-secret-of-32-byt"), 2);
    await clock.advance(1_000);
    await changed(taken);
    expect([reads, (await reloaded.health()).status]).toEqual([0, "ok"]);
    reread.read = () => Promise.reject(new Error("down"));
    await clock.advance(1_000);
    await until(async () => (await reloaded.health()).status === "degraded", "the failed read");
  });

  it("stops what it had started itself, and goes on working", async () => {
    const { receiver, clock } = memoryBench();
    receiver.onAny(() => {});
    const own = memoryStore({ volatile: true });
    let closes = 0;
    const store = { ...own, close: () => own.close().finally(() => (closes += 1)) };
    const reloaded = createReceiver({ secrets: SECRET, store, clock });
    await reloaded.onAny(() => {}).start();
    await receiver.health();
    reloaded.takeOver(receiver);
    await until(() => closes === 1);
    await until(() => receiver.running && reloaded.running);
    reloaded.takeOver(receiver);
    expect((await reloaded.handle(incoming(body, clock.now()))).status).toBe(200);
    expect((await receiver.inbox.stats()).counters.accepted).toBe(1);
    await reloaded.stop();
    expect(closes).toBe(1);
  });

  it.each([
    ["opens", true, 1],
    ["opens", false, 1],
    ["can not be opened", true, 0],
  ])("leaves no worker to a store of its own that %s later; the older one runs: %s", async (how, isRunning, ends) => {
    const { receiver, clock } = memoryBench();
    receiver.onAny(() => {});
    await (isRunning ? receiver.start() : receiver.health());
    const opened = deferred();
    let closes = 0;
    const own = memoryStore({ volatile: true });
    const open: typeof own.open = (context) => opened.promise.then(() => own.open(context));
    const store = { ...own, open, close: () => own.close().finally(() => (closes += 1)) };
    const reloaded = createReceiver({ secrets: SECRET, store, clock });
    const started = reloaded.onAny(() => {}).start();
    reloaded.takeOver(receiver);
    if (how === "opens") opened.resolve();
    else opened.reject(new StoreError("store_unavailable", "The disk is gone."));
    await started;
    expect([receiver.running, reloaded.running]).toEqual([true, true]);
    await until(() => closes === ends, "the end of its own store");
    await reloaded.stop();
    expect([receiver.running, reloaded.running, closes]).toEqual([false, false, ends]);
  });

  it("says why its worker did not go on", async () => {
    const failing = memoryStore({ volatile: true });
    const opened = deferred<never>();
    failing.open = () => opened.promise;
    const older = createReceiver({ secrets: SECRET, store: failing, logger: recordedLog().logger });
    const opening = older.health();
    const { logger, log } = recordedLog();
    const reloaded = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), logger });
    await reloaded.onAny(() => {}).start();
    reloaded.takeOver(older);
    opened.reject(new StoreError("store_unavailable", "The disk is gone."));
    await opening.catch(() => {});
    const told = () => log.find(({ level }) => level === "error");
    await until(() => told() !== undefined, "the error");
    expect(told()).toMatchObject({ fields: { code: "store_unavailable" } });
    expect(told()?.message).toMatch(/receiver\.start\(\).*The disk is gone\./);
    await reloaded.stop();
  });

  it("takes nothing over from one that is being stopped", async () => {
    const { receiver, deliver, clock } = memoryBench();
    receiver.onAny(() => {});
    await deliver(body);
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    const reloaded = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), clock });
    reloaded.onAny(() => {}).takeOver(receiver);
    await reloaded.start();
    closed.resolve();
    await stopping;
    expect((await reloaded.handle(incoming(body, clock.now()))).status).toBe(200);
    await reloaded.stop();
  });

  it("shows the inbox that was taken over, not a store of its own that was never opened", async () => {
    const { receiver, deliver, clock } = memoryBench();
    receiver.onAny(() => {});
    await deliver(body);
    const reloaded = createReceiver({ secrets: SECRET, store: memoryStore({ volatile: true }), clock });
    reloaded.takeOver(receiver);
    expect((await reloaded.inbox.find()).items).toHaveLength(1);
    expect((await reloaded.inbox.stats()).counters.accepted).toBe(1);
  });
});

/** Start, drain, stop, take over: what a receiver's process does from its first to its last moment. */
import { describe, expect, it } from "vitest";
import { type Answer, createReceiver, SetupError, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { DAY, deferred, idleTurns, incoming, memoryBench, recordedLog, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();

describe("start() and drain()", () => {
  it("throw without a handler, and work once there is one", async () => {
    const { receiver } = memoryBench();
    await expect(receiver.start()).rejects.toMatchObject({ code: "no_handlers" });
    await expect(receiver.drain()).rejects.toMatchObject({ code: "no_handlers" });
    receiver.onAny(() => {});
    await receiver.start();
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
    expect(rows.map(({ raw }) => raw === null)).toEqual([true, false, false]);
  });

  it("hand out what was stored before the process started", async () => {
    const store = memoryStore({ volatile: true });
    const first = memoryBench();
    const clock = first.clock;
    const before = createReceiver({ secrets: SECRET, store, clock, logger: first.logger });
    await before.handle(incoming(outbound("sent"), clock.now()));
    await before.stop();
    const after = memoryBench({ store, clock, gapWait: "eager" });
    const seen: string[] = [];
    after.receiver.onAny((event) => seen.push(event.eventType));
    await after.receiver.start();
    await after.deliver(outbound("queued"));
    await until(() => seen.length === 2);
    expect(seen).toEqual(["message.queued", "message.sent"]);
  });
});

describe("worker_not_running", () => {
  it("is logged once a minute while something waits and nobody works (once only when due)", async () => {
    const { receiver, deliver, clock, codes } = sqliteBench();
    receiver.onAny(() => {}).onLate(() => {});
    await deliver(body);
    await clock.advance(59_000);
    expect(codes()).toEqual([]);
    await clock.advance(2_000);
    expect(codes()).toEqual(["worker_not_running"]);
    expect((await receiver.health()).reasons).toEqual(["worker_not_running"]);
    await clock.advance(60_000);
    expect(codes()).toHaveLength(2);
    await receiver.start();
    await clock.advance(120_000);
    expect(codes()).toHaveLength(2);
    expect(await receiver.health()).toEqual({ status: "ok", reasons: [] });
  });

  it("is neither logged nor a reason of health when nothing is due", async () => {
    const { receiver, clock, codes } = memoryBench();
    await receiver.health();
    await clock.advance(200_000);
    expect(codes()).toEqual([]);
    expect(await receiver.health()).toEqual({ status: "ok", reasons: [] });
  });

  it("is not logged by who drains now and then", async () => {
    const { receiver, deliver, clock, codes } = sqliteBench();
    receiver.onAny(() => {}).onLate(() => {});
    for (let minute = 0; minute < 4; minute++) {
      await deliver(inbound({ messageId: `m ${minute}` }));
      await clock.advance(45_000);
      await receiver.drain();
    }
    expect(codes()).toEqual([]);
  });
});

describe("stop()", () => {
  it("keeps accepting until `until` resolves, then answers 503", async () => {
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(() => {});
    await receiver.start();
    const closed = deferred();
    const stopped = receiver.stop({ until: closed.promise });
    await idleTurns();
    expect(receiver.running).toBe(false);
    expect((await deliver(body)).status).toBe(200);
    closed.resolve();
    await stopped;
    expect(await deliver(inbound({ messageId: "after" }))).toMatchObject({ status: 503 });
    expect(await receiver.health()).toEqual({ status: "degraded", reasons: ["stopped"] });
    await expect(receiver.start()).rejects.toBeInstanceOf(StoreError);
  });

  it("lets running handlers end, and starts none", async () => {
    const { receiver, deliver } = sqliteBench({ concurrency: 1 });
    const work = deferred();
    const began: string[] = [];
    receiver.on("message.inbound", async (event) => {
      began.push(event.data.messageId);
      await work.promise;
    });
    await receiver.start();
    await deliver(inbound({ messageId: "a" }));
    await deliver(inbound({ messageId: "b" }));
    await until(() => began.length === 1);
    let stopped = false;
    const stopping = receiver.stop().then(() => {
      stopped = true;
    });
    await idleTurns();
    expect(stopped).toBe(false);
    work.resolve();
    await stopping;
    expect(began).toHaveLength(1);
  });

  it("gives up on handlers that do not end in time, quietly from then on", async () => {
    const { receiver, deliver, clock, codes, store } = sqliteBench();
    const work = deferred();
    receiver.onAny(() => work.promise);
    await receiver.start();
    await deliver(body);
    await idleTurns();
    const stopping = receiver.stop({ timeoutMs: 5_000 });
    await clock.advance(10_000);
    await stopping;
    work.resolve();
    await idleTurns();
    const turns = store.faults.turns.length;
    await clock.advance(600_000);
    expect(store.faults.turns).toHaveLength(turns);
    expect(codes().filter((code) => code === "closed")).toEqual([]);
  });

  it("takes timeoutMs once, however long the server takes to close", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    receiver.onAny(() => new Promise(() => {}));
    await receiver.start();
    await deliver(body);
    await idleTurns();
    const closed = deferred();
    let stopped = false;
    const stopping = receiver.stop({ timeoutMs: 5_000, until: closed.promise }).then(() => {
      stopped = true;
    });
    await clock.advance(5_000);
    closed.resolve();
    await idleTurns();
    await clock.advance(1);
    await until(() => stopped);
    await stopping;
  });

  it("closes an inbox that the first delivery was opening as the server closed", async () => {
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(() => {});
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    await idleTurns();
    const answer = deliver(body);
    closed.resolve();
    await stopping;
    await answer;
    expect((await receiver.health()).reasons).toEqual(["stopped"]);
    expect((await deliver(body)).status).toBe(503);
  });

  it("ends even when the store fails for good", async () => {
    const { receiver, deliver, clock, store } = memoryBench();
    const work = deferred();
    receiver.onAny(() => work.promise);
    await receiver.start();
    const answer = deliver(body);
    await idleTurns();
    store.faults.step = new StoreError("store_unavailable", "down");
    work.resolve();
    await idleTurns();
    const stopping = receiver.stop({ timeoutMs: 1_000 });
    await clock.advance(20_000);
    await stopping;
    expect((await answer).status).toBe(503);
    const turns = store.faults.turns.length;
    await clock.advance(600_000);
    expect(store.faults.turns.length - turns).toBeLessThan(3);
  });

  it("waits for a handler that a delivery started while the server closed", async () => {
    const { receiver, deliver } = memoryBench();
    const work = deferred();
    let runs = 0;
    receiver.onAny(() => {
      runs++;
      return work.promise;
    });
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    await idleTurns();
    const answer = deliver(body);
    await until(() => runs === 1);
    closed.resolve();
    await idleTurns();
    work.resolve();
    expect((await answer).body).toBe('{"outcome":"handled"}');
    await stopping;
  });

  it("is harmless twice, and joins the first", async () => {
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(() => {});
    await receiver.start();
    const closed = deferred();
    const first = receiver.stop({ until: closed.promise });
    let ended = false;
    const second = receiver.stop().then(() => {
      ended = true;
    });
    await idleTurns();
    expect(ended).toBe(false);
    expect((await deliver(body)).status).toBe(200);
    closed.resolve();
    await Promise.all([first, second]);
    await receiver.stop();
  });

  it("closes the store although the server failed to close", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver(body);
    await receiver.stop({ until: Promise.reject(new Error("ERR_SERVER_NOT_RUNNING")) });
    expect((await deliver(body)).status).toBe(503);
  });

  it("says nothing when the inbox was never opened", async () => {
    const { receiver, log } = memoryBench();
    await receiver.stop();
    expect(log).toEqual([]);
  });

  it("waits for an open under way, also for one that fails", async () => {
    const { receiver, deliver, store } = sqliteBench();
    store.faults.open = new StoreError("store_unavailable", "down");
    const answer: Promise<Answer> = deliver(body);
    await receiver.stop();
    expect((await answer).status).toBe(503);
  });
});

describe("takeOver()", () => {
  it("keeps the store and the worker, with the new handlers", async () => {
    const { receiver, deliver, clock, store } = sqliteBench();
    const seen: string[] = [];
    receiver.on("message.inbound", () => seen.push("old"));
    await receiver.start();
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

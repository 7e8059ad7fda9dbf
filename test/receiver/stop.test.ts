/** stop(): what a receiver still does, and what it leaves. */
import { describe, expect, it } from "vitest";
import type { OpenContext } from "../../src/inbox/store.ts";
import { type Answer, type InboxStore, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { deferred, idleTurns, makeBench, memoryBench, newInboxFile, sqliteBench, until } from "./bench.ts";
import { inbound } from "./events.ts";

const body = inbound();

describe("stop()", () => {
  it("keeps accepting until `until` resolves, then answers 503", async () => {
    const { receiver, deliver } = sqliteBench();
    await receiver.onAny(() => {}).start();
    const closed = deferred();
    const stopped = receiver.stop({ until: closed.promise });
    await idleTurns();
    expect(receiver.running).toBe(false);
    expect(await receiver.health()).toMatchObject({ status: "degraded", reasons: ["stopped"] });
    expect((await deliver(body)).status).toBe(200);
    closed.resolve();
    await stopped;
    expect(await deliver(inbound({ messageId: "after" }))).toMatchObject({ status: 503 });
    expect(await receiver.health()).toMatchObject({ status: "degraded", reasons: ["stopped"] });
    await expect(receiver.start()).rejects.toMatchObject({
      code: "closed",
      message: expect.stringContaining("Make a new one"),
    });
  });

  it("lets no drain hand anything out while the server closes, and makes none fail", async () => {
    const { receiver, deliver } = sqliteBench();
    let runs = 0;
    await receiver.onAny(() => void runs++).start();
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    await idleTurns();
    await deliver(body);
    expect(await receiver.drain()).toEqual({ claimed: 0, complete: false });
    closed.resolve();
    await stopping;
    expect(runs).toBe(0);
  });

  it("gives up on handlers that do not end in time, quietly from then on", async () => {
    const { receiver, deliver, clock, codes, store } = sqliteBench();
    const work = deferred();
    await receiver.onAny(() => work.promise).start();
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
    await receiver.onAny(() => new Promise(() => {})).start();
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
    await receiver.onAny(() => work.promise).start();
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

  it.each(["heartbeat", "close"] as const)("waits 5 s at most for a store whose %s never ends", async (what) => {
    const store = { ...memoryStore({ volatile: true }), [what]: () => new Promise<never>(() => {}) };
    const { receiver, deliver, clock } = makeBench(store);
    receiver.onAny(() => {});
    await deliver(body);
    let isOver = false;
    const stopping = receiver.stop().then(() => {
      isOver = true;
    });
    await clock.advance(4_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await stopping;
  });

  it("waits 5 s at most for an open that does not end, and closes what it opens then", async () => {
    const opened = deferred();
    let closed = 0;
    const real = memoryStore({ volatile: true });
    const store = {
      ...real,
      open: (context: OpenContext) => opened.promise.then(() => real.open(context)),
      close: async () => {
        closed += 1;
        await real.close();
      },
    };
    const { receiver, deliver, clock } = makeBench<never>(store);
    receiver.onAny(() => {});
    const answer = deliver(body);
    await idleTurns();
    let isOver = false;
    const stopping = receiver.stop({ timeoutMs: 0 }).then(() => {
      isOver = true;
    });
    await clock.advance(4_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await stopping;
    const before = closed;
    opened.resolve();
    expect((await answer).status).toBe(503);
    expect(closed).toBe(before + 1);
    await clock.advance(600_000);
    await expect(real.stats()).rejects.toThrow();
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

  it.each([{}, null, 0, true])("refuses %j for `until`, and stops nothing", async (until) => {
    const { receiver, deliver } = memoryBench();
    await receiver.onAny(() => {}).start();
    await expect(receiver.stop({ until: until as never })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(/^Option "until" must be a promise.*new Promise\(.*server\.close\(resolve\)/),
    });
    expect([receiver.running, (await deliver(body)).status]).toEqual([true, 200]);
  });

  it("waits for anything that can be awaited, and does not mind how it ends", async () => {
    const { receiver, deliver } = memoryBench();
    await receiver.onAny(() => {}).start();
    const closed = deferred();
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about
    const stopped = receiver.stop({ until: { then: closed.promise.then.bind(closed.promise) } });
    await idleTurns();
    expect((await deliver(body)).status).toBe(200);
    closed.reject(new Error("The server was not running."));
    await stopped;
    expect((await deliver(inbound({ messageId: "after" }))).status).toBe(503);
  });

  it("is harmless twice, and joins the first", async () => {
    const { receiver, deliver } = sqliteBench();
    await receiver.onAny(() => {}).start();
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

  it.each([
    ["SQLite", () => sqliteStore(newInboxFile())],
    ["memory", () => memoryStore({ volatile: true })],
  ])("leaves a %s store alone that another receiver has open", async (_, makeStore) => {
    const store: InboxStore<never> = makeStore();
    const { receiver, deliver } = makeBench(store);
    await receiver.onAny(() => {}).start();
    const second = makeBench(store).receiver.onAny(() => {});
    await expect(second.start()).rejects.toMatchObject({ code: "already_started" });
    await second.stop();
    expect((await deliver(body)).status).toBe(200);
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

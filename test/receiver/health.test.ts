/** `health()`: what it says of store, worker and inbox, and when that is over. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/index.ts";
import { memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound } from "./events.ts";

const body = inbound();

describe("health()", () => {
  it("is ok for a started receiver, and tells of pauses and quarantined bodies", async () => {
    const { receiver, deliver } = memoryBench();
    await receiver.onAny(() => {}).start();
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
    receiver.pause();
    await deliver("junk");
    expect(await receiver.health()).toMatchObject({ status: "degraded", reasons: ["worker_paused", "quarantined"] });
    receiver.resume();
    expect((await receiver.health()).reasons).toEqual(["quarantined"]);
  });

  it("tells of a store that does not answer or open", async () => {
    const { receiver, store } = memoryBench();
    store.faults.open = new Error("down");
    expect((await receiver.health()).reasons).toEqual(["store_unavailable"]);
    store.faults.open = null;
    store.faults.reads = new Error("down");
    expect((await receiver.health()).reasons).toEqual(["store_unavailable"]);
    store.faults.reads = null;
    expect((await receiver.health()).status).toBe("ok");
  });

  it("tells that deliveries get 503, until one is stored again", async () => {
    const { receiver, deliver, store } = sqliteBench();
    const reasons = async () => (await receiver.health()).reasons;
    for (const text of [body, "junk"]) {
      store.faults.step = new StoreError("store_full", "The disk is full.");
      expect((await deliver(text)).status).toBe(503);
      expect(await reasons()).toContain("store_unavailable");
      store.faults.step = null;
      expect(await reasons()).toContain("store_unavailable");
      expect((await deliver(text)).status).toBe(200);
      expect(await reasons()).not.toContain("store_unavailable");
    }
  });

  it("tells so for half a minute without deliveries: out of service it would get none, and stay there", async () => {
    const { receiver, deliver, store, clock } = sqliteBench();
    await clock.advance(40_000);
    store.faults.step = new StoreError("store_full", "The disk is full.");
    expect((await deliver(body)).status).toBe(503);
    store.faults.step = null;
    await clock.advance(29_999);
    expect((await receiver.health()).reasons).toEqual(["store_unavailable"]);
    await clock.advance(1);
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
  });

  it("tells when every handler failed and the worker paused itself, and when that is over", async () => {
    const { receiver, deliver, clock, codes } = sqliteBench({ concurrency: 4 });
    let works = false;
    receiver.onAny(() => {
      if (!works) throw new Error("The database is down.");
    });
    await receiver.start();
    await Promise.all(Array.from({ length: 25 }, (_, index) => deliver(inbound({ messageId: `m ${index}` }))));
    await until(() => codes().includes("worker_paused"));
    expect((await receiver.health()).reasons).toEqual(["worker_paused"]);
    works = true;
    await clock.advance(40_000);
    await until(async () => (await receiver.inbox.stats()).counters.handled === 25);
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
  });
});

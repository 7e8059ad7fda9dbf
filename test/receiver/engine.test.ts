/** The open inbox at work: what repeats and failures of the store are answered, and who keeps the process. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Bench, DAY, deferred, idleTurns, makeBench, memoryBench, newInboxFile, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

const body = inbound();
const down = () => new StoreError("store_unavailable", "The disk is gone.");
const DUPLICATE = { status: 200, body: '{"outcome":"duplicate"}' };

describe("a repeat of what is stored", () => {
  it("gets its answer from the store alone: none while the store is down (RCV-6)", async () => {
    const { deliver, store } = sqliteBench();
    expect((await deliver(body)).body).toBe('{"outcome":"accepted"}');
    expect(await deliver(body)).toMatchObject(DUPLICATE);
    store.faults.step = down();
    expect((await deliver(body)).status).toBe(503);
    store.faults.step = null;
    expect(await deliver(body)).toMatchObject(DUPLICATE);
  });
});

/** A store that says something wrong about what it was to take. */
function answeringBench(wrong: object): Bench<SqliteDatabase> {
  const real = sqliteStore(newInboxFile());
  return makeBench({ ...real, step: async (turn) => ({ ...(await real.step(turn)), ...wrong }) });
}

describe("a store that does not say what became of a delivery", () => {
  it.each([
    ["an event", body, { accepted: [] }],
    ["a quarantined body", "not json", { quarantined: [] }],
  ])("makes the answer of %s 503, with the reason in the log (RCV-4)", async (_, text, wrong) => {
    const { deliver, receiver, log } = answeringBench(wrong);
    expect((await deliver(text)).status).toBe(503);
    const { fields, message } = log.find(({ message }) => message.includes("503")) ?? {};
    expect(fields).toMatchObject({ code: "store_unavailable" });
    expect(message).toContain("did not answer for this delivery");
    expect((await receiver.health()).reasons).toContain("store_unavailable");
  });

  it.each([
    ["an event", body, "accepted"],
    ["a quarantined body", "not json", "quarantined"],
  ])("makes the answer of %s 503 that alone could not be kept (RCV-4)", async (_, text, kind) => {
    const error = new StoreError("store_full", "The disk is full.");
    const { deliver, receiver, codes } = answeringBench({ [kind]: [{ outcome: "failed", error }] });
    expect((await deliver(text)).status).toBe(503);
    expect(codes()).toContain("store_full");
    expect((await receiver.health()).reasons).toContain("store_unavailable");
  });
});

describe("start()", () => {
  it("keeps the process until stop(), however long and however often it was called", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const { receiver } = makeBench(memoryStore({ volatile: true }), { clock });
    await receiver.onAny(() => {}).start();
    await receiver.start();
    expect(keeping()).toBe(1);
    await clock.advance(DAY + 1_000);
    expect(keeping()).toBe(1);
    await receiver.stop();
    expect(keeping()).toBe(0);
  });

  it("starts nothing once stop() was called, though the inbox opens and deliveries are still taken", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const { receiver, deliver } = makeBench(memoryStore({ volatile: true }), { clock });
    receiver.onAny(() => {});
    const starting = receiver.start();
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    await expect(starting).rejects.toMatchObject({ code: "closed" });
    await expect(receiver.start()).rejects.toMatchObject({ code: "closed" });
    expect([receiver.running, keeping()]).toEqual([false, 0]);
    expect((await deliver(body)).status).toBe(200);
    closed.resolve();
    await stopping;
  });
});

describe("stop()", () => {
  it("leaves what remains of its time to a handler that a delivery started while the server closed", async () => {
    const { receiver, deliver, clock } = memoryBench();
    const work = deferred();
    receiver.onAny(() => work.promise);
    const closed = deferred();
    let stopped = false;
    const stopping = receiver.stop({ timeoutMs: 5_000, until: closed.promise }).then(() => {
      stopped = true;
    });
    await idleTurns();
    const answer = deliver(body);
    await idleTurns();
    closed.resolve();
    await clock.advance(4_999);
    expect(stopped).toBe(false);
    work.resolve();
    expect((await answer).body).toBe('{"outcome":"handled"}');
    await stopping;
  });
});

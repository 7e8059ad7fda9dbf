/** What an operator sees and does: `receiver.inbox`, the hooks and the counters. */
import { describe, expect, it } from "vitest";
import { type DeadLetterNotice, type FailureNotice, PermanentError, RetryAfter } from "../../src/index.ts";
import { memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();

describe("receiver.inbox", () => {
  it("opens the inbox by itself", async () => {
    const { receiver } = sqliteBench();
    expect(await receiver.inbox.find()).toEqual({ items: [], next: null });
    expect(await receiver.inbox.findQuarantined()).toEqual({ items: [], next: null });
    expect(await receiver.inbox.lane(1)).toBeNull();
    expect(await receiver.inbox.audit()).toEqual([]);
    expect((await receiver.inbox.stats()).counters.accepted).toBe(0);
  });

  it("gives 100 rows unless asked for others", async () => {
    const { receiver, deliver } = sqliteBench();
    const all = Array.from({ length: 101 }, (_, index) => deliver(inbound({ messageId: `m ${index}` })));
    await Promise.all(all);
    const page = await receiver.inbox.find();
    expect(page.items).toHaveLength(100);
    expect((await receiver.inbox.find({ after: page.next ?? 0 })).items).toHaveLength(1);
    expect((await receiver.inbox.find({ limit: 5, id: "m 7" })).items).toHaveLength(1);
  });

  it("hands out what an act made ready, though nobody heard that it was done", async () => {
    const { clock, deliver, receiver, store } = memoryBench();
    const replayed: boolean[] = [];
    await receiver.onAny((_, ctx) => void replayed.push(ctx.replay)).start();
    await deliver(body);
    await clock.advance(1);
    const [event] = (await receiver.inbox.find()).items;
    store.faults.afterAct = new Error("the answer was lost");
    await expect(receiver.inbox.replay(event?.id ?? 0)).rejects.toThrow("the answer was lost");
    await clock.advance(1);
    expect(replayed).toEqual([false, true]);
  });

  it.each<unknown>([
    ...[{}, { peer: "+1" }, { id: "  " }, { peer: 15550100002 }, { per: "+15550100002" }, "+15550100002", null],
  ])("erases nothing for the subject %j", async (subject) => {
    const { receiver, deliver } = sqliteBench();
    await deliver(body);
    await deliver("junk");
    const refused = receiver.inbox.erase(subject as never);
    await expect(refused).rejects.toMatchObject({ code: "invalid_option" });
    await expect(refused).rejects.not.toThrow(/5550100002/);
    const both = { peer: "+15550100002", id: "msg_in_1" };
    await expect(receiver.inbox.erase(both)).rejects.toMatchObject({ code: "invalid_option" });
    expect(await receiver.inbox.audit()).toEqual([]);
  });

  it("replays a dead letter to its handlers, as a replay, and writes who did it", async () => {
    const { receiver, deliver } = sqliteBench();
    const replays: boolean[] = [];
    receiver.onAny((_, ctx) => {
      replays.push(ctx.replay);
      if (!ctx.replay) throw new PermanentError("first");
    });
    await receiver.start();
    await deliver(body);
    await until(async () => (await receiver.inbox.stats()).gauges.dead === 1);
    expect((await receiver.health()).reasons).toEqual(["dead_letters"]);
    expect(await receiver.inbox.replay(1, { by: "ann" })).toMatchObject({ ok: true });
    await until(async () => (await receiver.inbox.stats()).counters.handled === 1);
    expect(replays).toEqual([false, true]);
    expect(await receiver.inbox.audit(5)).toMatchObject([{ act: "replay", by: "ann" }]);
    expect(await receiver.health()).toMatchObject({ status: "ok", reasons: [] });
    expect(await receiver.inbox.replay(99)).toEqual({ ok: false, reason: "not_found" });
  });

  it("writes that a message and a quarantined body were shown, and by whom", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver(body);
    await deliver("no event");
    expect(await receiver.inbox.reveal(1, { by: "ann" })).toMatchObject({ ok: true });
    expect(await receiver.inbox.revealQuarantined(1)).toMatchObject({ ok: true });
    expect(await receiver.inbox.revealQuarantined(99)).toEqual({ ok: false, reason: "not_found" });
    const audit = (await receiver.inbox.audit()).map(({ act, by }) => [act, by]);
    expect(audit).toEqual([
      ["reveal_quarantined", "application"],
      ["reveal", "ann"],
    ]);
  });

  it("unblocks a message that waits behind its dead letter", async () => {
    const { receiver, deliver } = sqliteBench({ onDead: "block" });
    const seen: string[] = [];
    receiver.onAny((event) => {
      seen.push(event.eventType);
      if (event.eventType === "message.queued") throw new PermanentError("no");
    });
    await receiver.start();
    await deliver(outbound("queued"));
    await deliver(outbound("sent"));
    await until(async () => (await receiver.inbox.stats()).gauges.blockedLanes === 1);
    expect((await receiver.health()).reasons).toEqual(["dead_letters", "blocked_lanes"]);
    expect(await receiver.inbox.unblock(1)).toMatchObject({ ok: true });
    await until(() => seen.length === 2);
    expect(seen).toEqual(["message.queued", "message.sent"]);
  });

  it("erases a person's data; a repeat is still known (RCV-6)", async () => {
    const { receiver, deliver } = sqliteBench();
    await deliver(body);
    expect(await receiver.inbox.erase({ id: "msg_in_1" }, { by: "ann" })).toMatchObject({ ok: true, count: 1 });
    expect((await receiver.inbox.find()).items).toMatchObject([{ hasBody: false, state: "discarded" }]);
    expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
    expect((await receiver.inbox.audit())[0]).toMatchObject({ act: "erase", by: "ann" });
  });
});

describe("hooks", () => {
  it("tell of failures and dead letters; those that throw change nothing", async () => {
    const { receiver, deliver, clock, log } = memoryBench({ maxAttempts: 2 });
    const failures: FailureNotice[] = [];
    const dead: DeadLetterNotice[] = [];
    const error = new RetryAfter(10);
    receiver
      .onError((notice) => failures.push(notice))
      .onError(() => {
        throw new Error("hook");
      })
      .onDeadLetter((notice) => dead.push(notice))
      .onDeadLetter(() => Promise.reject(new Error("hook")))
      .onAny(() => {
        throw error;
      });
    await receiver.start();
    expect((await deliver(body)).status).toBe(503);
    await clock.advance(1_000);
    expect(failures.map(({ attempt, error: thrown }) => [attempt, thrown])).toEqual([
      [1, error],
      [2, error],
    ]);
    expect(dead).toMatchObject([{ eventId: 1, attempts: 2, code: "retry_after" }]);
    expect(log.filter(({ message }) => message === "A hook threw.")).toHaveLength(3);
  });
});

describe("handlers' context", () => {
  it("logs with the event's ids", async () => {
    const { receiver, deliver, log } = memoryBench();
    receiver.onAny((_, ctx) => ctx.log.info({ mine: 1 }, "Seen."));
    await deliver(outbound("queued"));
    expect(log.find(({ message }) => message === "Seen.")?.fields).toEqual({
      ...{ eventId: 1, eventType: "message.queued", sequence: 1, source: "service", lane: "msg_1", mine: 1 },
    });
  });
});

describe("counters and heartbeats", () => {
  it("are written every 10 s with the keyring's name, and at stop", async () => {
    const { receiver, deliver, clock } = sqliteBench();
    await deliver(body);
    await deliver(body, { unsigned: true });
    await clock.advance(10_000);
    const [instance] = (await receiver.inbox.stats()).instances;
    expect(instance).toMatchObject({
      pid: process.pid,
      counters: { "slot:service:current": 1, "refused:missing_signature": 1 },
    });
    expect(instance?.keyringVersion).toMatch(/^[0-9a-f]{16}$/);
  });

  it("come from closed sets, whatever is sent", async () => {
    const { receiver, deliver } = sqliteBench();
    for (let index = 0; index < 50; index++) {
      await deliver(`{"eventType":"type ${index}"}`, { tenant: `tenant ${index}` });
      await deliver(body, { method: `METHOD${index}` });
      await deliver(body, { headers: { "content-encoding": `gzip${index}` } });
    }
    expect(receiver.counters).toEqual({ "slot:service:current": 50, "refused:method": 50, "refused:encoding": 50 });
  });
});

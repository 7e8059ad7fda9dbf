/** An inbox in the hands of somebody who is no receiver. */
import { hash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { copyInbox, createReceiver, openInbox, PermanentError } from "../../src/index.ts";
import { github, service } from "../../src/sources/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { quarantine, turn } from "../stores/sqlite-turns.ts";
import { failureOf } from "../support/failure-of.ts";
import { becomeLater } from "../support/later-version.ts";
import { DAY, newInboxFile, recordedLog, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const { logger } = recordedLog();

describe("openInbox()", () => {
  it("sees and acts beside a running receiver, which handles what became ready", async () => {
    const { receiver, deliver, clock, file } = sqliteBench({ name: "billing" });
    let broken = true;
    receiver.onAny(() => {
      if (broken) throw new PermanentError("no");
    });
    await receiver.start();
    await deliver(outbound("queued"));
    await until(async () => (await receiver.inbox.stats()).gauges.dead === 1);
    broken = false;
    await using inbox = await openInbox({ store: sqliteStore(file), clock, logger });
    expect(inbox.location).toBe(`sqlite:${file}`);
    expect(inbox.rules).toEqual({ name: "billing", toleranceMs: 95 * 60_000 });
    expect(await inbox.replay(1, { by: "ann" })).toMatchObject({ ok: true });
    await clock.advance(100);
    await until(async () => (await inbox.stats()).counters.handled === 1);
    expect(await receiver.inbox.audit(1)).toMatchObject([{ act: "replay", by: "ann" }]);
  });

  it("is no receiver: none shows in the statistics, and an inbox is copied right after", async () => {
    const { receiver, file } = sqliteBench();
    await receiver.inbox.stats();
    await receiver.stop();
    const inbox = await openInbox({ store: sqliteStore(file), logger });
    expect((await inbox.stats()).instances).toEqual([]);
    await inbox.close();
    const copied = copyInbox({ from: sqliteStore(file), to: memoryStore({ volatile: true }) });
    await expect(copied).resolves.toMatchObject({ lanes: 0 });
  });

  it("goes by the recorded rules: a replayed quarantined body waits for what they count as missing", async () => {
    const { receiver, file, clock, store } = sqliteBench({ firstSequence: 0 });
    receiver.onAny(() => {});
    await receiver.start();
    const raw = Buffer.from(outbound("queued"));
    const quarantine = {
      reason: "unknown_version",
      slot: "current",
      signer: "s",
      source: "service",
      tenant: null,
      kinds: [],
      signedAt: clock.now(),
      trace: null,
    };
    await store.step(turn({ quarantines: [{ ...quarantine, digest: hash("sha256", raw, "buffer"), raw }] }));
    await receiver.stop();
    const inbox = await openInbox({ store: sqliteStore(file), clock, logger, gapWait: "strict" });
    expect(await inbox.replayQuarantined(1)).toMatchObject({ ok: true });
    const { items } = await inbox.findLanes({ statuses: ["gap"] });
    expect(items).toMatchObject([{ newest: { sequence: 1 }, readyAt: clock.now() + 85 * 60_000 }]);
    await inbox.close();
  });

  it("replays a body of the messaging service under the name of its entry, and none of another source", async () => {
    const path = newInboxFile();
    const store = sqliteStore(path);
    const sources = { messages: service({ secrets: SECRET }), code: github({ secrets: SECRET }) };
    const receiver = createReceiver({ store, sources, logger });
    for (const name of ["messages", "code"] as const) receiver.source(name).onAny(() => {});
    await receiver.start();
    const raw = Buffer.from(inbound());
    const held = ["messages", "code"].map((source, index) =>
      quarantine(raw, { source, kinds: [], digest: Buffer.alloc(32, index) }),
    );
    await store.step(turn({ quarantines: held }));
    await receiver.stop();
    await using inbox = await openInbox({ store: sqliteStore(path), logger });
    expect(await inbox.replayQuarantined(1)).toMatchObject({ ok: true });
    const refused = { code: "source_needed", message: expect.stringContaining('the source "code"') };
    expect(await failureOf(inbox.replayQuarantined(2))).toMatchObject(refused);
    const lane = { source: "messages", tenant: "apc_1", name: null, order: null };
    expect((await inbox.find()).items).toMatchObject([{ lane, ownId: "msg_in_1" }]);
  });

  it("makes no inbox, and closes for good", async () => {
    const path = newInboxFile();
    expect(await failureOf(openInbox({ store: sqliteStore(path), logger }))).toMatchObject({ code: "no_inbox" });
    const { receiver, file } = sqliteBench();
    await receiver.inbox.stats();
    const inbox = await openInbox({ store: sqliteStore(file), logger });
    await inbox.close();
    await inbox.close();
    expect(await failureOf(inbox.find())).toMatchObject({ code: "closed" });
  });

  it("migrates no inbox of an older version, unless told to", async () => {
    const { receiver, file } = sqliteBench();
    await receiver.inbox.stats();
    await receiver.stop();
    onTestFinished(becomeLater());
    for (const wish of [{}, { migrate: "check" }] as const) {
      const opened = openInbox({ store: sqliteStore(file), logger, ...wish });
      expect(await failureOf(opened)).toMatchObject({ code: "migration_needed" });
    }
  });

  it('opens an inbox that needs no migration with migrate: "auto", and closes it where its scope ends', async () => {
    const { receiver, file } = sqliteBench();
    await receiver.inbox.stats();
    const used = await openInbox({ store: sqliteStore(file), logger, migrate: "auto" });
    {
      await using inbox = used;
      expect(await inbox.find()).toEqual({ items: [], next: null });
    }
    expect(await failureOf(used.find())).toMatchObject({ code: "closed" });
  });

  it.each([
    [{ stor: 1 }, "stor", 'openInbox() has no option "stor"'],
    [{}, "store", 'must be a store, such as sqliteStore("inbox.db") from oncehook/sqlite'],
    [{ store: "inbox.db" }, "store", "must be a store"],
    [{ store: memoryStore(), migrate: "no" }, "migrate", 'must be one of "check", "auto"'],
    [{ store: memoryStore(), gapWait: "long" }, "gapWait", '"gapWait"'],
    [{ store: memoryStore(), logger: {} }, "logger", '"logger"'],
  ])("refuses the options %j, and says what it takes", async (options, option, words) => {
    const refused = { code: "invalid_option", fields: { option }, message: expect.stringContaining(words) };
    expect(await failureOf(openInbox(options as never))).toMatchObject(refused);
  });
});

describe("inbox.prune()", () => {
  async function handled(count: number) {
    const clock = createFakeClock();
    const bench = sqliteBench({ clock });
    bench.receiver.onAny(() => {});
    const body = (n: number) => inbound({ messageId: `m ${n}` });
    for (let n = 0; n < count; n += 200)
      await Promise.all(Array.from({ length: 200 }, (_, index) => bench.deliver(body(n + index))));
    expect(await bench.receiver.drain()).toMatchObject({ claimed: count });
    await bench.receiver.stop();
    await clock.advance(8 * DAY);
    // The service goes on: pruning never runs ahead of its timestamps.
    const later = sqliteBench({ clock }, bench.file);
    await later.deliver(inbound({ messageId: "later" }));
    await later.receiver.stop();
    return openInbox({ store: sqliteStore(bench.file), clock, logger });
  }

  it("removes what is past its retention, in batches, and says how much", async () => {
    const inbox = await handled(600);
    const progress: number[] = [];
    expect(await inbox.prune({ handledBodiesMs: 9 * DAY })).toMatchObject({ bodies: 0, events: 0 });
    expect(await inbox.prune(undefined, { onProgress: ({ bodies }) => progress.push(bodies) })).toEqual({
      ...{ bodies: 600, events: 0, lanes: 0, quarantined: 0 },
    });
    expect(progress).toEqual([500, 600]);
    expect(await inbox.prune({ identitiesMs: 5 * DAY })).toMatchObject({ events: 600, lanes: 600 });
    await inbox.close();
  });

  it("stops between two batches, with the signal's reason", async () => {
    const inbox = await handled(600);
    const stop = new AbortController();
    const pruning = inbox.prune({}, { signal: stop.signal, onProgress: () => stop.abort(new Error("enough")) });
    await expect(pruning).rejects.toThrow("enough");
    expect(await inbox.prune()).toMatchObject({ bodies: 100 });
    await inbox.close();
  });

  it("keeps identities for the recorded tolerance and a day, whatever is asked", async () => {
    const { receiver, file } = sqliteBench({ toleranceMs: { past: DAY, future: 1 } });
    await receiver.inbox.stats();
    const inbox = await openInbox({ store: sqliteStore(file), logger });
    for (const name of ["identitiesMs", "deadMs"] as const) {
      const failure = await failureOf(inbox.prune({ [name]: 2 * DAY }));
      expect(failure).toMatchObject({ code: "invalid_option", fields: { option: `retention.${name}` } });
      await expect(inbox.prune({ [name]: 2 * DAY + 1 })).resolves.toMatchObject({ events: 0 });
    }
    await inbox.close();
  });
});

/** Copies between stores in memory; what every store gives and takes is in the store contract. */
import { describe, expect, it } from "vitest";
import { SetupError, StoreError } from "../../src/errors.ts";
import { type CopyOptions, type CopyStore, copyInbox, copyOpen } from "../../src/inbox/copy.ts";
import type { AuditRecord } from "../../src/inbox/record.ts";
import type { InboxStore, OpenContext } from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { failureOf } from "../support/failure-of.ts";
import { openContext, outbound, RULES, stepElsewhere } from "./bench.ts";

const clock = createFakeClock();
const BEAT = { keyringVersion: "1", counters: {} };

/** Open, with an event of each of these messages. */
async function inboxWith(...messageIds: string[]): Promise<InboxStore<never>> {
  const store = memoryStore({ volatile: true });
  await store.open(openContext(clock, silentLogger));
  await stepElsewhere(store, { limit: 0 }, { accepts: messageIds.map((id) => outbound(clock, id, 1)) });
  return store;
}

/** Writes down how `store` was opened. */
function heard(store: CopyStore, opens: OpenContext[]): CopyStore {
  return {
    ...store,
    open: (context) => {
      opens.push(context);
      return store.open(context);
    },
  };
}

const isClosed = async (store: CopyStore) => (await failureOf(store.stats(), StoreError)).code === "closed";

async function closed(...messageIds: string[]): Promise<InboxStore<never>> {
  const store = await inboxWith(...messageIds);
  await store.close();
  return store;
}

describe("copyInbox()", () => {
  it("opens the source by its recorded rules, makes the target by them, and closes both", async () => {
    const [from, to] = [await closed("a", "b"), memoryStore({ volatile: true })];
    const opens: OpenContext[] = [];
    const result = await copyInbox({ from: heard(from, opens), to: heard(to, opens) });
    expect(result).toMatchObject({ lanes: 2, events: 2, pending: 2, lanesBefore: 0 });
    expect(opens).toMatchObject([
      { rules: "recorded", migrate: "auto" },
      { rules: RULES, migrate: "auto", copying: true },
    ]);
    expect(opens[0]?.copying).toBeUndefined();
    expect([await isClosed(from), await isClosed(to)]).toEqual([true, true]);
  });

  it("copies a moved inbox back into a new one", async () => {
    const [old, now, again] = [await closed("a"), memoryStore({ volatile: true }), memoryStore({ volatile: true })];
    await copyInbox({ from: old, to: now, move: true });
    expect(await copyInbox({ from: now, to: again, move: true })).toMatchObject({ moved: true, events: 1 });
    await again.open(openContext(clock, silentLogger));
  });

  it("takes along which entry is which kind of source, and the rules of its lanes", async () => {
    const from = await inboxWith("a");
    const billing = { name: "billing", preset: "stripe", shows: ["id"], sequence: null };
    const calls = { name: "calls", preset: "acme", shows: [], sequence: { firstSequence: 0, lastRetryMs: 600_000 } };
    await from.admit([billing, calls]);
    const to = memoryStore({ volatile: true });
    await from.close();
    await copyInbox({ from, to });
    await to.open(openContext(clock, silentLogger));
    expect(await to.admit([])).toEqual([billing, calls]);
    const other = [{ name: "billing", preset: "github", shows: [], sequence: null }];
    expect(await failureOf(to.admit(other))).toMatchObject({ code: "wrong_source" });
  });

  it("closes what it opened when the target cannot be opened, and when the copy fails", async () => {
    const from = await closed("a");
    const broken = { ...memoryStore({ volatile: true }), open: () => Promise.reject(new Error("no such server")) };
    await expect(copyInbox({ from, to: broken })).rejects.toThrow("no such server");
    expect(await isClosed(from)).toBe(true);
    const to = await closed("other");
    expect(await failureOf(copyInbox({ from, to }))).toMatchObject({ code: "copy_refused" });
    expect([await isClosed(from), await isClosed(to)]).toEqual([true, true]);
  });

  it.each([
    [{ move: "yes" }, /"move"/],
    [{ onprogress: () => {} }, /^copyInbox\(\) has no option "onprogress"/],
  ])("refuses %o", async (wrong, message) => {
    const options = { from: await closed("a"), to: memoryStore(), ...wrong } as unknown as CopyOptions;
    const refused = { code: "invalid_option", message: expect.stringMatching(message) };
    expect(await failureOf(copyInbox(options))).toMatchObject(refused);
  });
});

describe("copyOpen()", () => {
  const REFUSED = "Nothing was lost; see docs/moving-to-postgres.md.";

  it("refuses one store as both", async () => {
    const store = await inboxWith("a");
    expect(await failureOf(copyOpen({ from: store, to: store }, clock))).toMatchObject({
      ...{ code: "copy_refused", message: `The two stores are one: memory:. ${REFUSED}` },
    });
  });

  it.each(["from", "to"] as const)(
    "refuses an inbox (%s) that a receiver worked on in the last minute",
    async (which) => {
      const stores = { from: await inboxWith("a"), to: await inboxWith() };
      await stores[which].heartbeat(BEAT);
      const why = `A receiver works on it, or did a minute ago (process ${process.pid}): stop it, and wait for a minute if it was killed`;
      await clock.advance(59_999);
      expect(await failureOf(copyOpen(stores, clock))).toMatchObject({
        ...{ code: "copy_refused", message: `${why}: memory:. ${REFUSED}` },
      });
      await clock.advance(1);
      expect(await copyOpen(stores, clock)).toMatchObject({ lanes: 1 });
    },
  );

  it("names all processes that work", async () => {
    const from = await inboxWith("a");
    await from.heartbeat(BEAT);
    const stats = async () => {
      const found = await from.stats();
      return { ...found, instances: [1, 22].flatMap((pid) => found.instances.map((one) => ({ ...one, pid }))) };
    };
    const failure = await failureOf(copyOpen({ from: { ...from, stats }, to: await inboxWith() }, clock), SetupError);
    expect(failure.message).toContain("(process 1, 22)");
  });

  it("refuses a target that holds something else", async () => {
    const stores = { from: { ...(await inboxWith("a")), location: "sqlite:old.db" }, to: await inboxWith("other") };
    expect(await failureOf(copyOpen(stores, clock))).toMatchObject({
      ...{
        code: "copy_refused",
        message: `It holds something that does not come from sqlite:old.db: memory:. ${REFUSED}`,
      },
    });
  });

  it("refuses a source whose audit it would copy in part only, before it copies anything", async () => {
    const row = { id: 1, at: 0, by: "maria", act: "erase", detail: "1 rows" };
    const audit = async (limit: number) => Array<AuditRecord>(Math.min(limit, 1_000_001)).fill(row);
    const [from, to] = [{ ...(await inboxWith("a")), audit }, await inboxWith()];
    const message = `Its audit has more rows than the 1,000,000 that are copied: memory:. ${REFUSED}`;
    expect(await failureOf(copyOpen({ from, to }, clock))).toMatchObject({ code: "copy_refused", message });
    expect(await to.export(0, 1)).toEqual([]);
  });

  it("refuses to end while the source is still worked on", async () => {
    const from = await inboxWith("a");
    let duplicates = 0;
    const stats = async () => {
      const found = await from.stats();
      return { ...found, counters: { ...found.counters, duplicates: duplicates++ } };
    };
    expect(await failureOf(copyOpen({ from: { ...from, stats }, to: await inboxWith() }, clock))).toMatchObject({
      ...{ code: "copy_refused", message: expect.stringContaining("A receiver worked on it during the copy") },
    });
  });

  it("says what is missing where the two differ, or that it is the content", async () => {
    const to = { ...(await inboxWith()), location: "postgres:new" };
    const missing: CopyStore = { ...to, export: async (after, limit) => (await to.export(after, limit)).slice(0, 1) };
    const fewer: CopyStore = {
      ...missing,
      export: (after, limit) => (after > 0 ? Promise.resolve([]) : missing.export(after, limit)),
    };
    const from = await inboxWith("a", "b");
    const advice = "a receiver worked on one of them. Keep using the source, empty the target, and copy again.";
    expect(await failureOf(copyOpen({ from, to: fewer }, clock))).toMatchObject({
      code: "copy_differs",
      message: `memory: and postgres:new hold lanes 2 and 1, events 2 and 1, bodies 2 and 1, pending 2 and 1: ${advice}`,
    });
    const changed: CopyStore = {
      ...to,
      export: async (after, limit) => (await to.export(after, limit)).map((lane) => ({ ...lane, cursor: 7 })),
    };
    expect(await failureOf(copyOpen({ from, to: changed }, clock))).toMatchObject({
      code: "copy_differs",
      message: `memory: and postgres:new hold the same numbers, but not the same content: ${advice}`,
    });
  });

  it("tells how far it is, in each phase", async () => {
    const told: unknown[] = [];
    const stores = { from: await inboxWith("a", "b"), to: await inboxWith() };
    await copyOpen({ ...stores, onProgress: (progress) => void told.push(progress) }, clock);
    expect(told).toEqual([
      { phase: "copy", lanes: 2, events: 2 },
      { phase: "copy", lanes: 2, events: 2 },
      { phase: "compare", lanes: 2, events: 2 },
      { phase: "compare", lanes: 4, events: 4 },
    ]);
  });

  it("only compares once a copy has come to its end", async () => {
    const stores = { from: await inboxWith("a"), to: await inboxWith() };
    await copyOpen(stores, clock);
    const told: unknown[] = [];
    const again = await copyOpen({ ...stores, onProgress: ({ phase }) => void told.push(phase) }, clock);
    expect(again).toMatchObject({ lanes: 1, lanesBefore: 1 });
    expect(told).toEqual(["compare", "compare"]);
  });

  it("marks last, and can go on if it ends between the mark and the end of the copy: neither opens until then", async () => {
    const [from, to] = [await inboxWith("a"), await inboxWith()];
    const steps: string[] = [];
    const watched: CopyStore = {
      ...from,
      markMoved: (place) => {
        steps.push("marked");
        return from.markMoved(place);
      },
    };
    const cut: CopyStore = {
      ...to,
      import: (page) => (page.totals === null ? to.import(page) : Promise.reject(new Error("killed"))),
    };
    const onProgress = ({ phase }: { readonly phase: string }) => void steps.push(phase);
    const copying = { from: watched, to: cut, move: true, onProgress };
    expect(await failureOf(copyOpen(copying, clock))).toMatchObject({ message: "killed" });
    expect([...new Set(steps)]).toEqual(["copy", "compare", "marked"]);
    for (const store of [from, to]) await store.close();
    expect(await failureOf(from.open(openContext(clock, silentLogger)))).toMatchObject({ code: "inbox_moved" });
    expect(await failureOf(to.open(openContext(clock, silentLogger)))).toMatchObject({ code: "copy_unfinished" });
    expect(await copyInbox({ from, to, move: true })).toMatchObject({ moved: true, events: 1 });
    await to.open(openContext(clock, silentLogger));
  });

  it("takes the mark back if the source was worked on meanwhile, and marks nothing that others have open", async () => {
    const [from, to] = [await inboxWith("a"), await inboxWith()];
    const others: CopyStore = { ...from, markMoved: async () => [11, 12] };
    expect(await failureOf(copyOpen({ from: others, to, move: true }, clock))).toMatchObject({
      code: "copy_refused",
      message: expect.stringContaining(
        "Everything is copied, but a process has it open (11, 12): stop it, and copy again",
      ),
    });
    const marks: (string | null)[] = [];
    const busy: CopyStore = {
      ...from,
      async markMoved(place) {
        marks.push(place);
        return [];
      },
      async stats() {
        const stats = await from.stats();
        return { ...stats, counters: { ...stats.counters, accepted: stats.counters.accepted + marks.length } };
      },
    };
    expect(await failureOf(copyOpen({ from: busy, to, move: true }, clock))).toMatchObject({ code: "copy_refused" });
    expect(marks).toEqual(["memory:", null]);
  });

  it("does not tell to empty a target whose copy had ended: receivers may have used it since", async () => {
    const stores = { from: await inboxWith("a"), to: await inboxWith() };
    await copyOpen(stores, clock);
    await stepElsewhere(stores.to, { limit: 0 }, { accepts: [outbound(clock, "later", 1)] });
    const { message } = await failureOf(copyOpen(stores, clock), StoreError);
    expect(message).toMatch(/The copy had ended before: use only the one that receivers have worked on since/);
    expect(message).not.toMatch(/empty the target/);
  });

  it("stops between two pages with the signal's reason, and goes on later", async () => {
    const stores = { from: await inboxWith("a"), to: await inboxWith() };
    const stop = new AbortController();
    const reason = new Error("enough");
    const copying = copyOpen({ ...stores, signal: stop.signal, onProgress: () => stop.abort(reason) }, clock);
    await expect(copying).rejects.toBe(reason);
    expect(await copyOpen(stores, clock)).toMatchObject({ lanes: 1, lanesBefore: 1 });
  });
});

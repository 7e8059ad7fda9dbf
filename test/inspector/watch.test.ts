/** The watch over an inbox, on its own clock. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/index.ts";
import { type Look, type Watch, watchInbox } from "../../src/inspector/watch.ts";
import { type Bench, deferred, memoryBench, sqliteBench } from "../receiver/bench.ts";
import { outbound } from "../receiver/events.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

interface Scene<Tx> extends Bench<Tx> {
  readonly watch: Watch;
  /** How often the inbox was looked at. */
  looked(): number;
  /** Looks wait for it. */
  hold(until: Promise<unknown> | null): void;
}

function sceneOf<Tx>(bench: Bench<Tx>): Scene<Tx> {
  const { receiver, clock, logger } = bench;
  let looks = 0;
  let held: Promise<unknown> | null = null;
  const stats = async () => {
    looks += 1;
    const seen = await receiver.inbox.stats();
    await held;
    return seen;
  };
  const watch = watchInbox({ inbox: { stats }, clock, logger });
  const hold = (until: Promise<unknown> | null) => {
    held = until;
  };
  return { ...bench, watch, looked: () => looks, hold };
}

/** Collects what one viewer sees. */
function viewer(watch: Watch): { seen: Look[]; leave(): void; readonly hasEnded: boolean } {
  const leaving = new AbortController();
  const state = { seen: [] as Look[], leave: () => leaving.abort(), hasEnded: false };
  const looks = watch.looks(leaving.signal);
  void (async () => {
    for await (const look of looks) state.seen.push(look);
    state.hasEnded = true;
  })();
  return state;
}

describe.each([
  ["memory", () => memoryBench()],
  ["SQLite", () => sqliteBench()],
])("watchInbox() on %s", (_name, makeBench) => {
  const scene = () => sceneOf(makeBench() as Bench<unknown>);

  it("looks at nothing until somebody does", async () => {
    const { clock, looked } = scene();
    await clock.advance(MINUTE);
    expect(looked()).toBe(0);
  });

  it("shows one look to all who ask within a second", async () => {
    const { watch, clock, looked } = scene();
    const [first, second] = await Promise.all([watch.look(), watch.look()]);
    expect(second).toBe(first);
    await clock.advance(999);
    expect(await watch.look()).toBe(first);
    expect(looked()).toBe(1);
    await clock.advance(1);
    expect(await watch.look()).not.toBe(first);
    expect(looked()).toBe(2);
  });

  it("looks once a second for all who watch, at once for the first", async () => {
    const { watch, clock, looked } = scene();
    const viewers = [viewer(watch), viewer(watch), viewer(watch)];
    expect(watch.watching).toBe(3);
    await clock.advance(0);
    expect(viewers.map(({ seen }) => seen.length)).toEqual([1, 1, 1]);
    await clock.advance(10 * SECOND);
    expect(viewers.map(({ seen }) => seen.length)).toEqual([11, 11, 11]);
    expect(looked()).toBe(11);
  });

  it("shares a look that is less than a second old with a later viewer", async () => {
    const { watch, clock, looked } = scene();
    const first = viewer(watch);
    await clock.advance(500);
    const second = viewer(watch);
    await clock.advance(0);
    expect(second.seen).toEqual(first.seen);
    expect(looked()).toBe(1);
  });

  it("looks every 5 s for 10 minutes after the last one left, then no more", async () => {
    const { watch, clock, looked } = scene();
    const only = viewer(watch);
    await clock.advance(0);
    only.leave();
    await clock.advance(SECOND);
    expect({ ended: only.hasEnded, watching: watch.watching }).toEqual({ ended: true, watching: 0 });
    const before = looked();
    await clock.advance(5 * MINUTE);
    expect(looked() - before).toBe(60);
    await clock.advance(6 * MINUTE);
    const at = looked();
    expect(at - before).toBeLessThanOrEqual(121);
    await clock.advance(30 * MINUTE);
    expect(looked()).toBe(at);
  });

  it("keeps the samples of 15 minutes, the oldest first", async () => {
    const { watch, clock } = scene();
    viewer(watch);
    await clock.advance(20 * MINUTE);
    const { samples, everyMs } = watch.history();
    expect(everyMs).toBe(SECOND);
    expect(samples).toHaveLength(900);
    expect(samples.at(-1)?.at).toBe(clock.now());
    expect(samples[0]?.at).toBe(clock.now() - 15 * MINUTE + SECOND);
  });

  it("forgets samples that have become old while nobody looked", async () => {
    const { watch, clock } = scene();
    await watch.look();
    await clock.advance(40 * MINUTE);
    expect(watch.history().samples).toEqual([]);
  });

  it("grows `changed` when something came, and only then", async () => {
    const { watch, clock, deliver } = scene();
    const { seen } = viewer(watch);
    await clock.advance(3 * SECOND);
    expect(seen.map(({ changed }) => changed)).toEqual([1, 1, 1, 1]);
    await deliver(outbound("queued"));
    await clock.advance(2 * SECOND);
    expect(seen.slice(4).map(({ changed }) => changed)).toEqual([2, 2]);
    expect(seen.at(-1)).toMatchObject({ sample: { accepted: 1 }, overview: { counters: { accepted: 1 } } });
  });

  it("takes no notice of an instance that was merely seen again, and names its slots and refusals", async () => {
    const { watch, clock, deliver, receiver } = scene();
    receiver.onAny(() => {});
    await receiver.start();
    await deliver(outbound("queued"));
    await deliver(outbound("queued"), { secret: "another-webhook-secret-of-32-byt" });
    await clock.advance(2 * MINUTE);
    const { seen } = viewer(watch);
    await clock.advance(2 * MINUTE);
    expect(new Set(seen.map(({ overview }) => overview.instances[0]?.seenAt)).size).toBeGreaterThan(2);
    expect(new Set(seen.map(({ changed }) => changed)).size).toBe(1);
    expect(seen.at(-1)?.overview.slots).toEqual({ current: 1 });
    expect(seen.at(-1)?.overview.rejections).toEqual({ signature_mismatch: 1 });
    expect(seen.at(-1)?.sample.rejected).toBe(1);
  });

  it("outlives a store that fails, in silence, and logs once a minute", async () => {
    const { watch, clock, store, log } = scene();
    const { seen } = viewer(watch);
    await clock.advance(SECOND);
    const before = seen.length;
    store.faults.reads = new StoreError("store_unavailable", "It is away.");
    await clock.advance(90 * SECOND);
    expect(seen).toHaveLength(before);
    const told = () => log.filter(({ message }) => message.startsWith("The inspector"));
    expect(told()).toMatchObject([
      { level: "warn", fields: { code: "store_unavailable" } },
      { level: "warn", fields: { code: "store_unavailable" } },
    ]);
    await expect(watch.look()).rejects.toMatchObject({ code: "store_unavailable" });
    store.faults.reads = null;
    await clock.advance(SECOND);
    expect(seen).toHaveLength(before + 1);
  });

  it("looks soon after an act, once for many, and counts it as a change", async () => {
    const { watch, clock, looked } = scene();
    const { seen } = viewer(watch);
    await clock.advance(300);
    for (let act = 0; act < 100; act++) watch.touch();
    await clock.advance(0);
    expect(seen.map(({ changed }) => changed)).toEqual([1, 2]);
    watch.touch();
    await clock.advance(249);
    expect(looked()).toBe(2);
    await clock.advance(1);
    expect(seen.map(({ changed }) => changed)).toEqual([1, 2, 3]);
  });

  it("does not show a look that began before an act as one after it", async () => {
    const { watch, clock, hold, deliver } = scene();
    await watch.look();
    await clock.advance(SECOND);
    const gate = deferred();
    hold(gate.promise);
    const early = watch.look();
    await clock.advance(0);
    hold(null);
    await deliver(outbound("queued"));
    watch.touch();
    const late = watch.look();
    expect((await late).sample.accepted).toBe(1);
    gate.resolve();
    expect((await early).sample.accepted).toBe(0);
    expect((await watch.look()).sample.accepted).toBe(1);
    expect(watch.history().samples.map(({ accepted }) => accepted)).toEqual([0, 1]);
  });

  it("does not let a slow look pile up others", async () => {
    const { watch, clock, looked, hold } = scene();
    const gate = deferred();
    hold(gate.promise);
    const { seen } = viewer(watch);
    await clock.advance(10 * SECOND);
    expect(looked()).toBe(1);
    hold(null);
    gate.resolve();
    await clock.advance(2 * SECOND);
    expect(seen).toHaveLength(3);
  });

  it("gives a slow viewer only the newest look", async () => {
    const { watch, clock } = scene();
    const looks = watch.looks(new AbortController().signal)[Symbol.asyncIterator]();
    await clock.advance(10 * SECOND);
    expect((await looks.next()).value).toMatchObject({ sample: { at: clock.now() } });
    const next = looks.next();
    await clock.advance(SECOND);
    expect((await next).value).toMatchObject({ sample: { at: clock.now() } });
  });

  it("stops at its closing, for all and for good", async () => {
    const { watch, clock, looked } = scene();
    const one = viewer(watch);
    await clock.advance(2 * SECOND);
    watch.close();
    const before = looked();
    const two = viewer(watch);
    await clock.advance(MINUTE);
    expect([one.hasEnded, two.hasEnded, watch.watching]).toEqual([true, true, 0]);
    expect(looked()).toBe(before);
  });

  it("takes nobody in whose signal has aborted", async () => {
    const { watch, clock } = scene();
    const looks = watch.looks(AbortSignal.abort())[Symbol.asyncIterator]();
    expect(watch.watching).toBe(0);
    expect(await looks.next()).toEqual({ done: true, value: undefined });
    await clock.advance(MINUTE);
  });
});

it("tells how long the oldest has waited", async () => {
  const { watch, clock, deliver } = sceneOf(sqliteBench());
  await deliver(outbound("queued"));
  await clock.advance(7 * SECOND);
  expect((await watch.look()).sample).toMatchObject({ pending: 1, oldestWaitingMs: 7 * SECOND, handled: 0 });
});

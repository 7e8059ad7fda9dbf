/** How many leases are held ahead, and for how long they are renewed. */
import { describe, expect, it } from "vitest";
import { type HeldLease, Leases } from "../../src/inbox/claims.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

function scene(concurrency = 4) {
  const fake = createFakeClock();
  let timers = 0;
  const clock = {
    ...fake,
    setTimeout(call: () => void, ms: number) {
      timers++;
      return fake.setTimeout(call, ms);
    },
  };
  const extended: [events: number[], leaseMs: number][] = [];
  const losing = new Set<number>();
  const failing = { count: 0 };
  const asked = { meanwhile: () => {} };
  const extend = async (leases: readonly { readonly event: number }[], leaseMs: number) => {
    if (failing.count-- > 0) throw new Error("no answer");
    extended.push([leases.map(({ event }) => event), leaseMs]);
    asked.meanwhile();
    return leases.map(({ event }) => !losing.has(event));
  };
  const lines: unknown[] = [];
  const logger = { ...silentLogger, warn: (fields: object, message: string) => void lines.push([fields, message]) };
  const lost: number[] = [];
  const leases = new Leases({ extend }, { concurrency, leaseMs: 30_000, clock, logger }, ({ event }) => {
    lost.push(event);
  });
  const add = (event: number) => leases.add({ lane: event, token: 1, event } as Lease, null);
  return { clock: fake, leases, add, extended, losing, lost, lines, failing, asked, timers: () => timers };
}

const held = {} as HeldLease;

describe("Leases.capacity", () => {
  it.each([
    ["the handlers that may run, before any ended", [], 4],
    ["as many as 50 ms of work need", [10], 20],
    ["no fewer than may run, where handlers are slow", [1_000], 4],
    ["256 at most, where they take no time", [0], 256],
    ["a tenth of the way to each later measurement", [10, 60], 14],
    ["the same way back", [20, 10], 11],
  ])("is %s", (_, durations, capacity) => {
    const { leases } = scene();
    for (const durationMs of durations) leases.finished(held, durationMs);
    expect(leases.capacity).toBe(capacity);
  });
});

describe("Leases", () => {
  it("gives out one lease per free place, in order, and null without one", () => {
    const { leases, add } = scene(2);
    expect(leases.next()).toBe(null);
    for (const event of [1, 2, 3]) add(event);
    const [first, second, third] = [leases.next(), leases.next(), leases.next()];
    expect([first?.lease.event, second?.lease.event, third]).toEqual([1, 2, null]);
    if (first !== null) leases.finished(first, 5);
    expect(leases.next()?.lease.event).toBe(3);
    expect(leases.slotsTaken).toBe(2);
  });

  it("renews for the whole lease time at each third of it", async () => {
    const { clock, leases, add, extended } = scene(1);
    for (const event of [1, 2]) add(event);
    expect(leases.next()?.lease.event).toBe(1);
    await clock.advance(9_999);
    expect(extended).toEqual([]);
    await clock.advance(1);
    expect(extended).toEqual([[[2, 1], 30_000]]);
    await clock.advance(20_000);
    expect(extended).toEqual(Array(3).fill([[2, 1], 30_000]));
  });

  it("sets no timer while it is empty, and one again for the next lease", async () => {
    const { clock, leases, add, extended, timers } = scene();
    add(1);
    leases.takeWaiting();
    await clock.advance(60_000);
    expect([extended, timers()]).toEqual([[], 1]);
    add(2);
    await clock.advance(10_000);
    expect(extended).toEqual([[[2], 30_000]]);
  });

  it("renews nothing once it is closed, as often as that is", async () => {
    const { clock, leases, add, extended } = scene();
    leases.stopRenewing();
    add(1);
    leases.stopRenewing();
    await clock.advance(60_000);
    expect(extended).toEqual([]);
  });

  it("forgets a lease that was lost before it was started, and no other", async () => {
    const { clock, leases, add, losing, lost } = scene();
    for (const event of [1, 2, 3]) add(event);
    losing.add(2);
    await clock.advance(10_000);
    expect(lost).toEqual([2]);
    expect([leases.next()?.lease.event, leases.next()?.lease.event, leases.next()]).toEqual([1, 3, null]);
  });

  it("says to a handler why it is aborted when its lease was lost", async () => {
    const { clock, leases, add, losing, lost } = scene();
    add(1);
    const running = leases.next();
    const reasons: unknown[] = [];
    if (running !== null) leases.started(running, { abort: (reason: unknown) => void reasons.push(reason) } as never);
    losing.add(1);
    await clock.advance(10_000);
    expect(reasons).toEqual([
      expect.objectContaining({ code: "lease_lost", message: "The lease of this event passed to another worker." }),
    ]);
    expect(lost).toEqual([]);
  });

  it("passes over a lost lease whose handler has ended meanwhile", async () => {
    const { clock, leases, add, extended, losing, lost, lines, asked } = scene();
    add(1);
    const running = leases.next();
    losing.add(1);
    asked.meanwhile = () => {
      if (running !== null) leases.finished(running, 5);
    };
    await clock.advance(10_000);
    expect(extended).toHaveLength(1);
    expect([lost, lines]).toEqual([[], []]);
  });

  it("tells how many leases could not be renewed, and tries again", async () => {
    const { clock, add, extended, lines, failing } = scene();
    for (const event of [1, 2]) add(event);
    failing.count = 1;
    await clock.advance(10_000);
    expect(lines).toEqual([[{ leases: 2 }, "Leases could not be renewed; the next renewal tries again."]]);
    await clock.advance(10_000);
    expect(extended).toEqual([[[1, 2], 30_000]]);
  });
});

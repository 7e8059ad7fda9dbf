/** The budget of bodies at its edges: what is cut and what is not, to the byte and to the millisecond. */
import { describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/receiver/body-limits.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";

const MIB = 1024 * 1024;
/** What a chunk takes besides its bytes. */
const CHUNK = 1024;

function makeBudget() {
  const clock = createFakeClock();
  let busyMs = 0;
  const budget = new BodyBudget({ ...clock, monotonic: () => clock.monotonic() + busyMs });
  return {
    clock,
    begin: (maxBytes?: number) => begin(budget, maxBytes),
    /** The event loop stands still for so long: no timer fires meanwhile. */
    busy: (ms: number) => {
      busyMs += ms;
    },
  };
}

function begin(budget: BodyBudget, maxBytes = MIB) {
  const reading = budget.begin(maxBytes, null);
  let cuts = 0;
  reading.onCut(() => {
    cuts += 1;
  });
  const wait = { wait: () => budget.wait(reading), waited: () => budget.waited(reading) };
  return Object.assign(reading, { isCut: () => cuts > 0, ...wait });
}

/** As many as fill the budget to its last byte. */
function fill({ begin }: ReturnType<typeof makeBudget>) {
  const senders = Array.from({ length: 64 }, () => begin());
  for (const one of senders) one.received(MIB - CHUNK);
  return senders;
}

describe("BodyBudget", () => {
  it("holds 64 MiB to the last byte, and beyond them cuts what has stalled for 750 ms, by tenths of a second", async () => {
    const budget = makeBudget();
    const senders = fill(budget);
    const cut = () => senders.filter((one) => one.isCut()).length;
    await budget.clock.advance(700);
    const one = budget.begin();
    one.received(0);
    expect(cut()).toBe(0);
    await budget.clock.advance(100);
    one.received(0);
    expect(cut()).toBe(1);
  });

  it("takes a body that was cut out of the sum once, though it is released again", async () => {
    const budget = makeBudget();
    const senders = fill(budget);
    await budget.clock.advance(1_000);
    budget.begin().received(0);
    for (const one of senders.filter((sender) => sender.isCut())) one.release();
    budget.begin().received(MIB - CHUNK);
    expect(senders.filter((one) => one.isCut())).toHaveLength(2);
  });

  it.each([
    ["is complete", true],
    ["is not", false],
  ])("forgets all that a body of many chunks took when it is released and %s", (_, isComplete) => {
    const { begin } = makeBudget();
    for (let body = 0; body < 2; body++) {
      const one = begin();
      for (let chunk = 0; chunk < 40_000; chunk++) one.received(1);
      expect(one.isCut()).toBe(false);
      if (isComplete) one.finish();
      one.release();
    }
  });

  it("counts only the bytes of a body that is complete, once", async () => {
    const { clock, begin } = makeBudget();
    const [complete, other] = [begin(), begin()];
    for (let chunk = 0; chunk < 60_000; chunk++) complete.received(1);
    complete.finish();
    other.received(64 * MIB - CHUNK - 60_000);
    await clock.advance(1_000);
    expect(other.isCut()).toBe(false);
    complete.finish();
    other.received(0);
    expect(other.isCut()).toBe(true);
  });

  it("bears what still comes of a body that is complete when nothing that is cut would make room", () => {
    const { begin } = makeBudget();
    const [complete, empty] = [begin(), begin()];
    complete.finish();
    expect(() => complete.received(65 * MIB)).not.toThrow();
    expect([complete.isCut(), empty.isCut()]).toEqual([false, false]);
  });

  it("counts a body's time from its beginning, however long the process runs", async () => {
    const { clock, begin } = makeBudget();
    await clock.advance(60_000);
    const one = begin();
    await clock.advance(3_000);
    expect(one.isCut()).toBe(false);
    await clock.advance(500);
    expect(one.isCut()).toBe(true);
  });

  it("leaves a body that comes at exactly a byte a millisecond", async () => {
    const { clock, begin } = makeBudget();
    const [exact, short] = [begin(), begin()];
    exact.received(3_500);
    short.received(3_499);
    await clock.advance(3_500);
    expect([exact.isCut(), short.isCut()]).toEqual([false, true]);
  });

  it("lets complete bodies wait until they hold 16 MiB, whatever the size of the next one, and others when these wait no longer", () => {
    const { begin } = makeBudget();
    const complete = (bytes: number) => {
      const one = begin(25 * MIB);
      one.received(bytes);
      one.finish();
      return one;
    };
    const [small, large, empty] = [complete(16 * MIB - 1), complete(24 * MIB), complete(0)];
    expect([small.wait(), large.wait(), empty.wait()]).toEqual([true, true, false]);
    large.waited();
    expect([empty.wait(), complete(1).wait(), complete(1).wait()]).toEqual([true, true, false]);
  });
});

/** Sends in ten pieces, and reads as an adapter does: nothing while it waits for its turn. */
async function sendInPieces(
  { clock }: ReturnType<typeof makeBudget>,
  one: ReturnType<typeof begin>,
  bytes: number,
): Promise<void> {
  for (let piece = 0; piece < 10 && !one.isCut(); piece++) {
    for (let at = 0; at < bytes / 10; at += 64 * 1024) {
      const turn = one.received(Math.min(64 * 1024, bytes / 10 - at));
      if (turn !== undefined) await turn;
    }
    const isSent = new Promise<void>((resolve) => clock.setTimeout(resolve, 100));
    await isSent;
  }
  one.finish();
}

/** Advances the clock until all have come, 20 s at most. */
async function untilAllCame({ clock }: ReturnType<typeof makeBudget>, sent: Promise<void>[]): Promise<void> {
  let isOver = false;
  void Promise.all(sent).then(() => {
    isOver = true;
  });
  for (let ms = 0; ms < 20_000 && !isOver; ms += 50) await clock.advance(50);
  expect(isOver).toBe(true);
}

describe("large bodies", () => {
  it.each([
    ["stall after 64 kB", 64_000, 0],
    ["go on byte by byte after 64 kB", 64_000, 1],
    ["stall after 150 kB", 150_000, 0],
    ["stall after 16 kB", 16_000, 0],
  ])("are completed beside as many others as fill the room and %s", async (_, held, drip) => {
    const budget = makeBudget();
    const attack = (count: number) => {
      const attackers = Array.from({ length: count }, () => budget.begin(25 * MIB));
      for (const one of attackers)
        for (let at = 0; at < held; at += 64 * 1024) one.received(Math.min(64 * 1024, held - at));
      return attackers;
    };
    const attackers = attack(Math.ceil((70 * MIB) / held));
    const cuts: number[] = [];
    let isOver = false;
    const dripping = async () => {
      for (; !isOver; await new Promise<void>((resolve) => budget.clock.setTimeout(resolve, 100))) {
        // Who was let go comes again: 5 MB in a second.
        attackers.push(...attack(Math.ceil(500_000 / held)));
        if (drip > 0) for (const one of attackers) if (!one.isPaused) one.received(drip);
      }
    };
    void dripping();
    const sent = Array.from({ length: 20 }, async (_, index) => {
      await new Promise<void>((resolve) => budget.clock.setTimeout(resolve, index * 400));
      const one = budget.begin(25 * MIB);
      await sendInPieces(budget, one, [200_000, 2_000_000, 10_000_000, 24_000_000][index % 4] ?? 0);
      if (one.isCut()) cuts.push(index);
      one.release();
    });
    await untilAllCame(budget, sent);
    isOver = true;
    expect(cuts).toEqual([]);
  });

  it("wait while others are in work, and go on when these are released", async () => {
    const budget = makeBudget();
    const inWork = Array.from({ length: 4 }, () => budget.begin(25 * MIB));
    for (const one of inWork) {
      one.received(20 * MIB);
      one.finish();
    }
    const last = budget.begin(25 * MIB);
    expect(last.received(15 * MIB)).toBeUndefined();
    let turns = 0;
    void last.received(2 * MIB)?.then(() => (turns += 1));
    await budget.clock.advance(2_000);
    expect([turns, last.isCut()]).toEqual([0, false]);
    inWork[0]?.release();
    await budget.clock.advance(0);
    expect([turns, last.isCut()]).toEqual([1, false]);
  });

  it("wait no longer than 10 s", async () => {
    const budget = makeBudget();
    const inWork = budget.begin(100 * MIB);
    inWork.received(96 * MIB);
    inWork.finish();
    const [first, second] = [budget.begin(MIB), budget.begin(MIB)];
    first.received(100_000);
    const turn = second.received(100_000);
    await budget.clock.advance(10_500);
    expect([first.isCut(), second.isCut()]).toEqual([true, true]);
    await turn;
  });

  it("have not stalled while the event loop was busy", async () => {
    const budget = makeBudget();
    const senders = fill(budget);
    budget.busy(5_000);
    await budget.clock.advance(100);
    budget.begin().received(1);
    expect(senders.filter((one) => one.isCut())).toEqual([]);
  });

  it("are cut when their reader goes on although it was told to wait", () => {
    const budget = makeBudget();
    fill(budget);
    const one = budget.begin();
    expect(one.received(100_000)).toBeInstanceOf(Promise);
    one.received(31 * MIB);
    expect(one.isCut()).toBe(false);
    one.received(MIB);
    expect(one.isCut()).toBe(true);
  });

  it("give way before a small body that has stalled for longer", async () => {
    const budget = makeBudget();
    const small = budget.begin();
    small.received(4_000);
    await budget.clock.advance(500);
    const senders = fill(budget);
    await budget.clock.advance(1_000);
    budget.begin().received(1);
    expect([small.isCut(), senders.filter((one) => one.isCut()).length]).toEqual([false, 1]);
  });

  it("leave 32 MiB for small ones that have just begun, and beyond that the one that holds most for longest is cut", async () => {
    const budget = makeBudget();
    const senders = fill(budget);
    await budget.clock.advance(100);
    const small = Array.from({ length: 512 }, () => budget.begin());
    for (const one of small) expect(one.received(64 * 1024 - CHUNK)).toBeUndefined();
    const cut = () => [senders, small].map((some) => some.filter((one) => one.isCut()).length);
    expect(cut()).toEqual([0, 0]);
    budget.begin().received(1);
    expect(cut()).toEqual([1, 0]);
  });

  it("of single bytes soon count as stalled: what holds them takes much more", async () => {
    const budget = makeBudget();
    const crumbs = budget.begin();
    for (let ms = 0; ms < 2_500; ms += 100) {
      for (let crumb = 0; crumb < 300; crumb++) crumbs.received(1);
      await budget.clock.advance(100);
    }
    fill(budget);
    expect(crumbs.isCut()).toBe(true);
  });
});

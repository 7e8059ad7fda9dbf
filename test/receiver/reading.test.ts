/** The budget of bodies at its edges: what is cut and what is not, to the byte and to the millisecond. */
import { describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/receiver/body-limits.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

const MIB = 1024 * 1024;
/** What a chunk takes besides its bytes. */
const CHUNK = 1024;

function makeBudget() {
  const clock = createFakeClock();
  const budget = new BodyBudget(clock);
  return { clock, begin: () => begin(budget) };
}

function begin(budget: BodyBudget) {
  const reading = budget.begin(MIB, null);
  let cuts = 0;
  reading.onCut(() => {
    cuts += 1;
  });
  const wait = { wait: () => budget.wait(reading), waited: () => budget.waited(reading) };
  return Object.assign(reading, { isCut: () => cuts > 0, ...wait });
}

/** As many as fill the budget to its last byte. */
function fill({ begin }: ReturnType<typeof makeBudget>) {
  const senders = Array.from({ length: 64 }, begin);
  for (const one of senders) one.received(MIB - CHUNK);
  return senders;
}

describe("BodyBudget", () => {
  it("holds 64 MiB to the last byte, and not one more", () => {
    const budget = makeBudget();
    const senders = fill(budget);
    expect(senders.filter((one) => one.isCut())).toEqual([]);
    budget.begin().received(0);
    expect(senders.filter((one) => one.isCut())).toHaveLength(1);
  });

  it("takes a body that was cut out of the sum once, though it is released again", () => {
    const budget = makeBudget();
    const senders = fill(budget);
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

  it("counts only the bytes of a body that is complete, once", () => {
    const { begin } = makeBudget();
    const [complete, other] = [begin(), begin()];
    for (let chunk = 0; chunk < 60_000; chunk++) complete.received(1);
    complete.finish();
    other.received(64 * MIB - CHUNK - 60_000);
    expect(other.isCut()).toBe(false);
    complete.finish();
    other.received(0);
    expect(other.isCut()).toBe(true);
  });

  it("bears what still comes of a body that is complete when there is nothing to cut", () => {
    const { begin } = makeBudget();
    const one = begin();
    one.finish();
    expect(() => one.received(65 * MIB)).not.toThrow();
    expect(one.isCut()).toBe(false);
  });

  it("cuts no body that holds nothing yet, for that makes no room", () => {
    const { begin } = makeBudget();
    const [complete, empty] = [begin(), begin()];
    complete.finish();
    complete.received(65 * MIB);
    expect(empty.isCut()).toBe(false);
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

  it("lets complete bodies of 16 MiB wait, to the byte, and others when these wait no longer", () => {
    const { begin } = makeBudget();
    const complete = (bytes: number) => {
      const one = begin();
      one.received(bytes);
      one.finish();
      return one;
    };
    const all = Array.from({ length: 16 }, () => complete(MIB));
    expect(all.map((one) => one.wait())).toEqual(all.map(() => true));
    const [empty, small] = [complete(0), complete(1)];
    expect([empty.wait(), small.wait()]).toEqual([true, false]);
    all[0]?.waited();
    expect([small.wait(), complete(MIB).wait(), complete(MIB - 1).wait()]).toEqual([true, false, true]);
  });
});

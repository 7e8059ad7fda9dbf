import { describe, expect, it } from "vitest";
import { gate, ground, MINUTE, turns } from "./scheduler-support.ts";

describe("Scheduler on a virtual clock", () => {
  it("runs at once what is due, and the rest when time is moved", async () => {
    const { scheduler, seen, note, time } = ground();
    scheduler.add({ dueAt: 0, run: note("now") });
    scheduler.add({ dueAt: 10, run: note("later") });
    expect(seen).toEqual(["now at 0"]);
    await scheduler.advance(9);
    expect(seen).toEqual(["now at 0"]);
    expect(scheduler.waiting).toBe(1);
    await scheduler.advance(1);
    expect(seen).toEqual(["now at 0", "later at 10"]);
    expect(time.now()).toBe(10);
  });

  it("runs what lies in the past now: time never goes back", async () => {
    const { scheduler, seen, note } = ground();
    await scheduler.advance(500);
    scheduler.add({ dueAt: 100, run: note("overdue") });
    scheduler.add({ dueAt: 100, lane: "a", run: note("overdue in a lane") });
    await scheduler.idle();
    expect(seen).toEqual(["overdue at 500", "overdue in a lane at 500"]);
  });

  it("stays at the time of a task that runs, and lets others of that time overlap it", async () => {
    const { scheduler, seen, note, time } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 1, lane: "slow", run: () => slow.opened });
    scheduler.add({ dueAt: 1, lane: "beside", run: note("beside") });
    scheduler.add({ dueAt: 2, run: note("after") });
    scheduler.add({ dueAt: 2, lane: "ahead", allowsAhead: true, run: note("after as well") });
    const advanced = scheduler.advance(10);
    await turns();
    expect(seen).toEqual(["beside at 1"]);
    expect(time.now()).toBe(1);
    slow.open();
    await advanced;
    expect(seen).toEqual(["beside at 1", "after at 2", "after as well at 2"]);
  });

  it("lets tasks that allow it run ahead of each other, up to the horizon, and nothing else", async () => {
    const { scheduler, seen, note } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 1, lane: "slow", allowsAhead: true, run: () => slow.opened });
    scheduler.add({ dueAt: MINUTE, lane: "before", allowsAhead: true, run: note("before") });
    scheduler.add({ dueAt: MINUTE + 1, lane: "after", allowsAhead: true, run: note("after") });
    const advanced = scheduler.advance(2 * MINUTE);
    await turns();
    expect(seen).toEqual([`before at ${MINUTE}`]);
    slow.open();
    await advanced;
    expect(seen).toEqual([`before at ${MINUTE}`, `after at ${MINUTE + 1}`]);
  });

  it("gives a task its own time, though a later one has moved the clock meanwhile", async () => {
    const { scheduler, seen, note } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 1, lane: "a", allowsAhead: true, run: () => slow.opened });
    scheduler.add({ dueAt: 2, lane: "a", allowsAhead: true, run: note("behind it") });
    scheduler.add({ dueAt: 50, lane: "b", allowsAhead: true, run: note("other") });
    const advanced = scheduler.advance(100);
    await turns();
    expect(seen).toEqual(["other at 50"]);
    slow.open();
    await advanced;
    expect(seen).toEqual(["other at 50", "behind it at 2"]);
  });

  it("runs no more at once than it may, and what needs no lane besides", async () => {
    const { scheduler, seen, note } = ground("virtual", { mostAtOnce: 10 });
    let running = 0;
    let most = 0;
    for (let i = 0; i < 30; i++) {
      const run = async () => {
        most = Math.max(most, ++running);
        await turns();
        running--;
      };
      scheduler.add({ dueAt: 0, lane: String(i), run });
    }
    scheduler.add({ dueAt: 0, place: -1, run: note("step") });
    expect(seen).toEqual(["step at 0"]);
    await scheduler.idle();
    expect(most).toBe(10);
    expect(running).toBe(0);
  });

  it("takes calls of advance in turn", async () => {
    const { scheduler, seen, note, time } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 1, lane: "a", run: () => slow.opened });
    scheduler.add({ dueAt: 15, run: note("in the second") });
    const first = scheduler.advance(10).then(() => seen.push(`first ended at ${time.now()}`));
    const second = scheduler.advance(10);
    await turns();
    expect(seen).toEqual([]);
    slow.open();
    await Promise.all([first, second]);
    expect(seen).toEqual(["first ended at 10", "in the second at 15"]);
    expect(time.now()).toBe(20);
  });

  it("does not wait, after a clear, for what ran before, nor in its lane", async () => {
    const { scheduler, seen, note, time } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 0, lane: "a", run: () => slow.opened });
    await turns();
    scheduler.clear();
    scheduler.add({ dueAt: 5, lane: "a", run: note("new") });
    const advanced = scheduler.advance(10);
    await turns();
    expect(seen).toEqual(["new at 5"]);
    expect(time.now()).toBe(10);
    slow.open();
    await advanced;
  });

  it("forgets a cancelled task at once, and tells nobody", async () => {
    const { scheduler, seen, note } = ground();
    const dropped = () => void seen.push("dropped");
    const cancel = scheduler.add({ dueAt: 5, run: note("cancelled"), dropped });
    scheduler.add({ dueAt: 5, run: note("kept") });
    cancel();
    cancel();
    expect(scheduler.waiting).toBe(1);
    await scheduler.advance(10);
    cancel();
    expect(seen).toEqual(["kept at 5"]);
    expect(scheduler.waiting).toBe(0);
  });

  it("goes on after a task that failed: others, its lane, idle and advance", async () => {
    const { scheduler, seen, note, failures } = ground();
    const fail = () => {
      throw new Error("synchronous");
    };
    scheduler.add({ dueAt: 1, run: fail });
    scheduler.add({ dueAt: 1, lane: "a", prepare: fail, run: () => Promise.reject(new Error("later")) });
    scheduler.add({ dueAt: 1, lane: "a", run: note("lane") });
    scheduler.add({ dueAt: 1, run: note("other") });
    await scheduler.advance(1);
    await scheduler.idle();
    expect(seen).toEqual(["other at 1", "lane at 1"]);
    expect(failures.map(String)).toEqual(["Error: synchronous", "Error: synchronous", "Error: later"]);
    scheduler.add({ dueAt: 2, run: note("next") });
    await scheduler.advance(1);
    expect(seen.at(-1)).toBe("next at 2");
  });

  it("forgets on clear what waits for its time or its lane, and says so to each once", async () => {
    const { scheduler, seen, note } = ground();
    const slow = gate();
    const dropped = (name: string) => () => void seen.push(`${name} dropped`);
    scheduler.add({ dueAt: 0, lane: "a", run: () => slow.opened, dropped: dropped("running") });
    scheduler.add({ dueAt: 0, lane: "a", run: note("in line"), dropped: dropped("in line") });
    scheduler.add({ dueAt: 5, run: note("later"), dropped: dropped("later") });
    await turns();
    scheduler.clear();
    scheduler.clear();
    expect(seen.sort()).toEqual(["in line dropped", "later dropped"]);
    scheduler.add({ dueAt: 0, lane: "a", run: note("new") });
    slow.open();
    await scheduler.advance(10);
    expect(seen.slice(2)).toEqual(["new at 0"]);
  });

  it("closes when what runs has ended, and drops the rest without moving time over it", async () => {
    const { scheduler, seen, note, time } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 1, lane: "a", run: () => slow.opened });
    scheduler.add({ dueAt: 2 * MINUTE, run: note("later"), dropped: () => void seen.push("dropped") });
    const advanced = scheduler.advance(10 * MINUTE);
    await turns();
    const closed = scheduler.close().then(() => seen.push("closed"));
    await turns();
    expect(seen).toEqual(["dropped"]);
    slow.open();
    await Promise.all([advanced, closed]);
    expect(seen).toEqual(["dropped", "closed"]);
    expect(time.now()).toBe(1);
    scheduler.add({ dueAt: 0, run: note("too late"), dropped: () => void seen.push("dropped too") });
    expect(seen.at(-1)).toBe("dropped too");
  });

  it("takes a chain of 10,000 tasks that bring each other", () => {
    const { scheduler } = ground();
    let ran = 0;
    const chain = (at: number) => {
      if (++ran < 10_000) scheduler.add({ dueAt: at, run: chain });
    };
    scheduler.add({ dueAt: 0, run: chain });
    expect(ran).toBe(10_000);
  });
});

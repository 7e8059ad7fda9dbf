import { describe, expect, it } from "vitest";
import { type ClockMode, createTime } from "../../../src/messaging/emulator/clock.ts";
import { Scheduler, type SchedulerOptions } from "../../../src/messaging/emulator/scheduler.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";

const MINUTE = 60_000;

function ground(mode: ClockMode = "virtual", options: Pick<SchedulerOptions, "mostAtOnce"> = {}) {
  const clock = createFakeClock();
  const time = createTime(clock, mode, 0);
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const scheduler = new Scheduler(clock, time, { horizonMs: MINUTE, onFailure, ...options });
  const seen: string[] = [];
  const note = (name: string) => (at: number) => void seen.push(`${name} at ${at}`);
  return { clock, time, scheduler, seen, note, failures };
}

/** A promise with its handle. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

const turns = async () => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

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

describe("Scheduler on a running clock", () => {
  it.each([
    ["real", 1],
    ["x60", 60],
  ] as const)("runs tasks when their time has come (%s)", async (mode, rate) => {
    const { clock, scheduler, seen, note } = ground(mode);
    scheduler.add({ dueAt: 3_000, run: note("later") });
    scheduler.add({ dueAt: 600, run: note("sooner") });
    await clock.advance(600 / rate - 1);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toEqual(["sooner at 600"]);
    await clock.advance(3_000 / rate);
    expect(seen).toEqual(["sooner at 600", "later at 3000"]);
  });

  it("jumps on advance and runs on from there", async () => {
    const { clock, time, scheduler, seen, note } = ground("real");
    scheduler.add({ dueAt: 5 * MINUTE, run: note("jumped to") });
    scheduler.add({ dueAt: 10 * MINUTE + 1_000, run: note("run to") });
    await scheduler.advance(10 * MINUTE);
    expect(seen).toEqual([`jumped to at ${5 * MINUTE}`]);
    await clock.advance(1_000);
    expect(seen).toEqual([`jumped to at ${5 * MINUTE}`, `run to at ${10 * MINUTE + 1_000}`]);
    expect(time.now()).toBe(10 * MINUTE + 1_000);
  });

  it("lets a slow task hold up nobody but its lane, and gives the next one there the time it has", async () => {
    const { clock, scheduler, seen, note } = ground("x60");
    const slow = gate();
    scheduler.add({ dueAt: 0, lane: "a", run: () => slow.opened });
    scheduler.add({ dueAt: 1_000, lane: "a", run: note("lane") });
    scheduler.add({ dueAt: 5 * MINUTE, run: note("other") });
    await clock.advance(5_000);
    expect(seen).toEqual([`other at ${5 * MINUTE}`]);
    await clock.advance(1_000);
    slow.open();
    await scheduler.idle();
    expect(seen.at(-1)).toBe(`lane at ${6 * MINUTE}`);
  });

  it("gives each task its own time when time is moved over many, however far ahead others are", async () => {
    const { scheduler, seen, note } = ground("real");
    for (const dueAt of [1_000, 20_000, 59_000]) {
      scheduler.add({ dueAt, lane: `retry ${dueAt}`, allowsAhead: true, run: note("retry") });
      scheduler.add({ dueAt, lane: `first ${dueAt}`, run: note("first") });
    }
    await scheduler.advance(60_000);
    expect(seen.sort()).toEqual([1_000, 20_000, 59_000].flatMap((at) => [`first at ${at}`, `retry at ${at}`]).sort());
  });

  it("sets no timer while all hands are full, and finds what came due when one is free", async () => {
    const { clock, scheduler, seen, note } = ground("real", { mostAtOnce: 32 });
    let timers = 0;
    const { setTimeout } = clock;
    clock.setTimeout = (callback, ms) => {
      timers++;
      return setTimeout(callback, ms);
    };
    const slow = gate();
    for (let i = 0; i < 32; i++) scheduler.add({ dueAt: 0, lane: String(i), run: () => slow.opened });
    scheduler.add({ dueAt: 10, lane: "last", run: note("last") });
    await clock.advance(1_000);
    expect(seen).toEqual([]);
    expect(timers).toBeLessThanOrEqual(1);
    slow.open();
    await scheduler.idle();
    expect(seen).toEqual(["last at 1000"]);
  });

  it("moves its timer when something sooner comes, and when all is forgotten", async () => {
    const { clock, scheduler, seen, note } = ground("real");
    scheduler.add({ dueAt: 1_000, run: note("forgotten") });
    scheduler.add({ dueAt: 500, run: note("forgotten too") });
    scheduler.clear();
    scheduler.add({ dueAt: 700, run: note("kept") });
    await clock.advance(2_000);
    expect(seen).toEqual(["kept at 700"]);
  });

  it("waits longer than a timer can", async () => {
    const { clock, scheduler, seen, note } = ground("real");
    const month = 31 * 86_400_000;
    const { setTimeout } = clock;
    clock.setTimeout = (callback, ms) => setTimeout(callback, Math.min(ms, 2 ** 31 - 1));
    scheduler.add({ dueAt: month, run: note("month") });
    await clock.advance(month);
    expect(seen).toEqual([`month at ${month}`]);
  });
});

describe("Scheduler under calls", () => {
  it("comes to an end however many calls come meanwhile, and waits for those that came first", async () => {
    const { scheduler, time } = ground();
    let calling = true;
    let ended = 0;
    const call = (number: number) => {
      const run = async () => {
        await turns();
        ended += 1;
      };
      scheduler.add({ dueAt: time.now(), lane: `call ${number}`, run });
      // As a message does: later steps, each with an attempt of its own.
      for (const later of [1_000, 5_000]) {
        const step = (at: number) => void scheduler.add({ dueAt: at, lane: `call ${number}`, run });
        scheduler.add({ dueAt: time.now() + later + number, run: step });
      }
      if (calling) setImmediate(call, number + 1);
    };
    scheduler.add({ dueAt: 3 * MINUTE, run: () => {} });
    const advanced = scheduler.advance(10 * MINUTE);
    call(0);
    await advanced;
    expect(time.now()).toBe(10 * MINUTE);
    expect(ended).toBeGreaterThan(0);
    calling = false;
    await scheduler.idle();
  });

  it("lets what a call brought hold time from the next advance on", async () => {
    const { scheduler, seen, time } = ground();
    const run = async () => {
      await turns();
      seen.push(`seen at ${time.now()}`);
    };
    const call = () => {
      scheduler.add({ dueAt: 500, run: (at) => void scheduler.add({ dueAt: at, lane: "a", run }) });
    };
    // As a webhook's receiver does: between the moments of an advance.
    scheduler.add({ dueAt: 1, lane: "webhook", run: async () => void setImmediate(call) });
    scheduler.add({ dueAt: 1, lane: "slow", run: turns });
    await scheduler.advance(100);
    expect(scheduler.waiting).toBe(1);
    scheduler.add({ dueAt: 501, run: () => void seen.push(`later at ${time.now()}`) });
    await scheduler.advance(1_000);
    expect(seen).toEqual(["seen at 500", "later at 501"]);
  });

  it("raises time in the turn in which all has happened, before whoever waited goes on", async () => {
    const { scheduler, seen, time } = ground();
    const slow = gate();
    scheduler.add({ dueAt: 10, lane: "a", run: () => slow.opened });
    const advanced = scheduler.advance(10 * MINUTE);
    await turns();
    slow.open();
    for (let i = 0; i < 20; i++) {
      await Promise.resolve();
      scheduler.add({ dueAt: time.now(), run: (at) => void seen.push(`${at === time.now()}`) });
    }
    await advanced;
    expect(new Set(seen)).toEqual(new Set(["true"]));
    expect(time.now()).toBe(10 * MINUTE);
  });
});

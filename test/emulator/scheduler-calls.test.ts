/** Calls that come while time is being moved: they neither stop it nor are passed by it later. */
import { describe, expect, it } from "vitest";
import { gate, ground, MINUTE, turns } from "./scheduler-support.ts";

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

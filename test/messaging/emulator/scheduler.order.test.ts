import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/internal/clock.ts";
import { createTime } from "../../../src/messaging/emulator/clock.ts";
import { Heap, Scheduler } from "../../../src/messaging/emulator/scheduler.ts";
import { sized } from "../../setup/form.ts";

const HORIZON_MS = 60_000;

interface Spec {
  readonly dueAt: number;
  /** Null: synchronous. */
  readonly lane: number | null;
  /** Turns of the event loop that it takes. */
  readonly turns: number;
  /** Milliseconds behind the horizon at which each follow-up comes, one after the other. */
  readonly followUps: readonly number[];
}

const specs = fc.array(
  fc.record({
    dueAt: fc.integer({ min: 0, max: 200_000 }).map((ms) => ms - (ms % 10_000)),
    lane: fc.option(fc.integer({ min: 0, max: 4 })),
    turns: fc.integer({ min: 0, max: 3 }),
    followUps: fc.array(
      fc.integer({ min: 0, max: 3 }).map((n) => n * 10_000),
      { maxLength: 3 },
    ),
  }),
  { maxLength: 60 },
);

/** The order as it is defined: again and again, the task with the least time and place, with nothing overlapping. */
function naiveOrder(all: readonly Spec[], end: number): string[] {
  const waiting = all.map((spec, place) => ({ ...spec, place, round: 0 }));
  const order: string[] = [];
  for (;;) {
    waiting.sort((a, b) => a.dueAt - b.dueAt || a.place - b.place);
    const next = waiting[0];
    if (next === undefined || next.dueAt > end) return order;
    waiting.shift();
    order.push(`${next.place}.${next.round} at ${next.dueAt}`);
    const delay = next.followUps[next.round];
    if (delay !== undefined) waiting.push({ ...next, round: next.round + 1, dueAt: next.dueAt + HORIZON_MS + delay });
  }
}

async function realOrder(all: readonly Spec[], end: number) {
  const time = createTime(systemClock, "virtual", 0);
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const scheduler = new Scheduler(systemClock, time, { horizonMs: HORIZON_MS, onFailure });
  const started: string[] = [];
  const ended: string[] = [];
  const busy = new Set<number>();
  const add = (spec: Spec, place: number, round: number, dueAt: number) => {
    const name = `${place}.${round} at ${dueAt}`;
    const end = (at: number) => {
      ended.push(`${place}.${round} at ${at}`);
      const delay = spec.followUps[round];
      if (delay !== undefined) add(spec, place, round + 1, at + HORIZON_MS + delay);
    };
    const { lane } = spec;
    if (lane === null) {
      scheduler.add({
        dueAt,
        place,
        run(at) {
          started.push(name);
          end(at);
        },
      });
      return;
    }
    const run = async (at: number) => {
      if (busy.has(lane)) throw new Error("two at once in a lane");
      busy.add(lane);
      for (let turn = 0; turn < spec.turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      busy.delete(lane);
      end(at);
    };
    scheduler.add({ dueAt, place, lane: String(lane), prepare: () => started.push(name), run });
  };
  // Nothing is due before time moves.
  for (const spec of all) add(spec, scheduler.nextPlace(), 0, spec.dueAt + 1);
  await scheduler.advance(end);
  return { started, ended, failures, now: time.now(), waiting: scheduler.waiting };
}

it("the order is that of one task after the other, though tasks overlap and bring more", async () => {
  await fc.assert(
    fc.asyncProperty(specs, fc.integer({ min: 1, max: 500_000 }), async (all, end) => {
      const expected = naiveOrder(
        all.map((spec) => ({ ...spec, dueAt: spec.dueAt + 1 })),
        end,
      );
      const { started, ended, failures, now } = await realOrder(all, end);
      expect(started).toEqual(expected);
      expect([...ended].sort()).toEqual([...expected].sort());
      expect(failures).toEqual([]);
      expect(now).toBe(end);
    }),
    { numRuns: sized({ quick: 50, full: 150 }) },
  );
});

describe("Heap", () => {
  it("gives the smallest first, however it was filled and emptied in between", () => {
    const operation = fc.oneof(
      { weight: 3, arbitrary: fc.integer() },
      { weight: 2, arbitrary: fc.constant("pop" as const) },
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const heap = new Heap<number>((a, b) => a < b);
        const model: number[] = [];
        for (const one of operations) {
          if (one === "pop") expect(heap.pop()).toBe(model.shift());
          else {
            heap.push(one);
            model.push(one);
            model.sort((a, b) => a - b);
          }
          expect(heap.peek()).toBe(model[0]);
          expect(heap.size).toBe(model.length);
        }
      }),
    );
  });

  it("drains all that is in it, and is empty then", () => {
    const heap = new Heap<number>((a, b) => a < b);
    for (const value of [3, 1, 2]) heap.push(value);
    expect(heap.drain().sort()).toEqual([1, 2, 3]);
    expect(heap.size).toBe(0);
    expect(heap.pop()).toBeUndefined();
  });
});

import { describe, expect, it } from "vitest";
import { deferred, openBench, rounds } from "./bench.ts";

describe("Worker.drain()", () => {
  it("handles what is ready now and says that nothing is left", async () => {
    const seen: string[] = [];
    const bench = await openBench({ register: (on) => on.onAny((event) => void seen.push(event.eventType)) });
    await bench.accept("m", 1, { eventType: "message.queued" });
    await bench.accept("m", 2);
    expect(await bench.worker.drain({})).toEqual({ claimed: 2, complete: true });
    expect(seen).toEqual(["message.queued", "message.sent"]);
    await bench.expectNothingLeaked();
  });

  it("handles exactly as many events as its limit", async () => {
    const seen: number[] = [];
    const bench = await openBench({ register: (on) => on.onAny((_, ctx) => void seen.push(ctx.meta.eventId)) });
    await bench.acceptMany(5);
    expect(await bench.worker.drain({ limit: 1 })).toEqual({ claimed: 1, complete: false });
    expect(seen).toEqual([1]);
    expect(await bench.worker.drain({ limit: 3 })).toEqual({ claimed: 3, complete: false });
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(await bench.worker.drain({ limit: 3 })).toEqual({ claimed: 1, complete: true });
    await bench.expectNothingLeaked();
  });

  it("gives back what has not started when its budget is over, and resolves when the rest has ended", async () => {
    const slow = deferred();
    const bench = await openBench({ register: (on) => on.onAny(() => slow.promise), worker: { concurrency: 2 } });
    await bench.acceptMany(5);
    const drained = bench.worker.drain({ budgetMs: 1_000 });
    await bench.clock.advance(999);
    let over = false;
    void drained.then(() => {
      over = true;
    });
    await bench.clock.advance(1);
    await rounds();
    expect(over).toBe(false);
    slow.resolve();
    expect(await drained).toEqual({ claimed: 2, complete: false });
    expect(await bench.states()).toEqual(["handled", "handled", "pending", "pending", "pending"]);
    await bench.expectNothingLeaked();
  });
});

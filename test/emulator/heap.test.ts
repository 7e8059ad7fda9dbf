import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heap } from "../../src/emulator/scheduler.ts";

const ascending = () => new Heap<number>((a, b) => a < b);

describe("Heap", () => {
  it("gives the smallest first, however it was filled and emptied in between", () => {
    const operation = fc.oneof(
      { weight: 3, arbitrary: fc.integer() },
      { weight: 2, arbitrary: fc.constant("pop" as const) },
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const heap = ascending();
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
    const heap = ascending();
    for (const value of [3, 1, 2]) heap.push(value);
    expect(heap.drain().sort()).toEqual([1, 2, 3]);
    expect(heap.size).toBe(0);
    expect(heap.pop()).toBeUndefined();
  });
});

/** Turns that are measured, and what of a store the batcher still sees then. */
import { describe, expect, it } from "vitest";
import { Instruments, measuredSteps } from "../../src/inbox/instrumentation.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { outbound } from "../inbox/bench.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

describe("measuredSteps()", () => {
  it("hands on which events the store accepts quickly, none where it does not say", () => {
    const clock = createFakeClock();
    const instruments = new Instruments(SILENT, clock);
    const inner = memoryStore({ volatile: true });
    const measured = (store: typeof inner) => measuredSteps(store, clock, () => instruments);
    const quick = measured({ ...inner, acceptsQuickly: ({ sequence }) => sequence === 1 });
    expect([1, 2].map((sequence) => quick.acceptsQuickly?.(outbound(clock, "m", sequence)))).toEqual([true, false]);
    expect(measured(inner).acceptsQuickly?.(outbound(clock, "m", 1))).toBe(false);
  });
});

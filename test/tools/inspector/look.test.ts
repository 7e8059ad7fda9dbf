/** What one look at the inbox tells, and the samples that are kept of the looks. */
import { describe, expect, it } from "vitest";
import type { Sample } from "../../../src/tools/inspector/api.ts";
import { lookAt, Samples } from "../../../src/tools/inspector/look.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { type Bench, memoryBench, sqliteBench } from "../../receiver/bench.ts";
import { outbound } from "../../receiver/events.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

describe.each([
  ["memory", () => memoryBench()],
  ["SQLite", () => sqliteBench()],
])("lookAt() on %s", (_name, makeBench) => {
  const scene = () => {
    const bench = makeBench() as Bench<unknown>;
    return { ...bench, look: () => lookAt(bench.receiver.inbox, bench.clock) };
  };

  it("takes no notice of an instance that was merely seen again, and names its slots and refusals", async () => {
    const { look, clock, deliver, receiver } = scene();
    receiver.onAny(() => {});
    await receiver.start();
    await deliver(outbound("queued"));
    await deliver(outbound("queued"), { secret: "another-webhook-secret-of-32-byt" });
    await clock.advance(2 * MINUTE);
    const seen = [await look()];
    for (let turn = 0; turn < 4; turn++) {
      await clock.advance(30 * SECOND);
      seen.push(await look());
    }
    expect(new Set(seen.map(({ instances }) => instances[0]?.seenAt)).size).toBeGreaterThan(2);
    expect(new Set(seen.map(({ changed }) => changed)).size).toBe(1);
    expect(seen.at(-1)?.slots).toEqual({ "service:current": 1 });
    expect(seen.at(-1)?.rejections).toEqual({ signature_mismatch: 1 });
    expect(seen.at(-1)?.sample.rejected).toBe(1);
  });
});

describe("Samples", () => {
  const scene = () => {
    const clock = createFakeClock();
    const samples = new Samples(clock);
    return { clock, samples, add: () => samples.add({ at: clock.now() } as Sample) };
  };

  it("keeps those of 15 minutes, the oldest first", async () => {
    const { clock, samples, add } = scene();
    for (let turn = 0; turn < 20 * 30; turn++) {
      await clock.advance(2 * SECOND);
      add();
    }
    const kept = samples.list();
    expect(kept).toHaveLength(450);
    expect(kept.at(-1)?.at).toBe(clock.now());
    expect(kept[0]?.at).toBe(clock.now() - 15 * MINUTE + 2 * SECOND);
  });

  it("keeps one a second, however many pages ask", async () => {
    const { clock, samples, add } = scene();
    for (let turn = 0; turn < 40; turn++) {
      add();
      await clock.advance(250);
    }
    expect(samples.list()).toHaveLength(10);
  });

  it("forgets those that have become old while nobody looked", async () => {
    const { clock, samples, add } = scene();
    add();
    await clock.advance(40 * MINUTE);
    expect(samples.list()).toEqual([]);
  });
});

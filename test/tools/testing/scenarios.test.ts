import { describe, expect, it } from "vitest";
import { createReceiver, parseEvent, RetryAfter } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { serviceFixtures } from "../../../src/tools/testing/fixtures.ts";
import {
  createFakeClock,
  deliverWithRetries,
  duplicated,
  fixtures,
  lifecycle,
  seededRandom,
  shuffled,
  TEST_SECRET,
} from "../../../src/tools/testing/index.ts";

describe("fixtures", () => {
  it("are events of their types, and the same on every call", () => {
    for (const make of Object.values(serviceFixtures)) expect(parseEvent(make())).toMatchObject({ ok: true });
    for (const make of Object.values(fixtures)) expect(make()).toEqual(make());
    expect(fixtures.delivery({ messageId: "m", data: { note: 1 } })).toMatchObject({
      messageId: "m",
      data: { messageId: "m", note: 1 },
    });
  });
});

describe("lifecycle()", () => {
  it("ascends in sequence to either ending (EVT-8)", () => {
    expect(lifecycle().map((event) => event.eventType)).toEqual(["message.queued", "message.sent", "message.delivery"]);
    const failed = lifecycle({ ending: "failed" });
    expect(failed.at(-1)).toMatchObject({ eventType: "message.failed", sequence: 3 });
  });
});

describe("shuffled() and duplicated()", () => {
  it("keep every item, repeat for the same seed, and put copies after their originals", () => {
    const items = Array.from({ length: 50 }, (_, index) => index);
    expect(shuffled(items, seededRandom(1)).toSorted((a, b) => a - b)).toEqual(items);
    expect(shuffled(items, seededRandom(1))).toEqual(shuffled(items, seededRandom(1)));
    expect(shuffled(items, seededRandom(1))).not.toEqual(items);
    const twice = duplicated(items, seededRandom(2));
    for (const item of items) expect(twice.filter((other) => other === item)).toHaveLength(2);
  });
});

describe("deliverWithRetries()", () => {
  function failingUntil(attempt: number) {
    const clock = createFakeClock();
    const store = memoryStore({ volatile: true });
    const receiver = createReceiver({ secrets: TEST_SECRET, store, clock, logger: silentLogger }).on(
      "message.queued",
      (_event, ctx) => {
        if (ctx.attempt < attempt) throw new RetryAfter(0);
      },
    );
    return { clock, receiver };
  }

  it("retries after 1, 5, 15 and 60 minutes until a 2xx (DLV-6, DLV-7)", async () => {
    const { clock, receiver } = failingUntil(3);
    const attempts = await deliverWithRetries(receiver, fixtures.queued(), clock);
    expect(attempts.map(({ minute, answer }) => [minute, answer.status])).toEqual([
      [0, 503],
      [1, 503],
      [6, 200],
    ]);
  });

  it("stops after the fifth attempt; the receiver verified all five although their signature was frozen (DLV-17)", async () => {
    const { clock, receiver } = failingUntil(9);
    const attempts = await deliverWithRetries(receiver, fixtures.queued(), clock, { signature: "frozen" });
    expect(attempts.map(({ minute, answer }) => [minute, answer.status])).toEqual([
      [0, 503],
      [1, 503],
      [6, 503],
      [21, 503],
      [81, 503],
    ]);
  });
});

import { describe, expect, it } from "vitest";
import { backoffMs, boundedWait, DEFAULT_MAX_ATTEMPTS } from "../../src/inbox/gap.ts";
import { gapWaitPolicy } from "../../src/sources/messaging/gap-wait.ts";
import { parseEvent } from "../../src/sources/messaging/parse.ts";
import type { WebhookEvent } from "../../src/sources/messaging/types.ts";
import { bytes, failedBody, sentBody } from "../sources/messaging/examples.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("backoffMs()", () => {
  const waits = [
    1_000,
    5_000,
    30_000,
    2 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
    8 * HOUR,
  ];

  it("has a wait for each of twelve attempts but the last, about a day in all", () => {
    expect(DEFAULT_MAX_ATTEMPTS).toBe(12);
    const longest = waits.map((_, index) => backoffMs(index + 1, () => 0.999_999_999));
    expect(longest).toEqual(waits);
    const total = waits.reduce((sum, wait) => sum + wait, 0);
    expect(total).toBeGreaterThan(DAY * 0.98);
    expect(total).toBeLessThan(DAY * 1.02);
  });

  it.each(waits.map((wait, index) => [index + 1, wait]))(
    "waits between half and all of it after attempt %d",
    (attempt, wait) => {
      expect(backoffMs(attempt, () => 0)).toBe(wait / 2);
      expect(backoffMs(attempt, () => 0.5)).toBe(wait * 0.75);
      for (let round = 0; round < 100; round++) {
        const ms = backoffMs(attempt, Math.random);
        expect(ms).toBeGreaterThanOrEqual(wait / 2);
        expect(ms).toBeLessThanOrEqual(wait);
      }
    },
  );

  it("goes on with the longest wait where more attempts are allowed, and starts with the first", () => {
    expect(backoffMs(100, () => 0)).toBe(4 * HOUR);
    expect(backoffMs(0, () => 0)).toBe(500);
  });
});

describe("boundedWait()", () => {
  it("takes 0 to 24 h, in whole milliseconds", () => {
    expect([0, 1.4, DAY].map((ms) => boundedWait("gapWait", ms))).toEqual([0, 1, DAY]);
  });

  it.each([[-1], [DAY + 1], [Number.NaN], [Number.POSITIVE_INFINITY], ["5"], [undefined]])("refuses %j", (ms) => {
    expect(() => boundedWait("gapWait", ms)).toThrow(/"gapWait" must return 0 to 86400000 ms \(24 h\)/);
  });
});

describe("gapWaitPolicy()", () => {
  const event = (body: string): WebhookEvent => {
    const parsed = parseEvent(bytes(body));
    if (!parsed.ok) throw new Error(parsed.code);
    return parsed.event;
  };
  const waits = (policy: Parameters<typeof gapWaitPolicy>[0]) =>
    [sentBody, failedBody].map((body) => gapWaitPolicy(policy)(event(body)));

  it("waits 22 min, but 90 s before a failure, unless told otherwise: for every retry, or not at all (EVT-9, DLV-6)", () => {
    expect(waits(undefined)).toEqual([22 * MINUTE, 90_000]);
    expect(waits("balanced")).toEqual([22 * MINUTE, 90_000]);
    expect(waits("strict")).toEqual([85 * MINUTE, 85 * MINUTE]);
    expect(waits("eager")).toEqual([0, 0]);
  });

  it("asks a function about the event, and refuses a policy it does not know", () => {
    expect(waits((about) => (about.eventType === "message.sent" ? 7 : 8))).toEqual([7, 8]);
    expect(() => gapWaitPolicy("strickt" as "strict")).toThrow(/"gapWait" must be one of "balanced"/);
  });
});

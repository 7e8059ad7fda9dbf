/** What is reported once the end of a claim is committed; more that instruments hear is in test/tools/telemetry/measuring.test.ts. */
import { describe, expect, it } from "vitest";
import { type Completion, reportEnd, reportRetired, type WorkerEvents } from "../../src/inbox/completion.ts";
import { Instruments } from "../../src/inbox/instrumentation.ts";
import { NOTHING_QUOTED } from "../../src/inbox/masking.ts";
import type { EventRecord } from "../../src/inbox/record.ts";
import { failed } from "../../src/inbox/runner.ts";
import type { Lease, SettleResult } from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { laneOf } from "./bench.ts";

const key = laneOf("m");
const lease = {
  lane: 1,
  token: 4,
  event: 3,
  key,
  ownId: null,
  sequence: 2,
  eventType: "message.sent",
  attempt: 5,
} as Lease;
const notice = { eventId: 3, lane: key, id: null, sequence: 2, eventType: "message.sent" };
const thrown = new Error("no");
const verdict = failed(thrown, NOTHING_QUOTED);
const failure = { code: "Error", message: "no", durationMs: 1 };
const dead = { lease, verdict, settle: { kind: "dead", lease, failure, onDead: "continue" }, durationMs: 1 } as const;
const putBack = { lease, verdict, settle: { kind: "release", lease, delayMs: 0, ran: true }, durationMs: 1 } as const;

function scene() {
  const told: unknown[] = [];
  const log = (fields: object, message: string) => void told.push(["log", fields, message]);
  const events: WorkerEvents = {
    ended: (...facts: unknown[]) => void told.push(["ended", ...facts]),
    waits: (...facts: unknown[]) => void told.push(["waits", ...facts]),
    claimed: (...facts: unknown[]) => void told.push(["claimed", ...facts]),
    failed: (...facts: unknown[]) => void told.push(["failed", ...facts]),
    deadLettered: (...facts: unknown[]) => void told.push(["deadLettered", ...facts]),
  };
  const logger = { debug: log, info: log, warn: log, error: log };
  const ended = (completion: Completion<never>, status: SettleResult["status"]) =>
    reportEnd(completion, { status }, events, logger);
  return { told, events, ended };
}

describe("reportEnd() and reportRetired()", () => {
  it("tells a failure, then the dead letter, then the end", () => {
    const { told, ended } = scene();
    ended(dead, "settled");
    expect(told).toEqual([
      ["failed", notice, { attempt: 5, error: thrown, masking: NOTHING_QUOTED }],
      ["deadLettered", notice, 5, "Error", expect.any(Function)],
      ["ended", 3, "dead"],
    ]);
  });

  it("tells of a lease that was lost only that the event was put back, and warns", () => {
    const { told, ended } = scene();
    ended(dead, "lost");
    expect(told).toEqual([
      ["log", { eventId: 3 }, "A lease was lost before its event was completed."],
      ["ended", 3, "put_back"],
    ]);
  });

  it.each([
    ["lost, whatever it was to be", dead, "lost", { ending: "lost", errorCode: null }],
    ["put back, with what was thrown", putBack, "settled", { ending: "put_back", errorCode: "Error" }],
  ] as const)("tells whoever watches the attempt that it was %s", (_how, completion, status, report) => {
    const { told, ended } = scene();
    const instruments = new Instruments(silentLogger, createFakeClock());
    instruments.add({ attempt: () => ({ ended: (heard) => void told.push(["watched", heard]) }) });
    const own = { ...lease };
    instruments.attempt(own);
    ended({ ...completion, lease: own }, status);
    expect(told[0]).toEqual(["watched", { ...report, durationMs: 1 }]);
  });

  it.each([
    [null, "attempts_exhausted"],
    ["handler_timeout", "handler_timeout"],
  ])("tells of a retired event whose last error is %s that it is dead: %s", (errorCode, code) => {
    const { told, events } = scene();
    const record = { id: 3, lane: key, ownId: null, sequence: 2, eventType: "message.sent", attempts: 12, errorCode };
    reportRetired(record as EventRecord, events, { reread: () => null, masking: () => NOTHING_QUOTED });
    expect(told).toEqual([
      ["deadLettered", notice, 12, code, expect.any(Function)],
      ["ended", 3, "dead"],
    ]);
  });
});

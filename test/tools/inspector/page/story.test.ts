/** The sentences about a message: did the customer get it? If not, why? */
import { describe, expect, it } from "vitest";
import type { DrawnHold } from "../../../../src/tools/inspector/api.ts";
import {
  endOf,
  eventWords,
  fateOf,
  holdWords,
  progressOf,
  statusOf,
  summaryOf,
} from "../../../../src/tools/inspector/page/story.ts";
import { drawing, event } from "./drawings.ts";

/** 12:00:03 of a day, wherever this runs. */
const T = new Date(2026, 10, 22, 12, 0, 3).getTime();

const HANDLED = { acceptedAt: T, startedAt: T, finishedAt: T };
const PENDING = { acceptedAt: T, state: "pending", outcome: null, startedAt: null, finishedAt: null } as const;
const GAP: DrawnHold = { reason: "gap", from: 2, to: 2, since: T, until: null };
const OPEN_GAP = { from: 2, to: 2, since: T, until: null, skipped: false, filledAt: null };
const DELIVERY = event({ ...HANDLED, id: 3, eventType: "message.delivery" });
const FAILURE = { attempt: 1, at: T, durationMs: 9, errorCode: "ECONNREFUSED", error: "connect ECONNREFUSED" };

describe("summaryOf()", () => {
  it("says that it was delivered and when that was handled, or why not, as far as the masked body tells", () => {
    expect(summaryOf(drawing([event(HANDLED), DELIVERY]))).toBe(
      "Delivered. message.delivery (3) was handled at 12:00:03.",
    );
    const failed = drawing([event({ ...HANDLED, id: 4, eventType: "message.failed" })]);
    expect(summaryOf(failed, { code: "PROVIDER_SEND_FAILED" })).toBe(
      "Not delivered: PROVIDER_SEND_FAILED. message.failed (4) was handled at 12:00:03.",
    );
    expect(summaryOf(failed)).toBe("Not delivered. message.failed (4) was handled at 12:00:03.");
  });

  it.each(["__proto__", "constructor", "toString"])(
    "takes the event type %s for a type like any other",
    (eventType) => {
      const told = drawing([event({ ...HANDLED, eventType, sequence: 0 })]);
      expect(summaryOf(told)).toBe(`${eventType} was handled at 12:00:03.`);
      expect(endOf({ state: "ended", eventType })).toBe("Ended");
    },
  );

  it("gives no failure's code to a message that was delivered after all", () => {
    expect(summaryOf(drawing([DELIVERY]), { code: "PROVIDER_SEND_FAILED" })).not.toContain("PROVIDER");
  });

  it("knows of the delivery though the application has not handled it", () => {
    const waiting = event({ ...PENDING, id: 3, eventType: "message.delivery", held: GAP });
    expect(summaryOf({ ...drawing([waiting]), gaps: [OPEN_GAP] }, { readyAt: T + 268_000 })).toBe(
      "The service reported it delivered. Not handled yet: waiting for sequence 2 until 12:04:31.",
    );
    const dead = event({ ...HANDLED, id: 3, eventType: "message.delivery", state: "dead", attempts: [FAILURE] });
    expect(summaryOf(drawing([dead]))).toBe(
      "The service reported it delivered. message.delivery (3) is a dead letter: its handler failed at 12:00:03, ECONNREFUSED.",
    );
  });

  it("says why an event that ends a message is not handled yet", () => {
    const ending = { ...PENDING, id: 3, eventType: "message.failed" };
    expect(summaryOf(drawing([event({ ...ending, startedAt: T })]), { code: "BLOCKED" })).toBe(
      "The service reported that it failed: BLOCKED. Not handled yet: it is being handled.",
    );
    expect(summaryOf(drawing([event({ ...ending, held: { ...GAP, reason: "blocked" } })]), { readyAt: T })).toBe(
      "The service reported that it failed. Not handled yet: it has waited behind a dead letter since 12:00:03.",
    );
  });

  it("says what is missing while that is not known", () => {
    const waiting = event({ ...PENDING, id: 3, held: GAP });
    expect(summaryOf({ ...drawing([waiting]), gaps: [OPEN_GAP] })).toBe(
      "Not known yet: sequence 2 is missing, waiting since 12:00:03.",
    );
    expect(summaryOf({ ...drawing([waiting]), gaps: [{ ...OPEN_GAP, to: 4 }] })).toContain("sequences 2–4 are missing");
  });

  it("describes the newest event, or the dead letter before it", () => {
    expect(summaryOf(drawing([event({ ...HANDLED, id: 2 })]))).toBe(
      "Its end is not reported yet. message.sent (2) was handled at 12:00:03.",
    );
    const dead = event({ ...HANDLED, id: 1, eventType: "message.queued", state: "dead" });
    expect(summaryOf(drawing([dead, event({ ...PENDING, id: 2 })]))).toContain("message.queued (1) is a dead letter");
  });

  it("describes a message from a customer, and events that belong to no message", () => {
    const inbound = event({ ...HANDLED, sequence: 0, eventType: "message.inbound" });
    expect(summaryOf(drawing([inbound]))).toBe("Received. message.inbound was handled at 12:00:03.");
    const other = event({ ...HANDLED, sequence: 0, eventType: "number.released", outcome: "unhandled" });
    expect(summaryOf(drawing([other]))).toBe(
      "number.released came at 12:00:03, and the application has no handler for it.",
    );
    const refused = event({ ...HANDLED, startedAt: null, eventType: "message.sent", outcome: "filtered" });
    expect(summaryOf(drawing([refused]))).toContain("was filtered at 12:00:03.");
    const read = event({ ...HANDLED, sequence: 0, eventType: "message.read" });
    expect(summaryOf(drawing([read]))).toBe("message.read was handled at 12:00:03.");
    expect(summaryOf({ ...drawing([event()]), events: [] })).toBe("Its events are no longer kept.");
  });
});

describe("statusOf()", () => {
  const waiting = { ...drawing([event({ ...PENDING, id: 3, attempts: [FAILURE] })]), gaps: [OPEN_GAP] };
  it.each([
    ["gap", T + 268_000, "Waits for sequence 2 until 12:04:31"],
    ["blocked", null, "Blocked behind a dead letter"],
    ["leased", T, "Is being handled"],
    ["backoff", T, "Failed, next attempt at 12:00:03"],
    ["ready", null, "About to be handled"],
  ] as const)("says %s so that it is understood", (status, readyAt, words) => {
    expect(statusOf({ status, readyAt, drawing: waiting })).toBe(words);
  });

  it("says that an event was put off, which never failed, and how an idle lane ended", () => {
    const putOff = drawing([event(PENDING)]);
    expect(statusOf({ status: "backoff", readyAt: T, drawing: putOff })).toBe("Waits for its turn until 12:00:03");
    const idle = (...events: Parameters<typeof drawing>[0]) =>
      statusOf({ status: "idle", readyAt: null, drawing: drawing(events) });
    expect(idle(event(), DELIVERY)).toBe("All handled");
    expect(idle(event({ outcome: "unhandled" }))).toBe("All finished");
    expect(idle(event({ state: "dead", outcome: null }))).toBe("All finished, with a dead letter");
  });

  it("says until when events of another source are held back", () => {
    const held = { reason: "held_back", from: null, to: null, since: 1_000, until: null } as const;
    const waiting = event({
      eventType: "invoice.paid",
      state: "pending",
      outcome: null,
      startedAt: null,
      finishedAt: null,
      held,
    });
    const drawn = drawing([waiting], "position");
    expect(statusOf({ status: "gap", readyAt: 61_000, drawing: drawn })).toBe("Held back until 00:01:01");
    expect(summaryOf(drawn)).toBe("invoice.paid (1) has waited for earlier events since 00:00:01.");
  });
});

describe("progressOf()", () => {
  it("says how far a message with an order has come", () => {
    expect(progressOf({ order: "sequence", cursor: 3 })).toBe("sequence 3");
    expect(progressOf({ order: "sequence", cursor: null })).toBe("nothing yet");
    expect(progressOf({ order: null, cursor: 0 })).toBeNull();
  });
});

describe("holdWords()", () => {
  it("says that the missing event was skipped", () => {
    const skipped = { ...OPEN_GAP, until: T + 2_100, skipped: true };
    const hold = { ...GAP, until: T + 2_100 };
    expect(holdWords(hold, { ...drawing([DELIVERY]), gaps: [skipped] })).toBe("waited 2.1 s for 2: skipped");
    expect(holdWords(hold, { ...drawing([DELIVERY]), gaps: [{ ...skipped, from: 5, to: 6 }] })).toBe(
      "waited 2.1 s for 2",
    );
  });
});

describe("eventWords()", () => {
  it("says all that the picture shows of an event", () => {
    const others = [event(), event({ id: 2 })];
    const held = { ...GAP, until: T + 2_100 };
    const third = event({ ...DELIVERY, held, duplicates: 2, conflict: true });
    expect(eventWords(third, drawing([...others, third]))).toBe(
      "3 message.delivery, arrived 12:00:03 third of 3, 2 duplicates, conflict, waited 2.1 s for 2, was handled at 12:00:03",
    );
  });
});

describe("fateOf()", () => {
  it.each([
    [{ state: "late", outcome: null }, "came late, and was recorded but not handled"],
    [{ state: "discarded", outcome: null, finishedAt: T }, "was discarded at 12:00:03"],
    [{ finishedAt: T, attemptCount: 3 }, "was handled at 12:00:03, at attempt 3"],
    [{ finishedAt: T, late: true }, "came late, and was handled at 12:00:03"],
    [{ finishedAt: T, replayed: true }, "was handled at 12:00:03 by a replay"],
    [{ ...PENDING, attempts: [FAILURE] }, "failed with ECONNREFUSED, and will be tried again"],
    [{ ...PENDING, startedAt: T }, "is being handled"],
    [PENDING, "waits to be handled"],
    [{ ...PENDING, held: { ...GAP, reason: "blocked" } }, "has waited behind a dead letter since 12:00:03"],
  ] as const)("tells %j", (facts, words) => {
    expect(fateOf(event(facts), T)).toBe(words);
  });
});

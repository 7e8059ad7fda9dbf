/** The verdict of all long runs, on histories with a planted fault each: what it can not see, no run can show. */
import { describe, expect, it } from "vitest";
import type { Attempt, EventRecord } from "../../../src/emulator/index.ts";
import { countsOf, findings, type HandledRow, type Ledger, verdictOn } from "../ledger.ts";

const TYPES = ["message.queued", "message.sent", "message.delivery"];
const EVENTS = ["msg_1", "msg_2"].flatMap((messageId) =>
  TYPES.map((eventType, index) => event(messageId, eventType, index + 1)),
);
const ANSWER = event("msg_in_1", "message.inbound", null);
const LEDGER = ledger([...EVENTS, ANSWER]);
const HANDLED = LEDGER.events.map(rowOf);

describe("verdictOn()", () => {
  it("finds nothing in a history of each event once, in order", () => {
    expect(verdictOn(LEDGER, HANDLED)).toEqual({ lost: [], twice: [], outOfOrder: [], unverified: [] });
    expect(findings(verdictOn(LEDGER, HANDLED))).toEqual([]);
  });

  it("takes messages in any order among each other", () => {
    const byType = [...HANDLED].sort((a, b) => a.sequence - b.sequence);
    expect(verdictOn(LEDGER, byType)).toMatchObject({ lost: [], twice: [], outOfOrder: [] });
  });

  it("sees a lost event, of either direction", () => {
    const handled = HANDLED.filter((row) => row.sequence !== 0 && !(row.message_id === "msg_2" && row.sequence === 2));
    expect(verdictOn(LEDGER, handled).lost).toEqual(["msg_2 2 message.sent", "msg_in_1 0 message.inbound"]);
  });

  it("sees all of them lost when nothing was handled", () => {
    expect(verdictOn(LEDGER, []).lost).toHaveLength(7);
  });

  it("sees an event handled twice, also without a turn between", () => {
    const first = rowOf(EVENTS[0] as EventRecord);
    expect(verdictOn(LEDGER, [first, ...HANDLED]).twice).toEqual(["msg_1 1 message.queued"]);
    expect(verdictOn(LEDGER, [...HANDLED, rowOf(ANSWER)]).twice).toEqual(["msg_in_1 0 message.inbound"]);
  });

  it("sees what was handled and never happened", () => {
    const invented = { message_id: "msg_9", sequence: 1, event_type: "message.queued" };
    expect(verdictOn(LEDGER, [...HANDLED, invented]).twice).toEqual(["msg_9 1 message.queued"]);
  });

  it("sees an event behind a later one of its message", () => {
    const [queued, sent, delivery, ...others] = HANDLED as [HandledRow, HandledRow, HandledRow];
    expect(verdictOn(LEDGER, [queued, delivery, sent, ...others])).toMatchObject({
      lost: [],
      twice: [],
      outOfOrder: ["msg_1 2 message.sent"],
    });
    expect(verdictOn(LEDGER, [...others, delivery, sent, queued]).outOfOrder).toHaveLength(2);
  });

  it("sees a delivery refused for its signature, also when a retry was taken", () => {
    const refused = ledger(LEDGER.events, { of: "event msg_1 3", statuses: [503, 401, 200] });
    expect(verdictOn(refused, HANDLED).unverified).toEqual(["msg_1 3 message.delivery"]);
    const failed = ledger(LEDGER.events, { of: "event msg_1 3", statuses: [503, null, 200] });
    expect(verdictOn(failed, HANDLED).unverified).toEqual([]);
  });

  it("tells each finding in a line, and all of them in numbers", () => {
    const verdict = verdictOn(ledger(EVENTS, { of: "event msg_2 3", statuses: [401] }), HANDLED.slice(1, 2));
    expect(countsOf(verdict)).toBe("5 lost, 0 twice, 0 out of order, 1 unverified");
    expect(findings(verdict)).toHaveLength(6);
    expect(findings(verdict)).toContain("unverified msg_2 3 message.delivery");
  });
});

function event(messageId: string, eventType: string, sequence: number | null): EventRecord {
  const eventId = `event ${messageId} ${sequence}`;
  const facts = { apiClientId: "apc_1", numberId: "num_1", occurredAt: 0, body: "{}" };
  return { ...facts, kind: sequence === null ? "inbound" : "delivery", eventId, eventType, messageId, sequence };
}

function rowOf({ messageId, sequence, eventType }: EventRecord): HandledRow {
  return { message_id: messageId, sequence: sequence ?? 0, event_type: eventType };
}

/** Every event delivered at once, but for one. */
function ledger(
  events: Ledger["events"],
  other: { readonly of: string; readonly statuses: readonly (number | null)[] } = { of: "", statuses: [] },
): Ledger {
  const deliveries = events.map(({ eventId }) => ({
    eventId,
    attempts: (eventId === other.of ? other.statuses : [200]).map(attempt),
  }));
  return { events, deliveries };
}

function attempt(status: number | null): Attempt {
  const answer = { error: null, responseHeaders: {}, responseBody: "", faults: [] };
  return { trigger: "schedule", at: 0, durationMs: 0, url: null, requestHeaders: {}, status, ...answer };
}

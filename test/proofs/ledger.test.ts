/** The verdict on ledgers, on histories with a planted fault each: what it can not see, no run can show. */
import { describe, expect, it } from "vitest";
import type { EventRecord } from "../../src/messaging/emulator/index.ts";
import { countsOf, findings, type HandledRow, type Ledger, verdictOn } from "./ledger.ts";

const NONE = { lost: [], twice: [], outOfOrder: [], unverified: [] };
const TYPES = ["message.queued", "message.sent", "message.delivery"];
const EVENTS = ["msg_1", "msg_2"].flatMap((messageId) =>
  TYPES.map((eventType, index) => event(messageId, eventType, index + 1)),
);
const ANSWER = event("msg_in_1", "message.inbound", null);
const ALL = [...EVENTS, ANSWER];
const HANDLED = ALL.map(rowOf);
const [QUEUED, SENT, DELIVERY, ...OTHERS] = HANDLED as [HandledRow, HandledRow, HandledRow];

describe("verdictOn()", () => {
  it("finds nothing in a history of each event once, in order, whatever the order of the messages", () => {
    expect(verdictOn(ledger({}), HANDLED)).toEqual(NONE);
    const byType = [...HANDLED].sort((a, b) => a.sequence - b.sequence);
    expect(findings(verdictOn(ledger({}), byType))).toEqual([]);
  });

  it("sees lost events of either direction, and all of them when nothing was handled", () => {
    const handled = HANDLED.filter((row) => row.sequence !== 0 && !(row.message_id === "msg_2" && row.sequence === 2));
    expect(verdictOn(ledger({}), handled).lost).toEqual(["msg_2 2 message.sent", "msg_in_1 0 message.inbound"]);
    expect(verdictOn(ledger({}), []).lost).toHaveLength(7);
  });

  it("sees an event handled twice, also without another between, and what never happened", () => {
    const twice = (...more: readonly HandledRow[]) => verdictOn(ledger({}), [...more, ...HANDLED]).twice;
    expect(twice(QUEUED)).toEqual(["msg_1 1 message.queued"]);
    expect(twice(rowOf(ANSWER))).toEqual(["msg_in_1 0 message.inbound"]);
    expect(twice({ message_id: "msg_9", sequence: 1, event_type: "message.queued" })).toEqual([
      "msg_9 1 message.queued",
    ]);
  });

  it("sees an event behind a later one of its message", () => {
    const found = verdictOn(ledger({}), [QUEUED, DELIVERY, SENT, ...OTHERS]);
    expect(found).toEqual({ ...NONE, outOfOrder: ["msg_1 2 message.sent"] });
    expect(verdictOn(ledger({}), [...OTHERS, DELIVERY, SENT, QUEUED]).outOfOrder).toHaveLength(2);
  });

  it("sees a delivery refused for its signature, also when a retry was taken", () => {
    expect(verdictOn(ledger({ "event msg_1 3": [503, 401, 200] }), HANDLED).unverified).toEqual([
      "msg_1 3 message.delivery",
    ]);
    expect(verdictOn(ledger({ "event msg_1 3": [503, null, 200] }), HANDLED).unverified).toEqual([]);
  });

  it("tells each finding in a line, and all of them in numbers", () => {
    const { deliveries } = ledger({ "event msg_2 3": [401] });
    const verdict = verdictOn({ events: EVENTS, deliveries }, HANDLED.slice(1, 2));
    expect(countsOf(verdict)).toBe("5 lost, 0 twice, 0 out of order, 1 unverified");
    expect(findings(verdict)).toHaveLength(6);
    expect(findings(verdict)).toContain("unverified msg_2 3 message.delivery");
  });
});

function event(messageId: string, eventType: string, sequence: number | null): EventRecord {
  const facts = { apiClientId: "apc_1", numberId: "num_1", occurredAt: 0, body: "{}" };
  const eventId = `event ${messageId} ${sequence}`;
  return { ...facts, kind: sequence === null ? "inbound" : "delivery", eventId, eventType, messageId, sequence };
}

function rowOf({ messageId, sequence, eventType }: EventRecord): HandledRow {
  return { message_id: messageId, sequence: sequence ?? 0, event_type: eventType };
}

/** Every event delivered at once, except for those with other statuses. */
function ledger(others: Readonly<Record<string, readonly (number | null)[]>>): Ledger {
  const answer = { error: null, responseHeaders: {}, responseBody: "", faults: [] };
  const attempt = { trigger: "schedule", at: 0, durationMs: 0, url: null, requestHeaders: {}, ...answer } as const;
  const deliveries = ALL.map(({ eventId }) => ({
    eventId,
    attempts: (others[eventId] ?? [200]).map((status) => ({ ...attempt, status })),
  }));
  return { events: ALL, deliveries };
}

/** The verdict on machines that share an inbox, on histories with a planted fault each: what it can not see, no run can show. */
import { describe, expect, it } from "vitest";
import type { EventRecord } from "../../../src/emulator/index.ts";
import { nameOfEvent } from "../outages/verdict.ts";
import { type Accounts, findings, type HistoryRow, judge, type StoredEvent } from "./verdict.ts";

const GAP_WAIT_MS = 5_000;
const BEHIND_AT = 1_000_000;
const EVENTS = ["message.queued", "message.sent", "message.delivery"].map((eventType, index) =>
  event("msg_1", eventType, index + 1),
);
const [QUEUED, SENT, DELIVERY] = EVENTS as [EventRecord, EventRecord, EventRecord];
const HELD = accounts({});

describe("judge()", () => {
  it("finds nothing when each event was handled once, in order, by whichever machine", () => {
    expect(findings(judge(HELD))).toEqual([]);
  });

  it("sees an acknowledged event that was not handled", () => {
    const found = judge(
      accounts({ history: [row(QUEUED), row(DELIVERY)], stored: [stored(QUEUED), stored(DELIVERY)] }),
    );
    expect(found).toMatchObject({ lost: [nameOfEvent(SENT)], halfDone: [] });
  });

  it("misses nothing that never arrived, and takes what was handled though its answer was lost", () => {
    const deliveries = [delivery(QUEUED), delivery(SENT, "failed"), delivery(DELIVERY, "failed")];
    const history = [row(QUEUED), row(SENT)];
    expect(findings(judge(accounts({ deliveries, history, stored: history.map(storedAs("done")) })))).toEqual([]);
  });

  it("sees an event handled by both machines", () => {
    expect(judge(accounts({ history: [...HELD.history, row(DELIVERY, { machine: "two" })] })).twice).toEqual([
      nameOfEvent(DELIVERY),
    ]);
  });

  it("sees what was handled and never happened, late or not", () => {
    const invented = event("msg_9", "message.queued", 1);
    for (const late of [false, true]) {
      const history = [...HELD.history, row(invented, { late })];
      expect(judge(accounts({ history })).twice).toEqual([nameOfEvent(invented)]);
    }
  });

  it("sees an event behind a later one of its message that is not called late (I4)", () => {
    expect(judge(accounts({ history: [row(QUEUED), row(DELIVERY), row(SENT)] })).outOfOrder).toEqual([
      nameOfEvent(SENT),
    ]);
  });

  it("takes a late event behind a gap that was waited for (I6)", () => {
    expect(findings(judge(late(GAP_WAIT_MS)))).toEqual([]);
  });

  it("sees a late event behind a gap that was given up too soon, behind another one, and behind none (I6)", () => {
    expect(judge(late(GAP_WAIT_MS - 1)).wronglyLate).toEqual([nameOfEvent(SENT)]);
    expect(judge({ ...late(GAP_WAIT_MS), gaps: [gap({ from: 1, to: 1 })] }).wronglyLate).toHaveLength(1);
    expect(judge({ ...late(GAP_WAIT_MS), gaps: [gap({ message_id: "msg_2" })] }).wronglyLate).toHaveLength(1);
    expect(judge({ ...late(GAP_WAIT_MS), gaps: [] }).wronglyLate).toHaveLength(1);
  });

  it("counts the wait for a gap from when the one before it was given up (I6)", () => {
    const first = gap({ from: 1, to: 1 });
    const second = (waitedMs: number) => gap({ skippedAt: first.skippedAt + waitedMs });
    const found = (waitedMs: number) => judge({ ...late(GAP_WAIT_MS), gaps: [first, second(waitedMs)] }).wronglyLate;
    expect(found(GAP_WAIT_MS)).toEqual([]);
    expect(found(GAP_WAIT_MS - 1)).toEqual([nameOfEvent(SENT)]);
  });

  it("sees an event handled in time and as a late one", () => {
    const both = late(GAP_WAIT_MS);
    expect(judge({ ...both, history: [row(SENT), ...both.history] }).twice).toEqual([nameOfEvent(SENT)]);
  });

  it("sees events that are pending or dead, and lanes that are not idle (I5, I10)", () => {
    const found = judge(
      accounts({ stored: [storedAs("pending")(row(QUEUED)), storedAs("dead")(row(SENT))], busyLanes: 1 }),
    );
    expect(found.unsettled).toEqual([`${nameOfEvent(QUEUED)} (pending)`, `${nameOfEvent(SENT)} (dead)`]);
    expect(findings(found)).toContain("1 lanes are not idle");
  });

  it("sees a completion without its effect, and an effect without a completion", () => {
    const history = [row(QUEUED), row(SENT)];
    expect(judge(accounts({ history, stored: [stored(QUEUED), stored(DELIVERY)] })).halfDone).toEqual([
      nameOfEvent(DELIVERY),
      nameOfEvent(SENT),
    ]);
  });
});

/** All delivered, handled and done, but for what is given. */
function accounts(wish: Partial<Accounts>): Accounts {
  return {
    events: EVENTS,
    deliveries: EVENTS.map((each) => delivery(each)),
    history: EVENTS.map((each, index) => row(each, { machine: index === 1 ? "two" : "one" })),
    stored: EVENTS.map(stored),
    gaps: [],
    gapWaitMs: GAP_WAIT_MS,
    busyLanes: 0,
    ...wish,
  };
}

/** The second event comes after the third one, which waited for it. */
function late(waitedMs: number): Accounts {
  const skippedAt = BEHIND_AT + waitedMs;
  return accounts({ history: [row(QUEUED), row(DELIVERY), row(SENT, { late: true })], gaps: [gap({ skippedAt })] });
}

function gap(wish: Partial<Accounts["gaps"][number]>): Accounts["gaps"][number] {
  return { message_id: "msg_1", from: 2, to: 2, behindAt: BEHIND_AT, skippedAt: BEHIND_AT + GAP_WAIT_MS, ...wish };
}

function event(messageId: string, eventType: string, sequence: number): EventRecord {
  const facts = { apiClientId: "apc_1", numberId: "num_1", occurredAt: 0, body: "{}", kind: "delivery" } as const;
  return { ...facts, eventId: `event ${messageId} ${sequence}`, eventType, messageId, sequence };
}

function delivery(
  { eventId }: EventRecord,
  state: "delivered" | "failed" = "delivered",
): Accounts["deliveries"][number] {
  return { eventId, state, attempts: [] };
}

function row({ messageId, sequence, eventType }: EventRecord, wish: Partial<HistoryRow> = {}): HistoryRow {
  const name = { message_id: messageId, sequence: sequence ?? 0, event_type: eventType };
  return { ...name, attempt: 1, machine: "one", late: false, ...wish };
}

function storedAs(state: StoredEvent["state"]): (of: HistoryRow) => StoredEvent {
  return ({ message_id, sequence, event_type }) => ({ message_id, sequence, event_type, state, attempts: 1 });
}

function stored(of: EventRecord): StoredEvent {
  return storedAs("done")(row(of));
}

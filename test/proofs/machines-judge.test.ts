/** The judge of machines that share an inbox, on histories with a planted fault each; what the history checker sees is tested with it. */
import { describe, expect, it } from "vitest";
import type { EventRecord } from "../../src/messaging/emulator/index.ts";
import { fixtures } from "../../src/tools/testing/index.ts";
import type { HandledEffect, StoredEvent } from "./history.ts";
import { type Accounts, countsOf, findings, judge } from "./machines-judge.ts";
import { deliveryOf } from "./sender.ts";

const GAP_WAIT_MS = 5_000;
const BEHIND_AT = 1_000_000;
const SENT = (["queued", "sent", "delivery"] as const).map((type) => fixtures[type]({ messageId: "msg_1" }));
const EVENTS = SENT.map((event, index): EventRecord => {
  const facts = { apiClientId: event.apiClientId, numberId: "num_1", occurredAt: 0, kind: "delivery" } as const;
  const { messageId, eventType, sequence } = event;
  return { ...facts, body: JSON.stringify(event), eventId: `event ${index + 1}`, messageId, eventType, sequence };
});
const [QUEUED, MIDDLE, DELIVERY] = SENT.map((event): HandledEffect => {
  const { messageId: lane, sequence } = event;
  return { identity: deliveryOf(event).identity, lane, sequence, attempt: 1, late: false, replay: false };
}) as [HandledEffect, HandledEffect, HandledEffect];
const LATE = { ...MIDDLE, late: true };
const kindsOf = (accounts: Accounts) => judge(accounts).breaches.map(({ kind }) => kind);

describe("judge()", () => {
  it("finds nothing when each event was handled once, in order", () => {
    expect(findings(judge(accounts({})))).toEqual([]);
    expect(countsOf(judge(accounts({})))).toMatch(/^0 lost, 0 twice, 0 out of order, 0 unverified, 0 unsettled/);
  });

  it("sees an acknowledged event that is not stored, and misses nothing that never arrived", () => {
    const effects = [QUEUED, DELIVERY];
    expect(kindsOf(accounts({ effects, stored: effects.map(stored) }))).toEqual(["lost"]);
    const deliveries = [delivery(0), delivery(1, { state: "failed" }), delivery(2)];
    expect(findings(judge(accounts({ effects, stored: effects.map(stored), deliveries })))).toEqual([]);
  });

  it("sees an event handled by both machines, and one behind a later one that is not called late (I4)", () => {
    expect(kindsOf(accounts({ effects: [QUEUED, MIDDLE, DELIVERY, DELIVERY] }))).toContain("double");
    expect(kindsOf(accounts({ effects: [QUEUED, DELIVERY, MIDDLE] }))).toEqual(["inversion"]);
  });

  it("takes a late event behind a gap that was waited for, and no other (I6)", () => {
    expect(findings(judge(late({})))).toEqual([]);
    expect(judge(late({ skippedAt: BEHIND_AT + GAP_WAIT_MS - 1 })).wronglyLate).toEqual(["msg_1 2"]);
    expect(judge(late({ from: 1, to: 1 })).wronglyLate).toHaveLength(1);
    expect(judge(late({ lane: "msg_2" })).wronglyLate).toHaveLength(1);
    expect(judge({ ...late({}), gaps: [] }).wronglyLate).toHaveLength(1);
  });

  it("counts the wait for a gap from when the one before it was given up (I6)", () => {
    const first = gap({ from: 1, to: 1 });
    const found = (waitedMs: number) => {
      const second = gap({ skippedAt: first.skippedAt + waitedMs });
      return judge({ ...late({}), gaps: [first, second] }).wronglyLate;
    };
    expect(found(GAP_WAIT_MS)).toEqual([]);
    expect(found(GAP_WAIT_MS - 1)).toEqual(["msg_1 2"]);
  });

  it("sees events that are pending or dead, lanes that are not idle, and refused signatures (I5, I10)", () => {
    const ends = [stored(QUEUED), { ...stored(MIDDLE), state: "pending" }, { ...stored(DELIVERY), state: "dead" }];
    const found = judge(accounts({ effects: [QUEUED], stored: ends, busyLanes: 1 }));
    expect(found.unsettled).toEqual(["msg_1 2 (pending)", "msg_1 3 (dead)"]);
    expect(findings(found)).toContain("1 lanes are not idle");
    const refused = accounts({ deliveries: [delivery(0, { attempts: [{ status: 401 } as never] })] });
    expect(judge(refused).unverified).toEqual([QUEUED.identity]);
  });
});

/** All delivered, handled and done, except for what is given. */
function accounts(wish: Partial<Accounts>): Accounts {
  const effects = [QUEUED, MIDDLE, DELIVERY];
  const deliveries = effects.map((_, index) => delivery(index));
  const known = { events: EVENTS, deliveries, effects, stored: effects.map(stored) };
  return { ...known, gaps: [], gapWaitMs: GAP_WAIT_MS, busyLanes: 0, ...wish };
}

/** The second event comes after the third one, which waited for it. */
function late(wish: Partial<Accounts["gaps"][number]>): Accounts {
  const effects = [QUEUED, DELIVERY, LATE];
  return accounts({ effects, stored: effects.map(stored), gaps: [gap(wish)] });
}

function gap(wish: Partial<Accounts["gaps"][number]>): Accounts["gaps"][number] {
  return { lane: "msg_1", from: 2, to: 2, behindAt: BEHIND_AT, skippedAt: BEHIND_AT + GAP_WAIT_MS, ...wish };
}

function delivery(index: number, wish: Partial<Accounts["deliveries"][number]> = {}): Accounts["deliveries"][number] {
  return { eventId: `event ${index + 1}`, state: "delivered", attempts: [], ...wish };
}

function stored({ identity, lane, sequence }: HandledEffect): StoredEvent {
  return { identity, lane, sequence, state: "handled", attempts: 1 };
}

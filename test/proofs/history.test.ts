/** The history checker sees each kind of breach, and none in a history that keeps every promise. */
import { describe, expect, it } from "vitest";
import {
  BREACHES,
  type BreachKind,
  breachCounts,
  breachesOf,
  breachLines,
  endOf,
  type HandledEffect,
  type History,
  type StoredEvent,
} from "./history.ts";

const effect = (sequence: number, more: Partial<HandledEffect> = {}): HandledEffect => ({
  ...{ identity: `m ${sequence}`, lane: "m", sequence, attempt: 1, late: false, replay: false },
  ...more,
});
const stored = (sequence: number, more: Partial<StoredEvent> = {}): StoredEvent => ({
  ...{ identity: `m ${sequence}`, lane: "m", sequence, state: "handled", attempts: 1 },
  ...more,
});

/** Three events of one message: sent, acknowledged, handled once in their order. */
const FLAWLESS: History = {
  sent: ["m 1", "m 2", "m 3"],
  forged: [],
  acknowledged: ["m 1", "m 2", "m 3"],
  replayed: [],
  effects: [effect(1), effect(2), effect(3)],
  stored: [stored(1), stored(2), stored(3)],
  moment: "ended",
  everyHandlerWrites: true,
};

const kindsOf = (change: Partial<History>) => breachesOf({ ...FLAWLESS, ...change }).map(({ kind }) => kind);

const BROKEN: readonly (readonly [string, Partial<History>, BreachKind])[] = [
  ["an acknowledged event is not stored", { effects: [effect(1), effect(2)], stored: [stored(1), stored(2)] }, "lost"],
  ["an event is in two rows", { stored: [...FLAWLESS.stored, stored(3)] }, "stored twice"],
  ["a row is in no state", { effects: [], stored: [stored(1, { state: "done" })], acknowledged: [] }, "stateless"],
  [
    "an event is pending at the end",
    { effects: [effect(1), effect(2)], stored: [stored(1), stored(2), stored(3, { state: "pending" })] },
    "unsettled",
  ],
  ["an effect is there twice", { effects: [...FLAWLESS.effects, effect(3)] }, "double"],
  [
    "two replays took effect where one was asked for",
    { effects: [...FLAWLESS.effects, ...Array(2).fill(effect(3, { replay: true }))], replayed: ["m 3"] },
    "double",
  ],
  [
    "a replay took effect that nobody asked for",
    { effects: [effect(1, { replay: true })], stored: [stored(1)], acknowledged: [] },
    "double",
  ],
  ["an event was handled without its effect", { effects: [effect(1), effect(2)] }, "half done"],
  [
    "an effect is there and its event is pending",
    { moment: "running", stored: [stored(1), stored(2), stored(3, { state: "pending" })] },
    "half done",
  ],
  ["a lease that had passed on took effect", { stored: [stored(1), stored(2), stored(3, { attempts: 2 })] }, "stale"],
  ["events changed places", { effects: [effect(1), effect(3), effect(2)] }, "inversion"],
  [
    "events of one position changed places",
    {
      effects: [effect(1), effect(2, { identity: "m 3" }), effect(2)],
      stored: [stored(1), stored(2), stored(2, { identity: "m 3" })],
    },
    "inversion",
  ],
  [
    "the highest event was passed to onLate",
    { effects: [effect(1), effect(2), effect(3, { late: true })] },
    "not late",
  ],
  [
    "an event of the highest sequence was recorded as late",
    {
      effects: FLAWLESS.effects.slice(0, 2),
      stored: [stored(1), stored(2), stored(2, { identity: "m 3", state: "late" })],
    },
    "not late",
  ],
  [
    "an event was passed to onLate before a higher one was accepted",
    { effects: [effect(1), effect(3), effect(2, { late: true })] },
    "not late",
  ],
  [
    "what nobody sent is in effect",
    { effects: [...FLAWLESS.effects, effect(4)], stored: [...FLAWLESS.stored, stored(4)], sent: ["m 1", "m 2", "m 3"] },
    "phantom",
  ],
  ["what nobody sent is acknowledged", { acknowledged: ["m 1", "x"], stored: [...FLAWLESS.stored] }, "phantom"],
  [
    "a forged delivery is stored",
    { forged: ["f 1"], stored: [...FLAWLESS.stored, stored(1, { identity: "f 1", state: "quarantined" })] },
    "forged",
  ],
  [
    "a forged body took the place of the one that was sent",
    { forged: ["MARK-7"], effects: [effect(1, { marker: "MARK-7" }), effect(2), effect(3)] },
    "forged",
  ],
  ["a forged delivery is acknowledged", { forged: ["f 1"], acknowledged: ["f 1"] }, "forged"],
  [
    "an event reached another handler than its own",
    { effects: [effect(1, { wrong: "m 1 of billing" }), effect(2), effect(3)] },
    "wrong",
  ],
];

describe("breachesOf()", () => {
  it("finds nothing in a history that keeps every promise", () => {
    expect(breachesOf(FLAWLESS)).toEqual([]);
    expect(breachCounts(breachesOf(FLAWLESS))).toBe("no breach");
  });

  it.each(BROKEN)("sees that %s", (_what, change, kind) => {
    expect(kindsOf(change)).toContain(kind);
  });

  it("has an example of every kind of breach", () => {
    expect(new Set(BROKEN.map(([, , kind]) => kind))).toEqual(new Set(Object.keys(BREACHES)));
  });

  it("names no other breach than that of a single fault", () => {
    expect(kindsOf({ effects: [effect(1), effect(3), effect(2)] })).toEqual(["inversion"]);
    expect(kindsOf({ effects: [...FLAWLESS.effects, effect(3)] })).toEqual(["double"]);
    expect(kindsOf({ effects: [effect(1), effect(2)], stored: [stored(1), stored(2)] })).toEqual(["lost"]);
  });

  it("lets late events and asked-for replays come out of order", () => {
    const late = effect(2, { late: true });
    const replay = effect(1, { replay: true, late: true });
    const rows = [stored(1), stored(3), stored(2)];
    expect(kindsOf({ effects: [effect(1), effect(3), late, replay], stored: rows, replayed: ["m 1"] })).toEqual([]);
  });

  it("lets an event be replayed ahead of its turn, and those before it come after", () => {
    const ahead = effect(3, { replay: true });
    expect(kindsOf({ effects: [ahead, effect(1), effect(2)], replayed: ["m 3"] })).toEqual([]);
    expect(kindsOf({ effects: [ahead, effect(2), effect(1)], replayed: ["m 3"] })).toEqual(["inversion"]);
  });

  it("lets events wait while the run goes on, and end without an effect in every other state", () => {
    const waiting = [stored(1, { state: "pending" }), stored(2, { state: "dead" }), stored(3, { state: "unhandled" })];
    expect(kindsOf({ moment: "running", effects: [], stored: waiting })).toEqual([]);
    const others = [
      stored(2, { state: "discarded" }),
      stored(1, { state: "late" }),
      stored(3, { state: "quarantined" }),
    ];
    expect(kindsOf({ effects: [], stored: others })).toEqual([]);
  });

  it("lets what was sent without an answer be stored or not", () => {
    expect(kindsOf({ acknowledged: [] })).toEqual([]);
    expect(kindsOf({ acknowledged: [], effects: [], stored: [] })).toEqual([]);
  });

  it("lets rows past their retention be gone, and sees that others are not there", () => {
    const change = { stored: [stored(1), stored(2)], pruned: ["m 3"] };
    expect(kindsOf(change)).toEqual([]);
    expect(kindsOf({ ...change, stored: [stored(1)] })).toEqual(["lost", "half done"]);
  });

  it("lets handlers without effects be, if not every handler writes", () => {
    expect(kindsOf({ effects: [], everyHandlerWrites: false })).toEqual([]);
    expect(kindsOf({ effects: [effect(1)], withoutEffect: ["m 2", "m 3"] })).toEqual([]);
    expect(kindsOf({ effects: [effect(1)], withoutEffect: ["m 2"] })).toEqual(["half done"]);
  });

  it("does not take the effects of other messages for an inversion", () => {
    const other = effect(1, { identity: "n 1", lane: "n" });
    const row = stored(1, { identity: "n 1", lane: "n" });
    const sent = ["m 1", "m 2", "m 3", "n 1"];
    expect(kindsOf({ sent, effects: [...FLAWLESS.effects, other], stored: [...FLAWLESS.stored, row] })).toEqual([]);
  });
});

describe("breachLines()", () => {
  it("says of at most 20 breaches of a kind what they are", () => {
    const acknowledged = Array.from({ length: 30 }, (_, index) => `gone ${index}`);
    const breaches = breachesOf({ ...FLAWLESS, sent: [...FLAWLESS.sent, ...acknowledged], acknowledged });
    expect(breachLines(breaches)).toHaveLength(20);
    expect(breachLines(breaches)[0]).toBe("lost: gone 0 (acknowledged and not stored)");
    expect(breachCounts(breaches)).toBe("30 lost");
  });
});

describe("endOf()", () => {
  it("tells handled from unhandled, and leaves the other states as they are", () => {
    expect(endOf({ state: "done", outcome: "handled" })).toBe("handled");
    expect(endOf({ state: "done", outcome: "unhandled" })).toBe("unhandled");
    expect(endOf({ state: "done", outcome: null })).toBe("done");
    expect(endOf({ state: "dead", outcome: null })).toBe("dead");
  });
});

import { describe, expect, it } from "vitest";
import { copyUnfinished, countIn, withoutLease } from "../../src/inbox/store-rules.ts";

describe("withoutLease()", () => {
  const leased = { status: "leased", readyAt: 900 } as const;

  it("leaves a lane that nobody holds as it is", () => {
    expect(withoutLease({ status: "gap", readyAt: 5, id: 3 } as never, null)).toEqual({ status: "gap", readyAt: 5 });
  });

  it("makes a held one ready: by when its event was handed out, else accepted, else by its own time", () => {
    expect(withoutLease(leased, { startedAt: 50, acceptedAt: 40 })).toEqual({ status: "ready", readyAt: 50 });
    expect(withoutLease(leased, { startedAt: null, acceptedAt: 40 })).toEqual({ status: "ready", readyAt: 40 });
    expect(withoutLease(leased, null)).toEqual({ status: "ready", readyAt: 900 });
    expect(withoutLease(leased, undefined)).toEqual({ status: "ready", readyAt: 900 });
  });
});

it("countIn() counts the events in a state", () => {
  const events = (["pending", "done", "pending", "dead"] as const).map((state) => ({ state }));
  expect([countIn(events, "pending"), countIn(events, "dead"), countIn(events, "late")]).toEqual([2, 1, 0]);
});

it("copyUnfinished() says where, and what to do", () => {
  expect(copyUnfinished("sqlite:new.db")).toMatchObject({
    ...{ code: "copy_unfinished", message: expect.stringMatching(/sqlite:new\.db .*run copyInbox\(\) again/) },
  });
});

/** The steps of bulk work: it is counted before it is done, and what arrives out of turn changes nothing. */
import { describe, expect, it } from "vitest";
import {
  type BulkAction,
  type BulkState,
  bulkStep,
  COUNTING,
  countsText,
  mainCount,
  statusText,
} from "../../../../src/tools/inspector/page/bulk.tsx";

function reached(...actions: BulkAction[]): BulkState {
  return actions.reduce(bulkStep, COUNTING);
}

const COUNTED: BulkAction = { kind: "done", dryRun: true, counts: { replayed: 3, superseded: 1 } };
const DONE: BulkAction = { kind: "done", dryRun: false, counts: { replayed: 2, in_progress: 1, superseded: 1 } };
const FAILED: BulkAction = { kind: "failed", code: "unavailable" };
const HALFWAY: BulkAction = { kind: "progress", done: 2, total: 4 };
const COUNT: BulkAction = { kind: "count" };
const RUN: BulkAction = { kind: "run" };
const STOP: BulkAction = { kind: "stop" };
const LEAVE: BulkAction = { kind: "leave" };
const STAY: BulkAction = { kind: "stay" };

describe("bulkStep()", () => {
  it("counts first, shows what was counted, and does nothing that was not", () => {
    expect(reached()).toMatchObject({ step: "counting" });
    expect(reached(HALFWAY)).toMatchObject({ step: "counting", done: 2, total: 4 });
    expect(reached(HALFWAY, COUNTED)).toMatchObject({ step: "counted", counts: { replayed: 3, superseded: 1 } });
    expect(reached(RUN)).toEqual(COUNTING);
    expect(reached(HALFWAY, RUN)).toEqual(reached(HALFWAY));
    expect(reached(FAILED, RUN)).toEqual(reached(FAILED));
  });

  it("begins at nothing when it runs, and ends with the final counts, not with those of the dry run", () => {
    expect(reached(HALFWAY, COUNTED, RUN)).toMatchObject({ step: "running", done: 0, total: 0 });
    expect(reached(COUNTED, RUN, HALFWAY)).toMatchObject({ step: "running", done: 2, total: 4 });
    expect(reached(COUNTED, RUN, HALFWAY, DONE)).toMatchObject({ step: "done", counts: { in_progress: 1 } });
    expect(reached(COUNTED, RUN, COUNTED).step).toBe("running");
    expect(reached(DONE).step).toBe("counting");
  });

  it("is stopped with what was done so far, for good, and only while it runs", () => {
    const stopped = reached(COUNTED, RUN, HALFWAY, STOP);
    expect(stopped).toMatchObject({ step: "stopped", done: 2, total: 4 });
    for (const late of [DONE, HALFWAY, FAILED, RUN]) expect(bulkStep(stopped, late)).toEqual(stopped);
    expect(reached(STOP)).toEqual(COUNTING);
    expect(reached(COUNTED, STOP)).toEqual(reached(COUNTED));
    expect(reached(COUNTED, RUN, DONE, STOP)).toEqual(reached(COUNTED, RUN, DONE));
  });

  it("asks before it is left while it runs, and can be stayed with", () => {
    const leaving = reached(COUNTED, RUN, HALFWAY, LEAVE);
    expect(leaving).toMatchObject({ step: "running", isLeaving: true, done: 2 });
    expect(bulkStep(leaving, STAY)).toMatchObject({ step: "running", isLeaving: false });
    expect(bulkStep(leaving, HALFWAY).isLeaving).toBe(true);
    expect(bulkStep(leaving, DONE)).toMatchObject({ step: "done", isLeaving: false });
    expect(reached(COUNTED, LEAVE).isLeaving).toBe(false);
  });

  it("fails while it counts or runs, not after its end, and counts anew for another question, not while it runs", () => {
    expect(reached(FAILED)).toMatchObject({ step: "failed", code: "unavailable" });
    expect(reached(COUNTED, RUN, HALFWAY, FAILED)).toMatchObject({ step: "failed", done: 2 });
    expect(reached(COUNTED, FAILED)).toEqual(reached(COUNTED));
    expect(reached(COUNTED, RUN, DONE, FAILED)).toEqual(reached(COUNTED, RUN, DONE));
    expect(reached(COUNTED, COUNT)).toEqual(COUNTING);
    expect(reached(COUNTED, RUN, COUNT).step).toBe("running");
  });
});

describe("countsText()", () => {
  it.each([
    [{ replayed: 4_812, superseded: 188, in_progress: 0 }, true, "4,812 would be replayed, 188 are superseded."],
    [{ discarded: 1, wrong_state: 2 }, false, "1 was discarded, 2 are no longer in that state."],
    [{ replayed: 0, superseded: 0 }, true, "Nothing matches."],
    [{ unblocked: 2, odd_end: 3 }, false, "2 were unblocked, 3 are odd end."],
  ])("of %j is a sentence (dry run: %s)", (counts, dryRun, text) => {
    expect(countsText(counts, { dryRun })).toBe(text);
  });
});

describe("mainCount()", () => {
  it("is how many the act would be done on", () => {
    expect(mainCount({ replayed: 3, superseded: 9 })).toBe(3);
    expect(mainCount({ superseded: 9, discarded: 2 })).toBe(2);
    expect(mainCount({ unblocked: 1 })).toBe(1);
    expect(mainCount({})).toBe(0);
  });
});

describe("statusText()", () => {
  it("describes each step in a sentence", () => {
    expect(statusText(reached())).toBe("Counting…");
    expect(statusText(reached(COUNTED))).toBe("3 would be replayed, 1 is superseded.");
    expect(statusText(reached(COUNTED, RUN))).toBe("Working…");
    expect(statusText(reached(COUNTED, RUN, DONE))).toBe("2 were replayed, 1 is being handled now, 1 is superseded.");
  });

  it("says that the rest can be started again", () => {
    const rest = /Start it again for the rest\.$/;
    expect(statusText(reached(COUNTED, RUN, HALFWAY, STOP))).toMatch(/^Stopped after about 2 of 4\./);
    expect(statusText(reached(COUNTED, RUN, HALFWAY, STOP))).toMatch(rest);
    expect(statusText(reached(COUNTED, RUN, FAILED))).toMatch(rest);
    const why = (code: string) => statusText(reached(COUNTED, RUN, { kind: "failed", code }));
    expect(why("Sign in again.")).toBe(why("Sign in again"));
  });
});

/** The steps of bulk work: it is counted before it is done, and what arrives out of turn changes nothing. */
import { describe, expect, it } from "vitest";
import {
  type BulkState,
  type BulkStepAction,
  bulkStep,
  COUNTING,
  countsText,
  mainCount,
  secondsNeeded,
} from "../../../src/inspector/page/bulk-steps.js";

function reached(...actions: BulkStepAction[]): BulkState {
  return actions.reduce(bulkStep, COUNTING);
}

function line(of: Extract<BulkStepAction, { kind: "line" }>["line"]): BulkStepAction {
  return { kind: "line", line: of };
}

const COUNTED = line({ kind: "done", dryRun: true, counts: { replayed: 3, superseded: 1 } });
const DONE = line({ kind: "done", dryRun: false, counts: { replayed: 3, superseded: 1 } });
const HALFWAY = line({ kind: "progress", done: 2, total: 4 });
const RUN: BulkStepAction = { kind: "run" };
const STOP: BulkStepAction = { kind: "stop" };

describe("bulkStep()", () => {
  it("counts first, and shows what was counted", () => {
    expect(COUNTING.step).toBe("counting");
    expect(reached(HALFWAY)).toMatchObject({ step: "counting", done: 2, total: 4 });
    expect(reached(HALFWAY, COUNTED)).toMatchObject({ step: "counted", counts: { replayed: 3, superseded: 1 } });
  });

  it("does nothing that was not counted", () => {
    expect(reached(RUN)).toEqual(COUNTING);
    expect(reached(HALFWAY, RUN)).toEqual(reached(HALFWAY));
  });

  it("starts from nothing when it runs, and ends with the final counts", () => {
    expect(reached(HALFWAY, COUNTED, RUN)).toMatchObject({ step: "running", done: 0, total: 0 });
    expect(reached(COUNTED, RUN, HALFWAY)).toMatchObject({ step: "running", done: 2, total: 4 });
    expect(reached(COUNTED, RUN, HALFWAY, DONE)).toMatchObject({ step: "ended", end: "done", counts: { replayed: 3 } });
  });

  it("takes a line of the count for no end of the work, and the other way round", () => {
    expect(reached(COUNTED, RUN, COUNTED).step).toBe("running");
    expect(reached(DONE).step).toBe("counting");
  });

  it("is stopped with what was done so far", () => {
    const stopped = reached(COUNTED, RUN, HALFWAY, STOP);
    expect(stopped).toMatchObject({ step: "ended", end: "stopped", done: 2, total: 4 });
    expect(bulkStep(stopped, DONE)).toEqual(stopped);
    expect(bulkStep(stopped, HALFWAY)).toEqual(stopped);
  });

  it("stops nothing that does not run", () => {
    expect(reached(COUNTED, STOP)).toEqual(reached(COUNTED));
    expect(reached(COUNTED, RUN, DONE, STOP)).toEqual(reached(COUNTED, RUN, DONE));
  });

  it("asks before it is left while it runs, and can be stayed with", () => {
    const leaving = reached(COUNTED, RUN, HALFWAY, { kind: "leave" });
    expect(leaving).toMatchObject({ step: "running", isLeaving: true, done: 2 });
    expect(bulkStep(leaving, { kind: "stay" })).toMatchObject({ step: "running", isLeaving: false });
    expect(bulkStep(leaving, DONE)).toMatchObject({ step: "ended", isLeaving: false });
  });

  it("tells a failure while counting, and while running", () => {
    expect(reached(line({ kind: "failed", code: "unavailable" }))).toMatchObject({ step: "ended", end: "failed" });
    const broken = reached(COUNTED, RUN, HALFWAY, { kind: "broken", message: "No answer." });
    expect(broken).toMatchObject({ step: "ended", end: "failed", message: "No answer.", done: 2 });
  });

  it("takes a broken end for none once the end is there", () => {
    expect(reached(COUNTED, RUN, DONE, { kind: "broken", message: "Late." })).toEqual(reached(COUNTED, RUN, DONE));
    expect(reached(COUNTED, { kind: "broken", message: "Late." })).toEqual(reached(COUNTED));
  });

  it("counts anew when asked for something else, but not while it runs", () => {
    expect(reached(COUNTED, { kind: "count" })).toEqual(COUNTING);
    expect(reached(COUNTED, RUN, { kind: "count" }).step).toBe("running");
  });
});

describe("countsText()", () => {
  it("says what would be done, and what would not", () => {
    expect(countsText({ replayed: 4_812, superseded: 188, in_progress: 0 }, { dryRun: true })).toBe(
      "4,812 would be replayed, 188 are superseded.",
    );
  });

  it("says what was done, one as one", () => {
    expect(countsText({ discarded: 1, in_progress: 1, wrong_state: 2 }, { dryRun: false })).toBe(
      "1 was discarded, 1 is being handled now, 2 were changed by somebody else.",
    );
  });

  it("says so when there is nothing", () => {
    expect(countsText({ replayed: 0, superseded: 0 }, { dryRun: true })).toBe("Nothing matches.");
  });

  it("leaves out no count it does not know", () => {
    expect(countsText({ unblocked: 2, odd_end: 3 }, { dryRun: false })).toBe("2 were unblocked, 3 odd end.");
  });
});

describe("mainCount()", () => {
  it("is what the act would be done on", () => {
    expect(mainCount({ replayed: 3, superseded: 9 })).toBe(3);
    expect(mainCount({ superseded: 9, discarded: 2 })).toBe(2);
    expect(mainCount({ unblocked: 1 })).toBe(1);
    expect(mainCount({})).toBe(0);
  });
});

describe("secondsNeeded()", () => {
  it("follows from the rate, if there is one", () => {
    expect(secondsNeeded(4_812, "100")).toBe(49);
    expect(secondsNeeded(4_812, "")).toBeNull();
    expect(secondsNeeded(4_812, "0")).toBeNull();
    expect(secondsNeeded(4_812, "x")).toBeNull();
  });
});

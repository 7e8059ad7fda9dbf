/** Which message about a condition is made, and which is sent next: without a store and without a clock. */
import { describe, expect, it } from "vitest";
import { type AlertNote, advanced, failed, NOTHING_NOTED, sent, taken } from "../../src/receiver/alert-note.ts";

const LIMIT = 3;
let ids = 0;

/** The note after looks that each found `value` at second `at`. */
function noteAfter(note: AlertNote, ...looks: readonly (readonly [at: number, value: number])[]): AlertNote {
  const same = { condition: "deadLetters", limit: LIMIT, receiver: "shop", newId: () => `e${++ids}` } as const;
  return looks.reduce((known, [at, value]) => advanced(known, { ...same, value, now: at * 1_000 }), note);
}

function begun(): AlertNote {
  ids = 0;
  return noteAfter(NOTHING_NOTED, [0, LIMIT]);
}

/** The note once everything it holds was sent. */
function allSent(note: AlertNote): AlertNote {
  return note.unsent.reduce((known, alert) => sent(known, { alert }), note);
}

const idsOf = (note: AlertNote) => note.unsent.map(({ id }) => id);

describe("advanced()", () => {
  it("says nothing below the limit, and begins at it", () => {
    expect(noteAfter(NOTHING_NOTED, [0, LIMIT - 1])).toBe(NOTHING_NOTED);
    expect(begun().unsent).toMatchObject([
      {
        id: "e1:began",
        episode: "e1",
        condition: "deadLetters",
        receiver: "shop",
        value: 3,
        limit: 3,
        at: 0,
        since: 0,
      },
    ]);
  });

  it("changes nothing while the condition holds, whatever its value", () => {
    const note = begun();
    expect(noteAfter(note, [10, 50], [20, 3])).toBe(note);
  });

  it("ends after a minute without it, and not before", () => {
    const note = noteAfter(allSent(begun()), [10, 0], [69, 0]);
    expect(idsOf(note)).toEqual([]);
    expect(noteAfter(note, [70, 1]).unsent).toMatchObject([{ id: "e1:ended", value: 1, at: 70_000, since: 0 }]);
  });

  it("takes a condition that holds again within a minute for the same", () => {
    expect(idsOf(noteAfter(allSent(begun()), [10, 0], [60, 3], [70, 0], [129, 0]))).toEqual([]);
    expect(idsOf(noteAfter(allSent(begun()), [10, 0], [60, 3], [70, 0], [130, 0]))).toEqual(["e1:ended"]);
  });

  it("keeps a beginning that was never sent, and its end behind it", () => {
    expect(idsOf(noteAfter(begun(), [10, 0], [70, 0]))).toEqual(["e1:began", "e1:ended"]);
  });

  it("drops an end that was not tried when the condition holds again: messages do not pile up", () => {
    const flapping = [1, 2, 3, 4].flatMap(
      (k) =>
        [
          [k * 200, 0],
          [k * 200 + 60, 0],
          [k * 200 + 100, 9],
        ] as const,
    );
    const note = noteAfter(begun(), ...flapping);
    expect(idsOf(note)).toEqual(["e1:began"]);
    expect(note.episode).toMatchObject({ id: "e1", since: 0, clearSince: null });
  });

  it("begins anew behind an end that was tried, and holds three messages at most", () => {
    const ended = noteAfter(allSent(begun()), [10, 0], [70, 0]);
    const tried = taken(ended, 70_000)?.note ?? NOTHING_NOTED;
    expect(idsOf(noteAfter(tried, [80, 9]))).toEqual(["e1:ended", "e2:began"]);
    ids = 1;
    const flapping = [1, 2, 3].flatMap(
      (k) =>
        [
          [k * 200, 9],
          [k * 200 + 10, 0],
          [k * 200 + 70, 0],
        ] as const,
    );
    expect(idsOf(noteAfter(tried, ...flapping))).toEqual(["e1:ended", "e2:began", "e2:ended"]);
  });

  it("ends a condition that is not watched any more", () => {
    const look = { condition: "deadLetters", value: 9, limit: null, receiver: "shop", newId: () => "never" } as const;
    const note = advanced(advanced(allSent(begun()), { ...look, now: 10_000 }), { ...look, now: 70_000 });
    expect(note.unsent).toMatchObject([{ id: "e1:ended", limit: LIMIT }]);
  });

  it("says what happened and what to do", () => {
    const [began] = begun().unsent;
    const [ended] = noteAfter(allSent(begun()), [540, 0], [600, 0]).unsent;
    expect(began?.text).toBe(
      'Dead letters in the inbox: 3 (limit 3). Run "oncehook inbox ls --group-by error", fix the cause, then run "oncehook inbox replay --all --skip-superseded".',
    );
    expect(ended?.text).toBe("The dead letters are below the limit again, after 10 minutes.");
  });
});

describe("taken()", () => {
  it("gives a message to one process for 30 s, and then to another: the same one", () => {
    const first = taken(begun(), 0);
    expect(first).toMatchObject({ alert: { id: "e1:began" }, attempt: 1 });
    const { note } = first ?? { note: NOTHING_NOTED };
    expect(taken(note, 29_999)).toBeNull();
    expect(taken(note, 30_000)).toMatchObject({ alert: first?.alert, attempt: 2 });
  });

  it("gives the next one once the first was sent", () => {
    const both = noteAfter(begun(), [10, 0], [70, 0]);
    const first = taken(both, 70_000);
    const rest = first && sent(first.note, first);
    expect(rest && taken(rest, 70_000)).toMatchObject({ alert: { id: "e1:ended" }, attempt: 1 });
  });

  it("does not wait for a clock that was set back", () => {
    const { note } = taken(begun(), 3_600_000) ?? { note: NOTHING_NOTED };
    expect(taken(note, 0)).toMatchObject({ attempt: 2 });
  });
});

describe("failed()", () => {
  it("waits 10 s, then twice as long each time, 10 minutes at most", () => {
    const waits: number[] = [];
    let note = begun();
    for (let round = 0, now = 0; round < 8; round++) {
      const took = taken(note, now);
      if (took === null) throw new Error("It was not due.");
      note = failed(took.note, took, now);
      waits.push(note.notBefore - now);
      now = note.notBefore;
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 320, 600, 600].map((seconds) => seconds * 1_000));
  });

  it("changes nothing once another process has the message, or has sent it", () => {
    const slow = taken(begun(), 0);
    const quick = slow && taken(slow.note, 30_000);
    if (slow === null || quick === null) throw new Error("Nothing was due.");
    expect(failed(quick.note, slow, 31_000)).toBe(quick.note);
    const done = sent(quick.note, quick);
    expect(failed(done, slow, 31_000)).toBe(done);
    expect(sent(done, slow)).toBe(done);
  });
});

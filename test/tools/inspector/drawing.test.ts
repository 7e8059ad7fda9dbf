/** The drawing of a lane: every story that a person may have to understand, told by a real store. */
import { describe, expect, it } from "vitest";
import type { Drawing } from "../../../src/tools/inspector/api.ts";
import { drawLane } from "../../../src/tools/inspector/drawing.ts";
import { GAP_WAIT_MS, openStory } from "./drawing/story.ts";

/** `sequence: arrival → handling`, in the order of arrival. */
const orders = ({ events }: Drawing) =>
  events.map(({ sequence, arrival, handling }) => `${sequence}: ${arrival} → ${handling}`);
const heldOf = ({ events }: Drawing, sequence: number) => events.find((one) => one.sequence === sequence)?.held;

const sourceEvent = (order: "position" | "arrival", ownId: string, gapWaitMs = 0) =>
  ({
    lane: { source: "billing", tenant: null, name: "sub_1", order },
    eventType: "a.thing",
    ownId,
    gapWaitMs,
  }) as const;

describe("drawLane()", () => {
  it("draws two stretches that were missing, one filled and one given up", async () => {
    const story = await openStory();
    await story.accept(5);
    await story.accept(3);
    await story.accept(2);
    await story.accept(1);
    for (let n = 0; n < 4; n++) await story.run();
    await story.clock.advance(GAP_WAIT_MS);
    expect(await story.run()).toBe(5);
    const { gaps, events } = await story.draw();
    expect(gaps).toMatchObject([
      { from: 1, to: 3, since: story.at(0), until: story.at(3), skipped: false },
      { from: 4, to: 4, since: story.at(0), skipped: true },
    ]);
    expect(events[0]?.held).toEqual({ reason: "gap", from: 1, to: 4, since: story.at(0), until: gaps[1]?.until });
    expect(events[0]?.startedAt).toBe(gaps[1]?.until);
  });

  it("does not take a late event for one that filled the gap which is waited for", async () => {
    const story = await openStory();
    await story.accept(3);
    await story.clock.advance(GAP_WAIT_MS);
    await story.run();
    await story.accept(6);
    await story.accept(2);
    await story.accept(5);
    await story.accept(4);
    for (let n = 0; n < 3; n++) await story.run();
    const drawing = await story.draw();
    expect(heldOf(drawing, 6)).toMatchObject({ reason: "gap", from: 4, to: 5 });
    expect(drawing.gaps.map(({ from, to }) => [from, to])).toEqual([
      [1, 2],
      [4, 5],
    ]);
  });

  it("draws what happened within one millisecond in its order", async () => {
    const story = await openStory({ stepMs: 0 });
    for (const sequence of [3, 2, 1]) await story.accept(sequence);
    for (let n = 0; n < 3; n++) await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["3: 1 → 3", "2: 2 → 2", "1: 3 → 1"]);
    expect(drawing.gaps).toMatchObject([{ from: 1, to: 2, since: story.at(0), until: story.at(0) }]);
  });

  it("does not take two events of one sequence for a gap", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.accept(2);
    await story.accept(1, { eventType: "message.other" });
    for (let n = 0; n < 3; n++) await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["1: 1 → 1", "2: 2 → 3", "1: 3 → 2"]);
    expect(drawing.gaps).toEqual([]);
  });

  it("draws a gap that is still waited for", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.run();
    await story.accept(4);
    await story.accept(6);
    const drawing = await story.draw();
    expect(drawing.gaps).toEqual([{ from: 2, to: 3, since: story.at(2), until: null, skipped: false, filledAt: null }]);
    expect(heldOf(drawing, 4)).toEqual({ reason: "gap", from: 2, to: 3, since: story.at(2), until: null });
    expect(heldOf(drawing, 6)).toEqual({ reason: "gap", from: 2, to: 3, since: story.at(3), until: null });
    expect(drawing.end).toEqual({ state: "waiting", eventType: "message.failed" });
    expect(drawing.to).toBe(drawing.now);
  });

  it("draws a gap before the first event, however wide it is", async () => {
    const story = await openStory();
    await story.accept(Number.MAX_SAFE_INTEGER);
    expect((await story.draw()).gaps).toMatchObject([{ from: 1, to: Number.MAX_SAFE_INTEGER - 1, until: null }]);
  });

  it("draws failed attempts and the one that succeeded; what came meanwhile waited for its turn", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.run("retry");
    await story.accept(2);
    expect(heldOf(await story.draw(), 2)).toEqual({
      ...{ reason: "turn", from: null, to: null, since: story.at(2), until: null },
    });
    await story.clock.advance(9_000);
    await story.run();
    await story.run();
    const drawing = await story.draw();
    expect(drawing.events[0]).toMatchObject({ attemptCount: 2, state: "done", held: null });
    expect(drawing.events[0]?.attempts).toEqual([
      { attempt: 1, at: story.at(2), durationMs: 1_000, errorCode: "ECONNREFUSED", error: "No route" },
    ]);
    expect(heldOf(drawing, 2)).toEqual({
      reason: "turn",
      from: null,
      to: null,
      since: story.at(2),
      until: story.at(13),
    });
    expect(drawing.end).toEqual({ state: "open", eventType: null });
  });

  it("draws a discarded event, which never got to a handler", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.accept(2);
    await story.act({ kind: "discard", event: 1 });
    await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["1: 1 → null", "2: 2 → 1"]);
    expect(drawing).toMatchObject({ gaps: [], events: [{ state: "discarded", finishedAt: story.at(2) }, {}] });
  });

  it("draws an erased message as before", async () => {
    const story = await openStory();
    await story.accept(3, { sequence: 1 });
    await story.run();
    const before = await story.draw();
    await story.act({ kind: "erase", subject: { id: "msg_1" } });
    expect(await story.draw()).toEqual({ ...before, now: before.now + 1_000 });
  });

  it("draws a filtered event that others waited for, without a wait and an attempt of its own", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.run();
    await story.accept(3);
    await story.accept(2, { filtered: true });
    await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["1: 1 → 1", "3: 2 → 2", "2: 3 → null"]);
    expect(drawing.events[2]).toMatchObject({ state: "done", outcome: "filtered", held: null, attemptCount: 0 });
    expect(heldOf(drawing, 3)).toEqual({ reason: "gap", from: 2, to: 2, since: story.at(2), until: story.at(3) });
    expect(drawing.gaps).toMatchObject([{ from: 2, to: 2, skipped: false }]);
  });

  it("draws a lane that is empty by now as a point", async () => {
    const story = await openStory();
    await story.accept(1);
    const lane = { ...(await story.lane()), events: [], status: "idle" as const };
    expect(drawLane(lane, 5)).toMatchObject({ from: 5, to: 5, events: [], gaps: [], end: { state: "open" } });
  });
});

describe("drawLane() of another source", () => {
  it("numbers events by their place in their lane, and says which are held back", async () => {
    const story = await openStory({ takesLate: true });
    for (const second of [60, 20, 40]) await story.accept(second, sourceEvent("position", `evt_${second}`, 10_000));
    const held = { reason: "held_back", from: null, to: null, until: null };
    const waiting = await story.draw();
    expect(orders(waiting)).toEqual(["3: 1 → null", "1: 2 → null", "2: 3 → null"]);
    expect(waiting.events.map((event) => event.held)).toEqual([0, 1, 2].map((n) => ({ ...held, since: story.at(n) })));
    expect(waiting).toMatchObject({ order: "position", gaps: [], end: { state: "waiting", eventType: "a.thing" } });
    await story.clock.advance(10_000);
    while ((await story.run()) !== null);
    await story.accept(30, sourceEvent("position", "evt_30"));
    await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["4: 1 → 3", "1: 2 → 1", "3: 3 → 2", "2: 4 → 4"]);
    expect(drawing.events.map(({ late }) => late)).toEqual([false, false, false, true]);
    expect(drawing).toMatchObject({ gaps: [], end: { state: "open", eventType: null } });
  });

  it("numbers events of a lane by arrival as they came", async () => {
    const story = await openStory();
    for (const n of [1, 2]) await story.accept(0, sourceEvent("arrival", `evt_${n}`));
    for (let n = 0; n < 2; n++) await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["1: 1 → 1", "2: 2 → 2"]);
    expect(drawing).toMatchObject({ order: "arrival", end: { state: "open", eventType: null } });
  });
});

describe("drawLane() of dead letters and replays", () => {
  it("still knows that an event came late when it was replayed", async () => {
    const story = await openStory();
    await story.accept(2);
    await story.clock.advance(GAP_WAIT_MS);
    await story.run();
    await story.accept(1);
    await story.act({ kind: "replay", event: 2 });
    await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["2: 1 → 1", "1: 2 → 2"]);
    expect(drawing.events[1]).toMatchObject({ late: true, replayed: true, state: "done", held: null });
    expect(drawing.gaps).toMatchObject([{ from: 1, to: 1, skipped: true, filledAt: expect.any(Number) }]);
  });

  it.each([
    ["late, when its gap had just been given up", true],
    ["on time, when it had just filled its gap", false],
  ])("knows of a replayed event that it came %s", async (_, late) => {
    const story = await openStory({ stepMs: 0 });
    await story.accept(2, late ? { gapWaitMs: 0 } : {});
    if (late) await story.run();
    await story.accept(1);
    for (let n = 0; n < 2; n++) await story.run();
    await story.clock.advance(1_000);
    await story.act({ kind: "replay", event: 2 });
    await story.run();
    expect((await story.draw()).events[1]).toMatchObject({ sequence: 1, late, replayed: true });
  });

  it("does not hold a replayed event for a gap behind it", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.accept(4);
    await story.act({ kind: "discard", event: 1 });
    await story.act({ kind: "replay", event: 1 });
    const drawing = await story.draw();
    expect(heldOf(drawing, 1)).toBeNull();
    expect(heldOf(drawing, 4)).toMatchObject({ reason: "gap", from: 2, to: 3, until: null });
  });

  it("draws a dead letter behind which the message went on", async () => {
    const story = await openStory();
    await story.accept(2, { sequence: 1 });
    await story.run("dead");
    await story.accept(3, { sequence: 2 });
    await story.run();
    const drawing = await story.draw();
    expect(drawing.events[0]).toMatchObject({ state: "dead", attemptCount: 1, attempts: [{ attempt: 1 }] });
    expect(drawing.end).toEqual({ state: "ended", eventType: "message.delivery" });
  });

  it("keeps the place of an event that was replayed after others were handled", async () => {
    const story = await openStory();
    for (const sequence of [1, 2]) {
      await story.accept(sequence);
      await story.run(sequence === 1 ? "dead" : "handled");
    }
    await story.act({ kind: "replay", event: 1 });
    await story.run();
    const drawing = await story.draw();
    expect(orders(drawing)).toEqual(["1: 1 → 1", "2: 2 → 2"]);
    // Its end is now that of the replay, which held nothing up.
    expect(heldOf(drawing, 2)).toBeNull();
  });
});

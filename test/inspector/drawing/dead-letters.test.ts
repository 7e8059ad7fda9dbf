/** The drawing of a message whose handlers failed, and of what an operator did about it. */
import { describe, expect, it } from "vitest";
import type { Drawing } from "../../../src/inspector/api.ts";
import { GAP_WAIT_MS, openStory } from "./story.ts";

const orders = ({ events }: Drawing) =>
  events.map(({ sequence, arrival, handling }) => `${sequence}: ${arrival} → ${handling}`);
const heldOf = ({ events }: Drawing, sequence: number) => events.find((one) => one.sequence === sequence)?.held;

describe("drawMessage() of dead letters and replays", () => {
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

  it("says that the end failed when its handler did", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.run();
    await story.accept(3, { sequence: 2 });
    await story.run("dead");
    expect((await story.draw()).end).toEqual({ state: "failed", eventType: "message.delivery" });
  });

  it("draws what is blocked behind a dead letter, and that it went on once it was replayed", async () => {
    const story = await openStory();
    await story.accept(1);
    await story.run("block");
    await story.accept(2);
    const blocked = await story.draw();
    expect(heldOf(blocked, 2)).toEqual({ reason: "blocked", from: null, to: null, since: story.at(2), until: null });
    expect(blocked.end).toEqual({ state: "blocked", eventType: "message.queued" });
    await story.act({ kind: "replay", event: 1 });
    await story.run();
    await story.run();
    const drawing = await story.draw();
    expect(drawing.events[0]).toMatchObject({ replayed: true, state: "done", attemptCount: 2, handling: 1 });
    expect(heldOf(drawing, 2)).toEqual({
      reason: "turn",
      from: null,
      to: null,
      since: story.at(2),
      until: story.at(5),
    });
    expect(drawing.end).toEqual({ state: "open", eventType: null });
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

/** Whatever happens to a message, in whatever order: what holds of every drawing of it. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { LaneRecord } from "../../../src/inbox/record.ts";
import type { Drawing } from "../../../src/tools/inspector/api.ts";
import { drawLane } from "../../../src/tools/inspector/drawing.ts";
import { sized } from "../../setup/form.ts";
import { GAP_WAIT_MS, openStory, type RunEnd, type Story } from "./drawing/story.ts";

type Step =
  | { readonly kind: "accept"; readonly sequence: number }
  | { readonly kind: "filter"; readonly sequence: number }
  | { readonly kind: "run"; readonly end: RunEnd }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "act"; readonly act: "replay" | "discard" | "unblock" | "release_gap"; readonly event: number };

const ENDS: readonly RunEnd[] = ["handled", "handled", "unhandled", "retry", "dead", "block", "release"];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("accept"), sequence: fc.integer({ min: 1, max: 7 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("filter"), sequence: fc.integer({ min: 1, max: 7 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("run"), end: fc.constantFrom(...ENDS) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.constantFrom(0, 10_000, GAP_WAIT_MS) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("act"),
      act: fc.constantFrom("replay", "discard", "unblock", "release_gap"),
      event: fc.integer({ min: 1, max: 5 }),
    }),
  },
);

async function take(story: Story, one: Step): Promise<void> {
  if (one.kind === "accept") await story.accept(one.sequence);
  else if (one.kind === "filter") await story.accept(one.sequence, { filtered: true });
  else if (one.kind === "run") await story.run(one.end);
  else if (one.kind === "wait") await story.clock.advance(one.ms);
  else {
    const { act: kind, event } = one;
    const act = kind === "replay" || kind === "discard" ? { kind, event } : { kind, lane: 1 };
    // Most acts are refused in most states.
    await story.act(act).catch(() => {});
  }
}

/** What holds whatever the clocks did. */
function check({ events, gaps, from, to, end }: Drawing): void {
  expect(events.map(({ arrival }) => arrival)).toEqual(events.map((_, index) => index + 1));
  const handlings = events.flatMap(({ handling }) => handling ?? []).sort((a, b) => a - b);
  expect(handlings).toEqual(handlings.map((_, index) => index + 1));
  for (const { handling, startedAt, held, attempts, attemptCount } of events) {
    expect(handling === null).toBe(startedAt === null);
    expect(attemptCount).toBeGreaterThanOrEqual(attempts.length);
    if (held !== null) expect(held.until ?? held.since).toBeGreaterThanOrEqual(held.since);
    expect(held?.reason === "gap").toBe(typeof held?.from === "number" && typeof held.to === "number");
  }
  for (const gap of gaps) {
    expect(gap.to).toBeGreaterThanOrEqual(gap.from);
    expect(gap.until ?? gap.since).toBeGreaterThanOrEqual(gap.since);
  }
  const moments = JSON.stringify({ events, gaps }).matchAll(/"(?:\w+At|at|since|until)":(\d+)/g);
  for (const [, at] of moments) {
    expect(Number(at)).toBeGreaterThanOrEqual(from);
    expect(Number(at)).toBeLessThanOrEqual(to);
  }
  if (events.some(({ state }) => state === "pending")) expect(["waiting", "blocked"]).toContain(end.state);
}

/** What holds beside that of a message whose times were never set back. */
function checkStory(drawing: Drawing, { lane }: { readonly lane: LaneRecord }): void {
  for (const { held, startedAt, state, acceptedAt } of drawing.events) {
    if (held === null) continue;
    expect(held.since).toBe(acceptedAt);
    if (held.until === null) expect([startedAt, state]).toEqual([null, "pending"]);
    else if (startedAt !== null) expect(held.until).toBeLessThanOrEqual(startedAt);
  }
  expect(drawing.gaps.filter(({ until }) => until === null)).toHaveLength(lane.gapSince === null ? 0 : 1);
  expect(drawing.gaps.filter(({ skipped }) => skipped)).toHaveLength(lane.gaps.length);
  const normal = drawing.events.filter(({ late, replayed, handling }) => !late && !replayed && handling !== null);
  const byHandling = normal.sort((a, b) => (a.handling ?? 0) - (b.handling ?? 0)).map(({ sequence }) => sequence);
  expect(byHandling).toEqual([...byHandling].sort((a, b) => a - b));
}

it("draws any story of a message: orders, holds and bounds", async () => {
  let drawn = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, handOut) => {
      const story = await openStory({ takesLate: handOut });
      await story.accept(3);
      for (const one of steps) {
        await take(story, one);
        const [drawing, lane] = [await story.draw(), await story.lane()];
        check(drawing);
        checkStory(drawing, { lane });
        drawn++;
      }
    }),
    { numRuns: sized({ quick: 40, full: 150 }) },
  );
  expect(drawn).toBeGreaterThan(sized({ quick: 100, full: 500 }));
});

it("draws any order of arrival as what it was: an event is held exactly when an earlier one came after it", async () => {
  const order = fc.shuffledSubarray([1, 2, 3, 4, 5], { minLength: 5, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(order, async (sequences) => {
      const story = await openStory();
      for (const sequence of sequences) await story.accept(sequence);
      while ((await story.run()) !== null);
      const { events } = await story.draw();
      expect(events.map(({ sequence }) => sequence)).toEqual(sequences);
      for (const { sequence, handling, held, arrival } of events) {
        expect(handling).toBe(sequence);
        const came = sequences.slice(arrival).filter((other) => other < sequence);
        if (came.length === 0) expect(held?.reason).not.toBe("gap");
        else expect(held).toMatchObject({ reason: "gap", from: Math.min(...came), to: Math.max(...came) });
      }
    }),
    { numRuns: sized({ quick: 20, full: 60 }) },
  );
});

it("keeps its bounds when clocks jump: every record is drawn, whatever its times", async () => {
  const at = fc.integer({ min: 0, max: 50 });
  const story = await openStory();
  for (const sequence of [4, 2, 1, 3]) await story.accept(sequence);
  const lane = await story.lane();
  const times = fc.record({ acceptedAt: at, startedAt: fc.option(at), finishedAt: fc.option(at) });
  const state = fc.constantFrom("pending" as const, "done" as const, "dead" as const, "late" as const);
  const event = fc.record({ times, state, forced: fc.boolean(), late: fc.boolean() });
  const status = fc.constantFrom("idle", "ready", "gap", "leased", "backoff", "blocked");
  const gap = fc.record({ from: fc.constant(2), to: fc.constant(3), skippedAt: at, filledAt: fc.option(at) });
  const facts = fc.record({ status, gapSince: fc.option(at), gaps: fc.array(gap, { maxLength: 2 }) });
  fc.assert(
    fc.property(fc.array(event, { minLength: 4, maxLength: 4 }), facts, at, (changes, changed, now) => {
      const events = lane.events.map((one, index) => ({ ...one, ...changes[index], ...changes[index]?.times }));
      check(drawLane({ ...lane, ...changed, events } as LaneRecord, now));
    }),
    { numRuns: sized({ quick: 100, full: 500 }) },
  );
});

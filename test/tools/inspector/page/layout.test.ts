/** Where a message's drawing puts its marks: whatever happened, in order, apart, and inside. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Drawing, DrawnEvent } from "../../../../src/tools/inspector/api.ts";
import {
  halfOf,
  layout,
  PAUSE_MS,
  pauseText,
  place,
  ROWS,
  repeatsOf,
} from "../../../../src/tools/inspector/page/layout.ts";
import { drawing, event } from "./drawings.ts";

/** Milliseconds next to minutes and hours. */
const anyMs = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 }), fc.integer({ min: 100, max: 9_000_000 }));

const anyEvent = fc.record({
  afterMs: anyMs,
  waitedMs: fc.option(anyMs),
  tookMs: anyMs,
  retriesMs: fc.array(anyMs, { maxLength: 3 }),
  isOver: fc.boolean(),
  reason: fc.constantFrom<"gap" | "turn" | "blocked">("gap", "turn", "blocked"),
  late: fc.boolean(),
  replayed: fc.boolean(),
  conflict: fc.boolean(),
  duplicates: fc.integer({ min: 0, max: 1_000 }),
  sequence: fc.integer({ min: 0, max: 10_000 }),
});

const anyDrawing = fc
  .oneof(fc.array(anyEvent, { minLength: 1, maxLength: 8 }), fc.array(anyEvent, { minLength: 1, maxLength: 500 }))
  .map((plans) => {
    let now = 1_760_000_000_000;
    return drawing(
      plans.map(({ afterMs, waitedMs, tookMs, retriesMs, isOver, reason, ...facts }, index): DrawnEvent => {
        now += afterMs;
        const { sequence } = facts;
        const acceptedAt = now;
        const startedAt = waitedMs === null ? null : acceptedAt + waitedMs;
        let end = startedAt ?? acceptedAt;
        const attempts = retriesMs.map((ms, at) => {
          end += ms + tookMs;
          return { attempt: at + 1, at: end, durationMs: tookMs, errorCode: "ECONNREFUSED", error: "refused" };
        });
        const held = { reason, from: sequence, to: sequence + 1, since: acceptedAt, until: startedAt };
        return event({
          ...facts,
          ...{ id: index + 1, arrival: index + 1, acceptedAt, startedAt, held },
          ...(startedAt !== null && isOver
            ? { state: "done" as const, outcome: "handled" as const, finishedAt: end + tookMs, attempts }
            : {
                state: "pending" as const,
                outcome: null,
                finishedAt: null,
                attempts: startedAt === null ? [] : attempts,
              }),
        });
      }),
    );
  });

/** Checks what holds for any drawing, in any room. */
function forAll(check: (drawn: Drawing, room: number) => void): void {
  fc.assert(fc.property(anyDrawing, fc.integer({ min: 0, max: 4_000 }), check));
}

describe("layout()", () => {
  it("puts a later moment further to the right, in whatever row", () => {
    forAll((drawn) => {
      const { stories } = layout(drawn);
      const seen = stories
        .flatMap(({ event: { acceptedAt }, x, bars }) => [
          { at: acceptedAt, x },
          ...bars.flatMap(({ from, to, x1, x2 }) => [
            { at: from, x: x1 },
            { at: to, x: x2 },
          ]),
        ])
        .sort((a, b) => a.at - b.at || a.x - b.x);
      for (const [index, { at, x }] of seen.entries()) {
        const before = seen[index - 1];
        if (before !== undefined && before.at < at) expect(x).toBeGreaterThan(before.x);
      }
    });
  });

  it("keeps arrivals in their order, and as far apart as their names are wide", () => {
    forAll((drawn) => {
      const xs = layout(drawn).stories.map(({ x }) => x);
      for (const [index, x] of xs.slice(1).entries()) expect(x - (xs[index] ?? 0)).toBeGreaterThanOrEqual(88 - 1e-6);
    });
  });

  it("lets no bar touch another of its row, and no waiting another's words", () => {
    forAll((drawn) => {
      const { stories, bands } = layout(drawn);
      expectApart(stories.flatMap(({ y, bars }) => bars.map(({ x1, x2 }) => ({ y, x1, x2 }))));
      expectApart(bands);
      for (const { x1, x2, text } of bands) expect(x2 - x1).toBeGreaterThanOrEqual(8 + widthOf(text));
    });
  });

  it("lets no time at the axis touch another, and gives each pause room for its length", () => {
    forAll((drawn, room) => {
      const { ticks, pauses, now } = layout(drawn, room);
      const words = [...ticks, ...(now === null ? [] : [{ x: now, text: "now" }])];
      expectApart(
        words.map(({ x, text }) => ({ y: 0, x1: x - smallWidthOf(text) / 2, x2: x + smallWidthOf(text) / 2 })),
      );
      for (const { x1, x2, ms } of pauses) expect(x2 - x1).toBeGreaterThanOrEqual(smallWidthOf(pauseText(ms)));
    });
  });

  it("keeps names, marks and what is beside them apart, however long they are", () => {
    forAll((drawn) => {
      const { stories } = layout(drawn);
      const names = stories.map(({ name, flags, x }) => {
        const half = Math.max(widthOf(name), widthOf(flags)) / 2;
        return { y: 0, x1: x - half, x2: x + half };
      });
      expectApart(names);
      expect(names[0]?.x1).toBeGreaterThanOrEqual(0);
      expectApart(
        stories.map(({ event, x }) => {
          const half = halfOf(event);
          return { y: 0, x1: x - half - (event.conflict ? 15 : 0), x2: x + half + widthOf(repeatsOf(event)) };
        }),
      );
    });
  });

  it("uses the room that it is given", () => {
    const [first, , third] = [1_000, 12_000, 900_000].map((acceptedAt, index) => event({ id: index + 1, acceptedAt }));
    const story = drawing([first ?? event(), third ?? event()]);
    for (const room of [700, 1_000, 1_400]) {
      const { width } = layout(story, room);
      expect(width).toBeLessThanOrEqual(room);
      expect(width).toBeGreaterThan(room - 20);
    }
  });

  it("begins what begins at one moment at one place", () => {
    const held = { reason: "gap" as const, from: 2, to: 2, since: 3_000, until: 4_000 };
    const waited = event({ id: 3, acceptedAt: 3_000, startedAt: 4_000, held });
    const gap = { from: 2, to: 2, since: 3_000, until: 4_000, skipped: true, filledAt: null };
    const { bands, stories } = layout({ ...drawing([waited]), gaps: [gap] });
    expect(bands.map(({ x2 }) => x2)).toEqual(stories.map(({ bars: [bar] }) => bar?.x1));
  });

  it("makes a bar wide enough for its words, however short the handling was", () => {
    forAll((drawn) => {
      const bars = layout(drawn).stories.flatMap((story) => story.bars);
      for (const { x1, x2, text } of bars) expect(x2 - x1).toBeGreaterThanOrEqual(24 + widthOf(text));
    });
  });

  it("stays inside its size, and inside the room it is given where that is enough", () => {
    forAll((drawn, room) => {
      const placed = layout(drawn, room);
      const xs = [
        ...placed.stories.flatMap(({ x, bars }) => [x - 44, x + 44, ...bars.flatMap(({ x1, x2 }) => [x1, x2])]),
        ...placed.bands.flatMap(({ x1, x2, text }) => [x1, x2, x1 + 8 + widthOf(text)]),
        ...placed.pauses.flatMap(({ x1, x2 }) => [x1, x2]),
        ...placed.ticks.map(({ x }) => x),
      ];
      for (const x of xs) {
        expect(x).toBeGreaterThanOrEqual(0);
        expect(x).toBeLessThanOrEqual(placed.width);
      }
      for (const { y } of placed.stories) expect(y + ROWS.bar).toBeLessThanOrEqual(placed.height);
      expect(placed.width).toBeLessThanOrEqual(Math.max(room, layout(drawn).width) + 1e-6);
    });
  });

  it("draws a retried event as its attempts, and how it ended", () => {
    const attempts = [2_000, 9_000].map((ms, index) => failure(index + 1, ms));
    const retried = event({ startedAt: 1_900, finishedAt: 60_000, attempts, attemptCount: 3 });
    const [story] = layout(drawing([retried])).stories;
    expect(story?.bars.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
      "failed: 1 ECONNREFUSED",
      "failed: 1 ECONNREFUSED",
      "handled: 1 handled",
    ]);
  });

  it("draws a dead letter's last attempt as the dead letter", () => {
    const attempts = [failure(1, 2_000), failure(2, 9_000)];
    const dead = event({ state: "dead", outcome: null, startedAt: 1_900, finishedAt: 9_000, attempts });
    const [story] = layout(drawing([dead])).stories;
    expect(story?.bars.map(({ kind }) => kind)).toEqual(["failed", "dead"]);
  });

  it("draws one band for several events that wait for the same", () => {
    const held = { reason: "gap" as const, from: 2, to: 2, until: 5_000 };
    const waited = [3, 4].map((sequence) =>
      event({ id: sequence, sequence, acceptedAt: sequence * 1_000, held: { ...held, since: sequence * 1_000 } }),
    );
    const gap = { from: 2, to: 2, since: 3_000, until: 5_000, skipped: true, filledAt: null };
    const { bands } = layout({ ...drawing(waited), gaps: [gap] });
    expect(bands.map(({ text, kind }) => [text, kind])).toEqual([["3, 4 waited 2 s for 2: skipped", "skipped"]]);
  });

  it("says that a gap was skipped, though another gap of the same wait was filled (RCV-7)", () => {
    const gap = { since: 3_000, until: 5_000 };
    const filled = { ...gap, from: 2, to: 2, skipped: false, filledAt: 5_000 };
    const givenUp = { ...gap, from: 2, to: 3, skipped: true, filledAt: null };
    for (const gaps of [
      [filled, givenUp],
      [givenUp, filled],
    ]) {
      const held = { reason: "gap" as const, from: 2, to: 3, since: 3_000, until: 5_000 };
      const { bands } = layout({ ...drawing([event({ id: 4, sequence: 4, acceptedAt: 3_000, held })]), gaps });
      expect(bands.map(({ text, kind }) => [text, kind])).toEqual([["4 waited 2 s for 2–3: skipped", "skipped"]]);
    }
  });

  it("names several events that waited in line", () => {
    const held = { reason: "turn" as const, from: 1, to: 1, since: 3_000, until: 63_000 };
    const waited = [2, 3].map((sequence) => event({ id: sequence, sequence, acceptedAt: 3_000, held }));
    expect(layout({ ...drawing(waited), now: 90_000 }).bands.map(({ text }) => text)).toEqual([
      "2, 3 waited 1 min in line",
    ]);
  });

  it("marks what goes on by a line for now, and nothing else", () => {
    expect(layout(drawing([event()])).now).toBeNull();
    expect(layout(drawing([event({ state: "pending", outcome: null, finishedAt: null })])).now).not.toBeNull();
  });

  it("puts bars that lie in each other's time into rows of their own", () => {
    const replayed = event({ id: 1, replayed: true, startedAt: 1_000, finishedAt: 90_000 });
    const between = event({ id: 2, sequence: 2, acceptedAt: 20_000, startedAt: 20_000, finishedAt: 20_010 });
    const [first, second] = layout(drawing([replayed, between])).stories;
    expect(second?.y).toBeGreaterThan(first?.y ?? Infinity);
  });
});

describe("place()", () => {
  it("marks a long pause with its length, gives it little room, and marks no short one", () => {
    const { xs, pauses } = place([{ at: 0 }, { at: 100 }, { at: 100 + 14 * 60_000 }]);
    expect(pauses).toEqual([{ x1: xs[1], x2: xs[2], ms: 14 * 60_000 }]);
    expect((xs[2] ?? 0) - (xs[1] ?? 0)).toBeLessThan(130);
    expect(place([{ at: 0 }, { at: PAUSE_MS - 1 }]).pauses).toEqual([]);
  });

  it("gives the longer of two pauses more room", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 1, max: 1e9 }), (a, b) => {
        const [, x = 0, y = 0] = place([{ at: 0 }, { at: a }, { at: a + b }]).xs;
        expect(Math.sign(y - x - x)).toBe(Math.sign(b - a));
      }),
    );
  });
});

/** Of a text of the drawing, at least. */
function widthOf(text: string): number {
  return text.length * 7;
}

/** Of a time at the axis. */
function smallWidthOf(text: string): number {
  return text.length * 6.5;
}

function failure(attempt: number, at: number) {
  return { attempt, at, durationMs: 50, errorCode: "ECONNREFUSED", error: "connect ECONNREFUSED" };
}

/** Spans of one height do not overlap. */
function expectApart(spans: readonly { readonly y: number; readonly x1: number; readonly x2: number }[]): void {
  const sorted = [...spans].sort((a, b) => a.y - b.y || a.x1 - b.x1);
  for (const [index, span] of sorted.entries()) {
    expect(span.x2).toBeGreaterThanOrEqual(span.x1);
    const before = sorted[index - 1];
    if (before?.y === span.y) expect(span.x1).toBeGreaterThanOrEqual(before.x2 - 1e-6);
  }
}

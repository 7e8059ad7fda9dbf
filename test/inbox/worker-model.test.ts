/** Whatever comes in whatever order: in the end everything was handled, in order, and nobody waits for ever. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PermanentError, RetryAfter } from "../../src/errors.ts";
import type { EventId, LaneId } from "../../src/inbox/record.ts";
import { sized } from "../setup/form.ts";
import { type Bench, openBench, rounds } from "./bench.ts";

type Step =
  | { readonly do: "accept"; readonly lane: number; readonly sequence: number }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "failTurns"; readonly count: number }
  | { readonly do: "failExtends"; readonly count: number }
  | { readonly do: "drain"; readonly limit: number; readonly budgetMs: number }
  | { readonly do: "drive"; readonly which: number }
  | { readonly do: "start" | "pause" | "resume" | "wait" | "loseAnswer" };

type Manner = "returns" | "resolves" | "throws" | "rejects" | "permanent" | "soon" | "hangs" | "takesLong";

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("accept" as const), lane: fc.nat(5), sequence: fc.nat(4) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.constantFrom(0, 1, 50, 999, 5_000, 31_000, 90_000, 3_600_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("failTurns" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("failExtends" as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("drain" as const),
      limit: fc.constantFrom(1, 2, 1_000),
      budgetMs: fc.constantFrom(1, 500, 1e9),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("drive" as const), which: fc.nat(30) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "start" as const,
        "pause" as const,
        "resume" as const,
        "wait" as const,
        "loseAnswer" as const,
      ),
    }),
  },
);
const manner: fc.Arbitrary<Manner> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<Manner>("returns", "resolves") },
  { weight: 3, arbitrary: fc.constantFrom<Manner>("throws", "rejects", "soon", "takesLong") },
  { weight: 1, arbitrary: fc.constantFrom<Manner>("permanent", "hangs") },
);

class World {
  readonly bench: Bench;
  readonly #manners: readonly Manner[];
  readonly #handedOut = new Map<string, number>();
  readonly #running = new Map<string, number>();
  readonly violations: string[] = [];
  #calls = 0;
  /** From here on every handler returns. */
  isHealed = false;
  drainsOpen = 0;
  readonly accepted: { lane: LaneId; event: EventId }[] = [];
  /** Events that a request waits for; each must come to an end or be told that it is not due. */
  readonly driven = new Map<EventId, number>();

  constructor(bench: Bench, manners: readonly Manner[]) {
    this.bench = bench;
    this.#manners = manners;
  }

  handle(lane: string, sequence: number, isFlagged: boolean): unknown {
    if (!isFlagged && sequence < (this.#handedOut.get(lane) ?? 0))
      this.violations.push(`${lane} went down to ${sequence}`);
    if (!isFlagged) this.#handedOut.set(lane, sequence);
    const manner = this.isHealed ? "returns" : (this.#manners[this.#calls++ % this.#manners.length] ?? "returns");
    if (manner === "hangs") return new Promise(() => {});
    if (manner === "throws") throw new Error("it throws");
    if (manner === "permanent") throw new PermanentError("never");
    if (manner === "soon") throw new RetryAfter(0);
    if (manner === "rejects") return Promise.reject(new Error("it rejects"));
    if (manner === "returns") return undefined;
    return this.#takeTime(lane, manner === "takesLong" ? 20_000 : 10);
  }

  async #takeTime(lane: string, ms: number): Promise<void> {
    const running = (this.#running.get(lane) ?? 0) + 1;
    this.#running.set(lane, running);
    if (running > 1) this.violations.push(`${lane} runs twice`);
    await new Promise<void>((resolve) => this.bench.clock.setTimeout(resolve, ms));
    this.#running.set(lane, (this.#running.get(lane) ?? 1) - 1);
  }

  async run(step: Step): Promise<void> {
    const { worker, clock, recorder } = this.bench;
    switch (step.do) {
      case "accept":
        void this.bench.accept(`m${step.lane}`, step.sequence).then(
          (acceptance) => {
            if (acceptance.outcome !== "failed") this.accepted.push(acceptance);
          },
          () => {},
        );
        return;
      case "advance":
        return clock.advance(step.ms);
      case "failTurns":
        recorder.failNextTurns += step.count;
        return;
      case "failExtends":
        recorder.failExtends += step.count;
        return;
      case "drain":
        this.drainsOpen++;
        void worker
          .drain({ limit: step.limit, budgetMs: step.budgetMs })
          .catch(() => {})
          .then(() => this.drainsOpen--);
        return;
      case "drive":
        return this.#drive(this.accepted[step.which % Math.max(1, this.accepted.length)]);
      case "loseAnswer":
        recorder.failAfterCommit += 1;
        return;
      case "wait":
        return rounds(3);
      default:
        return worker[step.do]();
    }
  }

  #drive(accepted: { lane: LaneId; event: EventId } | undefined): void {
    if (accepted === undefined) return;
    const { event, lane } = accepted;
    const endings = this.bench.endings.filter(([ended]) => ended === event).length;
    this.driven.set(event, endings);
    this.bench.worker.claimOnDemand(lane, event, () => this.driven.delete(event));
  }

  /** No more faults, and time enough for every retry and every gap. */
  async heal(): Promise<void> {
    this.isHealed = true;
    const { worker, recorder, clock } = this.bench;
    Object.assign(recorder, { failNextTurns: 0, failExtends: 0, failAfterCommit: 0 });
    worker.resume();
    worker.start();
    for (let hour = 0; hour < 30; hour++) await clock.advance(3_600_000);
  }
}

async function world(manners: readonly Manner[]): Promise<World> {
  let made: World | null = null;
  const bench = await openBench({
    register: (on) => {
      on.onAny((_, ctx) => {
        const { lane } = ctx.meta;
        const sequence = Number(JSON.parse(Buffer.from(ctx.rawBody).toString()).sequence);
        return made?.handle(`${lane}`, sequence, ctx.replay || ctx.outOfOrder);
      });
      on.onLate(() => {});
    },
    ...{ worker: { concurrency: 2 }, handlerTimeoutMs: 60_000 },
  });
  made = new World(bench, manners);
  return made;
}

describe("any course of events", () => {
  it("ends with every event finished, in order, and nobody waiting (I3, I4, I5, I7, I10)", async () => {
    const course = fc.tuple(
      fc.array(step, { maxLength: 80, size: "max" }),
      fc.array(manner, { minLength: 1, maxLength: 8, size: "max" }),
    );
    const check = async ([steps, manners]: [Step[], Manner[]]) => {
      const of = await world(manners);
      for (const one of steps) await of.run(one);
      await of.heal();
      expect(of.violations).toEqual([]);
      expect(of.drainsOpen).toBe(0);
      for (const event of await of.bench.events()) {
        expect(event.state, `event ${event.id}`).not.toBe("pending");
        expect(event.attempts).toBeLessThanOrEqual(12);
      }
      for (const [event, before] of of.driven) {
        expect(of.bench.endings.filter(([ended]) => ended === event).length).toBeGreaterThan(before);
      }
      expect(await of.bench.recorder.store.nextDue()).toBeNull();
    };
    await fc.assert(fc.asyncProperty(course, check), {
      numRuns: sized({ quick: 40, full: 150 }),
      interruptAfterTimeLimit: 25_000,
      markInterruptAsFailure: true,
    });
  });
});

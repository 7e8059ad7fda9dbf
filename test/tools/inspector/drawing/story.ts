/** A message in a real store, whose story a test tells step by step; each step takes a second, or no time at all. */
import { onTestFinished } from "vitest";
import type { LaneRecord, NewEvent, OnDead, Outcome } from "../../../../src/inbox/record.ts";
import type { Act, InboxStore, Lease, Settle } from "../../../../src/inbox/store.ts";
import { memoryStore } from "../../../../src/stores/memory.ts";
import type { Drawing } from "../../../../src/tools/inspector/api.ts";
import { drawLane } from "../../../../src/tools/inspector/drawing.ts";
import { createFakeClock, type FakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { contextOf, event, turn } from "../../../stores/sqlite-turns.ts";

export const GAP_WAIT_MS = 90_000;

const TYPES = ["message.accepted", "message.queued", "message.sent", "message.delivery", "message.failed"];

/** How a handler's run ends. */
export type RunEnd = Exclude<Outcome, "filtered"> | "retry" | "dead" | "block" | "release";

export interface Story {
  readonly clock: FakeClock;
  /** When second `n` of the story is. */
  at(n: number): number;
  /** A delivery comes. */
  accept(sequence: number, wish?: Partial<NewEvent>): Promise<void>;
  /** Handles the due event, which takes a second. Returns its sequence; null if no event is due. */
  run(end?: RunEnd): Promise<number | null>;
  act(act: Act): Promise<void>;
  lane(): Promise<LaneRecord>;
  draw(): Promise<Drawing>;
}

export interface StoryOptions {
  /** Whether a handler takes late events. Default false: they are only recorded. */
  readonly takesLate?: boolean;
  readonly stepMs?: number;
}

export async function openStory({ takesLate = false, stepMs = 1_000 }: StoryOptions = {}): Promise<Story> {
  const clock = createFakeClock();
  const began = clock.now();
  const store: InboxStore<never> = memoryStore({ volatile: true });
  await store.open(contextOf({ clock }));
  onTestFinished(() => store.close());
  const lane = async () => {
    const found = await store.lane(1);
    if (found === null) throw new Error("Nothing has come yet.");
    return found;
  };
  return {
    clock,
    at: (n) => began + n * 1_000,
    async accept(sequence, wish = {}) {
      const facts = { eventType: TYPES[sequence] ?? `message.step${sequence}`, gapWaitMs: GAP_WAIT_MS };
      const times = { occurredAt: clock.now(), signedAt: clock.now() };
      const accepts = [event("msg_1", sequence, { ...facts, ...times, ...wish })];
      const { accepted } = await store.step(turn<never>({ accepts }));
      const [answer] = accepted;
      if (answer?.outcome === "late" && !takesLate)
        await store.step(turn<never>({ claim: { limit: 1, lane: answer.lane, takes: (_lane, _type, late) => !late } }));
      await clock.advance(stepMs);
    },
    async run(end = "handled") {
      const claimed = await store.step(turn<never>({ claim: { limit: 1 } }));
      await clock.advance(stepMs);
      const [lease] = claimed.leases;
      if (lease === undefined) return null;
      await store.step(turn<never>({ settles: [settleOf(lease, end)] }));
      return lease.sequence;
    },
    async act(act) {
      const result = await store.act(act, "ann");
      if (!result.ok) throw new Error(result.reason);
      await clock.advance(stepMs);
    },
    lane,
    draw: async () => drawLane(await lane(), clock.now()),
  };
}

function settleOf(lease: Lease, end: RunEnd): Settle<never> {
  const failure = { code: "ECONNREFUSED", message: "No route", durationMs: 1_000 };
  const onDead: OnDead = end === "block" ? "block" : "continue";
  if (end === "handled" || end === "unhandled") return { kind: "complete", lease, outcome: end, effects: [] };
  if (end === "retry") return { kind: "retry", lease, delayMs: 10_000, failure };
  return end === "release"
    ? { kind: "release", lease, delayMs: 0, ran: false }
    : { kind: "dead", lease, failure, onDead };
}

/** The fault rule: after any failure, a retry of the same delivery ends with exactly one handled event. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/index.ts";
import { type Bench, type BenchOptions, idleTurns, MINUTE, memoryBench, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const DELIVERIES = [outbound("queued"), outbound("sent"), outbound("delivery"), inbound()];
/** A service retries at 1, 6, 21 and 81 minutes; here it is more patient: six attempts under faults, then those that mend. */
const FAULTY_ATTEMPTS = 6;
const MOST_ATTEMPTS = 24;

/** Small, and the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type Fault = (bench: Bench<unknown>, handlers: { fail: number }) => void;

const FAULTS: readonly Fault[] = [
  () => {},
  () => {},
  ({ store }) => {
    store.faults.step = new StoreError("store_unavailable", "down");
  },
  ({ store }) => {
    store.faults.afterStep = new Error("committed, and the answer lost");
  },
  ({ store }) => {
    store.faults.open = new StoreError("store_unavailable", "down");
  },
  (_, handlers) => {
    handlers.fail = 1;
  },
  (_, handlers) => {
    handlers.fail = 2;
  },
];

/** Delivers everything in a random order under random faults, again and again until each had its 2xx. */
async function storm(bench: Bench<unknown>, random: () => number, worker: boolean) {
  const handlers = { fail: 0 };
  const handled: string[] = [];
  bench.receiver.onAny(async (event) => {
    await idleTurns(1);
    if (handlers.fail-- > 0) throw new Error("The handler fails.");
    handled.push(event.eventType);
  });
  if (worker) await bench.receiver.start();
  let open = DELIVERIES.map((text) => ({ text, key: random() }));
  for (let attempt = 0; attempt < MOST_ATTEMPTS && open.length > 0; attempt++) {
    if (attempt < FAULTY_ATTEMPTS) FAULTS[Math.floor(random() * FAULTS.length)]?.(bench, handlers);
    open = open.toSorted((a, b) => a.key - b.key);
    const answers = Promise.all(open.map(({ text }) => bench.deliver(text)));
    await bench.clock.advance(9_000);
    const statuses = (await answers).map(({ status }) => status);
    for (const status of statuses) expect([200, 503]).toContain(status);
    open = open.filter((_, index) => statuses[index] !== 200).map(({ text }) => ({ text, key: random() }));
    bench.store.faults.clear();
    await bench.clock.advance(MINUTE);
  }
  expect(open).toEqual([]);
  if (!worker) await bench.receiver.drain();
  await bench.clock.advance(MINUTE);
  return handled;
}

const modes = [
  ["memory", "handled", true],
  ["memory", "handled", false],
  ["SQLite", "stored", true],
  ["SQLite", "handled", false],
] as const;

describe.each(modes)("fault rule on %s, ack: %s, worker %s", (kind, ack, worker) => {
  const make = (options: BenchOptions<never>) =>
    (kind === "memory" ? memoryBench(options) : sqliteBench(options as object)) as unknown as Bench<unknown>;

  it.each(Array.from({ length: kind === "memory" ? 25 : 6 }, (_, index) => index + 1))(
    "handles each event once, in order, after storm %d (RCV-4, RCV-6, RCV-7)",
    async (seed) => {
      const bench = make({ ack });
      const handled = await storm(bench, randomFrom(seed * 7_919), worker);
      expect(handled.toSorted()).toEqual(DELIVERIES.map((text) => JSON.parse(text).eventType).toSorted());
      const ordered = handled.filter((type) => type !== "message.inbound");
      expect(ordered).toEqual(["message.queued", "message.sent", "message.delivery"]);
      const { gauges, counters } = await bench.receiver.inbox.stats();
      expect([gauges.pending, gauges.dead, counters.accepted, counters.handled]).toEqual([0, 0, 4, 4]);
    },
  );
});

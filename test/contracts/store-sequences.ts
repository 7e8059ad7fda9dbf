/** The store contract on lanes by sequence of several entries: each goes by the rules of its own entry. */
import { copyOpen } from "../../src/inbox/copy.ts";
import type { LaneRecord } from "../../src/inbox/record.ts";
import { DEFAULT_SEQUENCE_RULES } from "../../src/inbox/sequence-rules.ts";
import type { EntryPreset, SequenceRules } from "../../src/inbox/store.ts";
import { type Bench, type ContractCase, it, needing } from "./store-bench.ts";
import { beside } from "./store-copy.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Longer than any provider retries here. */
const gapWaitMs = 24 * HOUR;

function entryOf(name: string, sequence: SequenceRules | null): EntryPreset {
  return { name, preset: "acme", shows: [], sequence };
}

const FROM_1 = entryOf("a", { firstSequence: 1, lastRetryMs: 85 * MINUTE });
const FROM_0 = entryOf("b", { firstSequence: 0, lastRetryMs: 10 * MINUTE });
const FROM_ANY = entryOf("c", { firstSequence: "any", lastRetryMs: 10 * MINUTE });
const ENTRIES = [FROM_1, FROM_0, FROM_ANY];

let lanes = 0;

/** The lane of an event that comes first into it. */
async function laneWith(bench: Bench, source: string, sequence: number, filtered?: true) {
  const name = `lane ${++lanes}`;
  const wish = filtered && { filtered };
  await bench.accept(bench.of(name, sequence, { lane: { source }, gapWaitMs, ...wish }));
  return bench.lane(name, { source });
}

/** A lane of the entry begins with `firstSequence`, and waits for it until the last retry. */
async function goesBy(bench: Bench, source: string, { firstSequence, lastRetryMs }: SequenceRules): Promise<void> {
  const first = firstSequence === "any" ? 7 : firstSequence;
  bench.expect(await laneWith(bench, source, first)).toMatchObject({ status: "ready" });
  const next = await laneWith(bench, source, first + 1);
  const readyAt = bench.clock.now() + lastRetryMs;
  bench.expect(next).toMatchObject(firstSequence === "any" ? { status: "ready" } : { status: "gap", readyAt });
}

async function goByTheirOwn(bench: Bench): Promise<void> {
  for (const { name, sequence } of ENTRIES) await goesBy(bench, name, sequence ?? DEFAULT_SEQUENCE_RULES);
}

/** The sources of the lanes that are due. */
async function dueSources(bench: Bench): Promise<readonly string[]> {
  return (await bench.claim()).map(({ key }) => key.source);
}

interface FirstMeeting {
  readonly what: string;
  /** Of the event that another process has accepted into a lane. */
  readonly sequence: number;
  meet(bench: Bench, lane: LaneRecord): Promise<void>;
}

/** What a process does first with a lane of an entry that it has not read. The default rules would decide otherwise. */
const FIRST_MEETINGS: readonly FirstMeeting[] = [
  {
    what: "it accepts an event",
    sequence: 2,
    async meet(bench) {
      bench.expect(await laneWith(bench, FROM_0.name, 1)).toMatchObject({ status: "gap" });
    },
  },
  {
    what: "it claims",
    sequence: 2,
    async meet(bench, { id }) {
      await bench.clock.advance(10 * MINUTE);
      bench.expect(await bench.claim({ lane: id })).toMatchObject([{ sequence: 2, missing: { from: 0, to: 1 } }]);
    },
  },
  {
    what: "an operator acts",
    sequence: 0,
    async meet(bench, { id, events }) {
      await bench.act({ kind: "discard", event: bench.only(events).id });
      bench.expect(await bench.store.lane(id)).toMatchObject({ cursor: 0 });
    },
  },
];

export const sequenceCases: readonly ContractCase[] = [
  it("judges a lane's first event by the rules of its own entry", async (bench) => {
    await bench.store.admit(ENTRIES);
    await goByTheirOwn(bench);
    await bench.accept(bench.of("far", 3, { lane: { source: FROM_ANY.name }, gapWaitMs }));
    const far = (await bench.claim()).filter(({ key }) => key.name === "far");
    bench.expect(far).toMatchObject([{ sequence: 3, missing: null }]);
  }),
  it("lets the cursor pass what nobody handles where its own entry expects it", async (bench) => {
    await bench.store.admit(ENTRIES);
    bench.expect(await laneWith(bench, FROM_0.name, 0, true)).toMatchObject({ cursor: 0 });
    bench.expect(await laneWith(bench, FROM_1.name, 1, true)).toMatchObject({ cursor: 1 });
    for (const [{ name }, sequence] of [[FROM_1, 0] as const, [FROM_0, 1] as const, [FROM_ANY, 1] as const])
      bench.expect(await laneWith(bench, name, sequence, true)).toMatchObject({ cursor: null });
  }),
  it("ends the wait for a missing event at the last retry of its own entry (I6)", async (bench) => {
    await bench.store.admit(ENTRIES);
    await laneWith(bench, FROM_1.name, 2);
    await laneWith(bench, FROM_0.name, 1);
    await bench.clock.advance(10 * MINUTE - 1);
    bench.expect(await dueSources(bench)).toEqual([]);
    await bench.clock.advance(1);
    const [lease] = await bench.claim();
    bench.expect(lease).toMatchObject({ key: { source: FROM_0.name }, missing: { from: 0, to: 0 } });
    await bench.clock.advance(75 * MINUTE - 1);
    bench.expect(await dueSources(bench)).toEqual([]);
    await bench.clock.advance(1);
    bench.expect(await dueSources(bench)).toEqual([FROM_1.name]);
  }),
  it("gives an entry without rules the default ones, recorded or not", async (bench) => {
    await bench.store.admit([entryOf("unordered", null)]);
    bench.expect(DEFAULT_SEQUENCE_RULES).toEqual({ firstSequence: 1, lastRetryMs: 85 * MINUTE });
    for (const source of ["unordered", "nobody"]) await goesBy(bench, source, DEFAULT_SEQUENCE_RULES);
  }),
  it("goes by the rules that were recorded last", async (bench) => {
    await bench.store.admit(ENTRIES);
    await goByTheirOwn(bench);
    const sequence = { firstSequence: 3, lastRetryMs: 7 * MINUTE };
    await bench.store.admit([{ ...FROM_0, sequence }]);
    await goesBy(bench, FROM_0.name, sequence);
    await goesBy(bench, FROM_1.name, FROM_1.sequence ?? DEFAULT_SEQUENCE_RULES);
  }),
  ...needing("durable", [
    it("keeps the rules of entries when it is opened again", async (bench) => {
      await bench.store.admit(ENTRIES);
      await bench.store.close();
      bench.store = await bench.second();
      await bench.open(bench.store, { rules: "recorded" });
      await goByTheirOwn(bench);
      bench.expect(await bench.store.admit([])).toEqual([...ENTRIES, bench.entry]);
    }),
  ]),
  ...needing(
    "shared",
    FIRST_MEETINGS.map(({ what, sequence, meet }) =>
      it<Bench>(`goes by the rules that another process has recorded since it was opened, when ${what}`, async (bench) => {
        const other = await bench.another();
        await bench.store.admit([FROM_0]);
        const lane = await laneWith(bench, FROM_0.name, sequence);
        bench.store = other;
        await meet(bench, lane);
      }),
    ),
  ),
  it("takes the rules of entries along in a copy", async (bench) => {
    const other = await beside(bench);
    await other.store.admit(ENTRIES);
    const { id } = await laneWith(other, FROM_0.name, 1);
    await copyOpen({ from: other.store, to: bench.store }, bench.clock);
    await goByTheirOwn(bench);
    await bench.clock.advance(10 * MINUTE);
    bench.expect(await bench.claim({ lane: id })).toMatchObject([{ missing: { from: 0, to: 0 } }]);
  }),
  it("gives the rules of its entries to a copy", async (bench) => {
    const other = await beside(bench);
    await bench.store.admit(ENTRIES);
    await copyOpen({ from: bench.store, to: other.store }, bench.clock);
    await goByTheirOwn(other);
  }),
];

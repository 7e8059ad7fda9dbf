/** What became of the events, by the inbox's file and by the handlers' own logs. */
import { readFileSync } from "node:fs";
import type { Family } from "./family.ts";

/** One run of a handler; `endedAt` is null when its process died in it. */
export interface Run {
  readonly startedAt: bigint;
  endedAt: bigint | null;
  readonly lane: number;
  readonly sequence: number;
  readonly event: number;
  readonly attempt: number;
  readonly outOfOrder: boolean;
}

/** All runs of all processes, by their start. */
export function runsOf(family: Pick<Family, "logs">): Run[] {
  return family.logs.flatMap(readRuns).sort((a, b) => Number(a.startedAt - b.startedAt));
}

function readRuns(log: string): Run[] {
  const open = new Map<string, Run>();
  const runs: Run[] = [];
  for (const line of linesOf(log)) {
    const [mark, at = "", lane, sequence, event, attempt, outOfOrder] = line.split(" ");
    const key = `${event} ${attempt}`;
    if (mark === "S") {
      const run: Run = {
        ...{ startedAt: BigInt(at), endedAt: null, lane: Number(lane), sequence: Number(sequence) },
        ...{ event: Number(event), attempt: Number(attempt), outOfOrder: outOfOrder === "1" },
      };
      open.set(key, run);
      runs.push(run);
    } else {
      const run = open.get(key);
      if (run !== undefined) run.endedAt = BigInt(at);
    }
  }
  return runs;
}

function linesOf(log: string): string[] {
  try {
    return readFileSync(log, "utf8").split("\n").filter(Boolean);
  } catch {
    // A process that handled nothing.
    return [];
  }
}

export const FLAWLESS = {
  /** Rows that share an identity with another (I1). */
  identitiesTwice: 0,
  /** Handled events without an effect, and events with more than one. */
  ...{ effectsMissing: 0, effectsTwice: 0 },
  /** Effects, and hand-outs, below the sequence before them in their lane (I4). */
  ...{ effectInversions: 0, handOutInversions: 0 },
  /** Handlers of one lane that ran at once (I3). */
  overlaps: 0,
  /** Pending events, and lanes that are not idle (I5, I10). */
  ...{ pending: 0, lanesNotIdle: 0 },
  /** Events whose attempts are not the number of hand-outs that handlers saw (I7). */
  attemptsMiscounted: 0,
  /** Kept counters that disagree with the rows. */
  gaugePending: 0,
  integrity: "ok",
};

export function verdictOf(family: Family): typeof FLAWLESS {
  const runs = runsOf(family);
  const count = (sql: string) => family.number(sql);
  return {
    identitiesTwice: count(`select count(*) from (select 1 from oncehook_event e join oncehook_lane l on l.id = e.lane
      group by l.client, l.tag, l.message, e.seq, e.kind having count(*) > 1)`),
    effectsMissing: count(
      "select count(*) from oncehook_event where state = 1 and outcome = 1 and id not in (select event from handled)",
    ),
    effectsTwice: count("select count(*) - count(distinct message || ' ' || sequence) from handled"),
    effectInversions: count(
      `select count(*) from (select sequence, lag(sequence) over (partition by message order by id) as earlier
       from handled where late = 0) where sequence < earlier`,
    ),
    handOutInversions: inversionsIn(runs),
    overlaps: overlapsIn(runs),
    pending: count("select count(*) from oncehook_event where state = 0"),
    lanesNotIdle: count("select count(*) from oncehook_lane where status <> 0"),
    attemptsMiscounted: miscountedIn(family, runs),
    gaugePending: count("select value from oncehook_counter where name = 'pending'"),
    integrity: String(family.db.pragma("integrity_check", { simple: true })),
  };
}

function byLane(runs: readonly Run[]): Run[][] {
  const lanes = new Map<number, Run[]>();
  for (const run of runs) lanes.set(run.lane, [...(lanes.get(run.lane) ?? []), run]);
  return [...lanes.values()];
}

export function inversionsIn(runs: readonly Run[]): number {
  let inversions = 0;
  for (const lane of byLane(runs.filter(({ outOfOrder }) => !outOfOrder))) {
    for (const [index, run] of lane.entries()) if (run.sequence < (lane[index - 1]?.sequence ?? 0)) inversions += 1;
  }
  return inversions;
}

/** A run without an end ended with its process, before anybody else could have its lane. */
export function overlapsIn(runs: readonly Run[]): number {
  let overlaps = 0;
  for (const lane of byLane(runs)) {
    for (const [index, run] of lane.entries()) {
      const before = lane[index - 1];
      if (before?.endedAt != null && before.endedAt > run.startedAt) overlaps += 1;
    }
  }
  return overlaps;
}

function miscountedIn(family: Family, runs: readonly Run[]): number {
  const handOuts = new Map<number, number>();
  for (const { event } of runs) handOuts.set(event, (handOuts.get(event) ?? 0) + 1);
  const rows = family.db.prepare("select id, attempts from oncehook_event").all() as { id: number; attempts: number }[];
  return rows.filter(({ id, attempts }) => (handOuts.get(id) ?? 0) !== attempts).length;
}

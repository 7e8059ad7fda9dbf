/** What looks remember for each other: when a worker ran, and how many deliveries were refused. */
import { describe, expect, it } from "vitest";
import type { InstanceRecord } from "../../src/index.ts";
import { type AlertMemory, alertValue, remembered } from "../../src/receiver/alerts.ts";

const MINUTE = 60_000;
const LIMITS = { refusedShare: 0.5, workerMissing: MINUTE };
const STATS = {
  gauges: { pending: 0, dead: 0, quarantined: 0, quarantinedBytes: 0, blockedLanes: 0 },
  oldestPendingAt: null,
};
const NOTHING = {
  ...{ accepted: 0, duplicates: 0, conflicts: 0, handled: 0, unhandled: 0, filtered: 0, retried: 0, deadLettered: 0 },
  ...{ discarded: 0, gapsSkipped: 0, quarantined: 0 },
};

interface Look {
  readonly now: number;
  readonly processes?: readonly InstanceRecord[];
  readonly workerIdleMs?: number | null;
  /** The inbox's count of late events. */
  readonly late?: number;
}

const facts = ({ now, processes = [], workerIdleMs = null, late = 0 }: Look) => ({
  ...{ stats: { ...STATS, instances: processes, counters: { ...NOTHING, late } }, now, workerIdleMs },
});

function memoryAfter(...looks: readonly Look[]): AlertMemory {
  return looks.reduce<AlertMemory>((memory, look) => remembered(memory, LIMITS, facts(look)), {});
}

/** A process that has verified and refused so many deliveries. */
function process(id: string, verified: number, refused: number, seenAt = 0): InstanceRecord {
  const counters = { "slot:service:current": verified, "refused:signature_mismatch": refused, handshakes: 7 };
  return { id, host: "h", pid: 1, seenAt, keyringVersion: "1", counters };
}

const shareOf = (memory: AlertMemory, now: number) => alertValue("refusedShare", facts({ now }), memory);

describe("the time without a worker", () => {
  const missing = (memory: AlertMemory, now: number) => alertValue("workerMissing", facts({ now }), memory);

  it("begins with the first look, if no worker was seen", () => {
    expect(missing(memoryAfter({ now: 1_000 }), 5_000)).toBe(4_000);
  });

  it("is that of this process, or of any that has reported since", () => {
    const worked = { ...process("a", 0, 0, 90_000), counters: { worker_idle_ms: 10_000 } };
    expect(missing(memoryAfter({ now: 0 }, { now: 90_000, workerIdleMs: 20_000 }), 100_000)).toBe(30_000);
    expect(missing(memoryAfter({ now: 0 }, { now: 95_000, processes: [worked] }, { now: 99_000 }), 100_000)).toBe(
      20_000,
    );
  });

  it("is written every 10 s at most", () => {
    const memory = memoryAfter({ now: 0, workerIdleMs: 0 });
    expect(remembered(memory, { workerMissing: MINUTE }, facts({ now: 9_999, workerIdleMs: 0 }))).toBe(memory);
    const later = remembered(memory, { workerMissing: MINUTE }, facts({ now: 10_000, workerIdleMs: 0 }));
    expect(later.workerAt).toBe(10_000);
  });
});

describe("the events that came late", () => {
  const HOUR = 3_600_000;
  const watched = (...looks: readonly Look[]) =>
    looks.reduce<AlertMemory>((memory, look) => remembered(memory, { late: 1 }, facts(look)), {});
  const lateOf = (memory: AlertMemory, now: number) => alertValue("late", facts({ now }), memory);

  it("are those of the last hour, without those before the first look", () => {
    const memory = watched(
      { now: 0, late: 70 },
      // In one minute.
      { now: 1_000, late: 73 },
      { now: 60_999, late: 76 },
      { now: 90_000, late: 77 },
    );
    expect([90_000, HOUR + 999, HOUR + 1_001, HOUR + 90_000].map((now) => lateOf(memory, now))).toEqual([7, 7, 1, 0]);
  });

  it("are none of an inbox whose count went back", () => {
    expect(lateOf(watched({ now: 0, late: 70 }, { now: 1_000, late: 3 }, { now: 2_000, late: 5 }), 2_000)).toBe(2);
  });

  it("change nothing while the count stays", () => {
    const memory = watched({ now: 0, late: 1 });
    expect(remembered(memory, { late: 1 }, facts({ now: 9_000, late: 1 }))).toBe(memory);
  });
});

describe("the share of refused deliveries", () => {
  it("forgets deliveries after 5 minutes", () => {
    const memory = memoryAfter({ now: 0 }, { now: 10_000, processes: [process("a", 0, 30)] });
    expect(shareOf(memory, 5 * MINUTE)).toBe(1);
    expect(shareOf(memory, 5 * MINUTE + 10_000)).toBe(0);
  });

  it("counts nothing twice when a slower process has read older counts, or not seen another yet", () => {
    const memory = memoryAfter(
      { now: 0 },
      { now: 10_000, processes: [process("a", 20, 10, 9_000)] },
      { now: 10_001, processes: [process("a", 15, 5, 1_000)] },
      { now: 10_002, processes: [process("b", 10, 0, 9_000)] },
      { now: 20_000, processes: [process("a", 20, 10, 19_000), process("b", 10, 0, 19_000)] },
    );
    expect(shareOf(memory, 20_000)).toBe(0.25);
  });

  it("keeps counts of a process that is listed, however long it is silent, and drops those of one that left", () => {
    const silent = process("a", 0, 30, 0);
    const memory = memoryAfter(
      { now: 0, processes: [silent, process("gone", 5, 5, 0)] },
      { now: 60 * MINUTE, processes: [silent, process("b", 1, 0, 60 * MINUTE)] },
      { now: 60 * MINUTE + 10_000, processes: [silent] },
    );
    expect(shareOf(memory, 60 * MINUTE + 10_000)).toBe(0);
    expect(Object.keys(memory.refusals?.reported ?? {})).toEqual(["a", "b"]);
  });

  it("is nothing new, and not written, while no delivery comes", () => {
    const processes = [process("a", 3, 1)];
    const memory = memoryAfter({ now: 0, processes });
    expect(remembered(memory, { refusedShare: 1 }, facts({ now: 10_000, processes }))).toBe(memory);
  });
});

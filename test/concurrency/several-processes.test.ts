/**
 * Four processes on one file, under load and against each other: every invariant of docs/inbox.md, by the file and the handlers' logs.
 *
 * @module-tag full
 */
import { describe, expect, it } from "vitest";
import type { InboxStore, KnownEvent } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { withFamily } from "./family.ts";
import { DAY_MS, fillWithOld, goingOn, message, send, spread } from "./load.ts";
import { FLAWLESS, runsOf, verdictOf } from "./verdict.ts";

const SEED = Number(process.env.CONCURRENCY_SEED ?? 20_251_121);
const MESSAGES = 1_560;
const OLD = 120;

/** What the messages are called decides how their events fare: see child.ts. */
function messages() {
  return Array.from({ length: MESSAGES }, (_, index) => {
    const ending = index % 10 === 3 ? "failed" : "delivery";
    if (index % 26 === 5) return message(`gap-${index}`, ending);
    if (index % 50 === 7) return message(`dead-${index}`, ending);
    return message(`m-${index}`, ending);
  });
}

const isNamed = (event: KnownEvent | undefined, name: string) => event?.data.messageId.startsWith(name);

describe("four processes on one inbox", () => {
  it(
    "handle every event once in effect and in order, while deliveries repeat, handlers fail, gaps end and pruning runs (I1–I7, I10)",
    { timeout: 180_000 },
    () =>
      withFamily(async (family) => {
        await fillWithOld(sqliteStore(family.path) as InboxStore<never>, OLD);
        const children = await Promise.all(
          [1, 2, 3, 4].map((place) => family.add({ seed: SEED, failures: 0.1, prunes: place === 1 })),
        );
        const all = messages();
        const startedAt = performance.now();

        // Of every message in a gap the second event is missing at first; half of them get it when its turn is over.
        const missing = all.filter(([first]) => isNamed(first, "gap")).map((events) => events[1]!);
        const tooLate = missing.filter((_, index) => index % 2 === 0);
        const inTime = all.map((events) => events.filter((event) => !missing.includes(event)));
        const old = goingOn(OLD);
        const mixed = inTime.flatMap((events, index) => (old[index] === undefined ? [events] : [events, old[index]]));
        const first = await send(spread(mixed, children, SEED));
        await family.settled(60_000);
        const second = await send(spread([tooLate], children, SEED + 1));
        await family.settled(60_000);
        const seconds = (performance.now() - startedAt) / 1000;
        await family.stop();

        const sent = mixed.flat().length + tooLate.length;
        const counter = (name: string) => family.number("select value from oncehook_counter where name = ?", name);
        const report = {
          ...{ seed: SEED, seconds: Number(seconds.toFixed(1)), sent },
          answers: { first, second },
          handOuts: runsOf(family).length,
          retried: counter("retried"),
          gapsSkipped: counter("gaps_skipped"),
          deadLettered: counter("dead_lettered"),
          byProcess: family.db.prepare("select count(*) from handled group by pid").pluck().all(),
          oldLeft: family.number("select count(*) from oncehook_event where accepted < ?", Date.now() - 30 * DAY_MS),
        };
        console.log(` four processes: ${JSON.stringify(report)}`);

        expect(verdictOf(family)).toEqual(FLAWLESS);
        // A gap can end before the event it waited for arrives: that is what late means.
        const late = first.late + second.late;
        expect(first.accepted + second.accepted + late).toBe(sent);
        expect(counter("duplicates")).toBe(first.duplicate + second.duplicate);
        expect(counter("conflicts")).toBe(0);
        expect(second).toMatchObject({ accepted: 0, late: tooLate.length });
        expect(family.number("select count(*) from handled where late = 1")).toBe(late);
        expect(family.number("select count(*) from handled")).toBe(sent - report.deadLettered);
        expect(report.deadLettered).toBe(all.filter(([event]) => isNamed(event, "dead")).length);
        expect(report.gapsSkipped).toBeGreaterThanOrEqual(missing.length);
        expect(report.retried).toBeGreaterThan(sent / 20);
        expect(report.oldLeft).toBe(0);
        // Otherwise one process did all the work, and nothing was concurrent.
        expect(report.byProcess).toHaveLength(4);
        expect(Math.min(...(report.byProcess as number[]))).toBeGreaterThan(sent / 20);
      }),
  );
});

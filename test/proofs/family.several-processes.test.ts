/**
 * Four processes on one file, under load and against each other: every invariant of docs/inbox.md, by the file and the handlers' logs.
 *
 * @module-tag full
 */
import { describe, expect, it } from "vitest";
import { FLAWLESS, fillWithOld, send, spread, withFamily } from "./family.ts";
import { summed } from "./programme.ts";
import { HOUR_MS } from "./receiving.ts";
import { type Delivery, deliveryOf, message } from "./sender.ts";

const SEED = Number(process.env.CONCURRENCY_SEED ?? 20_251_121);
const MESSAGES = 1_560;
const OLD = 120;
const DAY_MS = 24 * 3_600_000;

/** What the messages are called decides how their events fare: see receiving.ts. */
function messages(): Delivery[][] {
  return Array.from({ length: MESSAGES }, (_, index) => {
    const name = index % 26 === 5 ? "gap" : index % 50 === 7 ? "dead" : "m";
    return message(`${name}-${index}`, index % 10 === 3 ? "failed" : "delivery").map((event) => deliveryOf(event));
  });
}

const isNamed = (delivery: Delivery | undefined, name: string) =>
  delivery !== undefined && String((delivery.event as { messageId?: unknown }).messageId).startsWith(name);

describe("four processes on one inbox", () => {
  it(
    "handle every event once in effect and in order, while deliveries repeat, handlers fail, gaps end and pruning runs (I1–I7, I10)",
    {
      timeout: 180_000,
    },
    () =>
      withFamily(async (family) => {
        await fillWithOld(family.place, OLD);
        const children = await Promise.all(
          [1, 2, 3, 4].map((at) =>
            family.add({ seed: SEED, failures: 0.1, gapWaitMs: HOUR_MS, ...(at === 1 && { upkeep: "prunes" }) }),
          ),
        );
        const all = messages();
        const startedAt = performance.now();

        // Of every message in a gap the second event is missing at first; half of them get it when its turn is over.
        const missing = all.filter(([first]) => isNamed(first, "gap")).map((events) => events[1]!);
        const tooLate = missing.filter((_, index) => index % 2 === 0);
        const inTime = all.map((events) => events.filter((event) => !missing.includes(event)));
        const old = Array.from({ length: OLD / 2 }, (_, index) =>
          message(`gap-old-${2 * index}`)
            .slice(1)
            .map((event) => deliveryOf(event)),
        );
        const mixed = inTime.flatMap((events, index) => (old[index] === undefined ? [events] : [events, old[index]]));
        const first = await send(spread(mixed, children, SEED));
        await family.settled(60_000);
        const second = await send(spread([tooLate], children, SEED + 1));
        await family.settled(60_000);
        const seconds = (performance.now() - startedAt) / 1000;
        await family.stop();

        const sent = mixed.flat().length + tooLate.length;
        const counter = (name: string) => family.number("select value from {counter} where name = ?", name);
        const effects = (await family.look.contents()).effects;
        const byProcess = summed(effects.map(({ pid }) => ({ [pid]: 1 })));
        const report = {
          ...{ seed: SEED, seconds: Number(seconds.toFixed(1)), sent },
          answers: { first, second },
          handOuts: family.runs().length,
          retried: await counter("retried"),
          gapsSkipped: await counter("gaps_skipped"),
          deadLettered: await counter("dead_lettered"),
          byProcess: Object.values(byProcess),
          oldLeft: await family.number("select count(*) from {event} where accepted < ?", Date.now() - 30 * DAY_MS),
        };
        console.log(` four processes: ${JSON.stringify(report)}`);

        expect(await family.verdict()).toEqual(FLAWLESS);
        // A gap can end before the event it waited for arrives: that is what late means.
        const late = first.late + second.late;
        expect(first.accepted + second.accepted + late).toBe(sent);
        expect(await counter("duplicates")).toBe(first.duplicate + second.duplicate);
        expect(await counter("conflicts")).toBe(0);
        expect(second).toMatchObject({ accepted: 0, late: tooLate.length });
        expect(effects.filter((effect) => effect.late)).toHaveLength(late);
        expect(effects).toHaveLength(sent - report.deadLettered);
        expect(report.deadLettered).toBe(all.filter(([event]) => isNamed(event, "dead")).length);
        expect(report.gapsSkipped).toBeGreaterThanOrEqual(missing.length);
        expect(report.retried).toBeGreaterThan(sent / 20);
        expect(report.oldLeft).toBe(0);
        // Otherwise one process did all the work, and nothing was concurrent.
        expect(report.byProcess).toHaveLength(4);
        expect(Math.min(...report.byProcess)).toBeGreaterThan(sent / 20);
      }),
  );
});

/** Small scenes between processes: the same event everywhere at once, and a process that has no worker. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { fixtures, seededRandom } from "../../src/testing/index.ts";
import { deliver, FLAWLESS, until, withFamily } from "../proofs/family.ts";

describe("the same event at several processes at once", () => {
  it("becomes one row and one effect, 20 times of 64 deliveries to four processes (I1, RCV-6)", { tags: "full" }, () =>
    withFamily(async (family) => {
      const children = await Promise.all([1, 2, 3, 4].map(() => family.add()));
      for (let index = 0; index < 20; index++) {
        const event = fixtures.queued({ messageId: `m-${index}`, occurredAt: Date.now() });
        const answers = await Promise.all(
          Array.from({ length: 64 }, (_, copy) => deliver(children[copy % 4], event, copy)),
        );
        expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 200));
        const outcomes = answers.map(({ outcome }) => outcome);
        expect(outcomes.filter((outcome) => outcome === "accepted")).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome === "duplicate")).toHaveLength(63);
      }
      await until("all are handled", async () => (await family.number("select count(*) from {effect}")) === 20);
      await family.stop();
      expect(await family.verdict()).toEqual(FLAWLESS);
      expect(await family.number("select count(*) from {event}")).toBe(20);
      expect(await family.number("select sum(duplicates) from {event}")).toBe(20 * 63);
    }),
  );
});

describe("a process without a worker", () => {
  it("has its events handled by another within a second (I5)", () =>
    withFamily(async (family) => {
      const acceptor = await family.add({ works: false });
      await family.add();
      const random = seededRandom(7);
      const waits: number[] = [];
      for (let index = 0; index < 12; index++) {
        // The other looks every 100 ms: deliveries fall anywhere in between.
        await sleep(100 * random());
        const event = fixtures.queued({ messageId: `m-${index}`, occurredAt: Date.now() });
        expect((await deliver(acceptor, event)).outcome).toBe("accepted");
        const acceptedAt = process.hrtime.bigint();
        await until("it is handled", () => family.runs().length === index + 1);
        const started = family.runs().at(-1)?.startedAt ?? 0n;
        waits.push(Number(started - acceptedAt) / 1e6);
      }
      waits.sort((a, b) => a - b);
      const [median = Number.NaN, longest = Number.NaN] = [waits[6], waits.at(-1)].map((ms) => Math.round(ms ?? 0));
      console.log(` wake-ups across processes: ${JSON.stringify({ median, longest })} ms`);
      expect(longest).toBeLessThan(1_000);
      await family.stop();
      expect(await family.verdict()).toEqual(FLAWLESS);
    }));
});

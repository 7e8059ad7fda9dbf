/**
 * Connections of others that hold locks while deliveries come: nothing is lost and the event loop goes on.
 *
 * @module-tag full
 */
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { fixtures } from "../../src/testing/index.ts";
import { deliver as deliverTo, FLAWLESS, pathOf, withFamily } from "../proofs/family.ts";
import type { Asked } from "../proofs/process.ts";

const STALL_MS = 250;

interface Load {
  readonly statuses: number[];
  readonly longestMs: number;
}

/** A delivery every 10 ms for `ms`, each sent again when it is answered 503, as the service does. */
async function load(child: Asked, name: string, ms: number): Promise<Load> {
  const statuses: number[] = [];
  let longestMs = 0;
  const deliver = async (index: number) => {
    const event = fixtures.queued({ messageId: `${name}-${index}`, occurredAt: Date.now() });
    for (let status = 503; status !== 200; ) {
      const startedAt = performance.now();
      ({ status } = await deliverTo(child, event));
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      statuses.push(status);
      if (status !== 200) await sleep(100);
    }
  };
  const under: Promise<void>[] = [];
  for (let index = 0; index * 10 < ms; index++) {
    under.push(deliver(index));
    await sleep(10);
  }
  await Promise.all(under);
  return { statuses, longestMs: Math.round(longestMs) };
}

const count = (statuses: readonly number[], status: number) => statuses.filter((one) => one === status).length;

describe("another connection's write transaction", () => {
  it.each([
    ["2 s", "waited for", 2_000, 5_000],
    ["1 s", "answered with 503", 1_000, 300],
  ])(
    "of %s during load is %s; the event loop stands still 250 ms at most, and nothing is lost (I2)",
    { timeout: 40_000 },
    (_time, _answer, lockMs, busyTimeoutMs) =>
      withFamily(async (family) => {
        const child = await family.add({ store: { busyTimeoutMs } });
        await load(child, "warm", 200);
        const other = new Database(pathOf(family));
        await child.ask("stall");
        const loading = load(child, "m", lockMs + 300);
        await sleep(150);
        other.exec("begin immediate");
        await sleep(lockMs);
        other.exec("commit");
        other.close();
        const { statuses, longestMs } = await loading;
        const stallMs = await child.ask<number>("stall");
        const report = {
          busyTimeoutMs,
          stallMs,
          longestMs,
          accepted: count(statuses, 200),
          refused: count(statuses, 503),
        };
        console.log(` foreign lock: ${JSON.stringify(report)}`);
        expect(report.accepted + report.refused).toBe(statuses.length);
        expect(report.refused > 0).toBe(busyTimeoutMs < lockMs);
        // Otherwise the lock was in nobody's way.
        expect(longestMs).toBeGreaterThan(Math.min(lockMs, busyTimeoutMs) / 2);
        expect(stallMs).toBeLessThanOrEqual(STALL_MS);
        await family.settled();
        await family.stop();
        expect(await family.verdict()).toEqual(FLAWLESS);
        const handled = await family.number("select count(*) from effect where message like 'm-%'");
        expect(handled).toBe(report.accepted);
      }),
  );
});

describe("another connection's read transaction", () => {
  it("is in nobody's way, however long it is held", () =>
    withFamily(async (family) => {
      const child = await family.add();
      await load(child, "warm", 200);
      const other = new Database(pathOf(family), { readonly: true });
      other.exec("begin");
      const before = other.prepare("select count(*) from effect").pluck().get();
      const { statuses, longestMs } = await load(child, "m", 500);
      await family.settled();
      expect(other.prepare("select count(*) from effect").pluck().get()).toBe(before);
      other.exec("commit");
      other.close();
      console.log(` foreign reader: ${JSON.stringify({ longestMs, accepted: statuses.length })}`);
      expect(count(statuses, 200)).toBe(statuses.length);
      expect(longestMs).toBeLessThan(1_000);
      await family.stop();
      expect(await family.verdict()).toEqual(FLAWLESS);
    }));
});

/**
 * One process or two watch two conditions, and a call to their store or destination fails, hangs or meets a stop: each message still arrives,
 * in its order and under one id.
 */
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/internal/logger.ts";
import { AlertWatch } from "../../src/receiver/alert-watch.ts";
import type { Alert } from "../../src/receiver/alerts.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { Bench } from "../contracts/store-bench.ts";

const LOOK_MS = 10_000;
const CALLS = { stats: [1, 2, 3, 12], changeNotes: [1, 2, 3, 4, 5, 6, 7, 8, 30], send: [1, 2, 3, 4] } as const;
type Call = keyof typeof CALLS;
type Meet = (work: () => Promise<never>, stop: () => void) => Promise<never>;

const FAULTS: Readonly<Record<string, Meet>> = {
  fails: () => Promise.reject(new Error("no")),
  "loses its answer": async (work) => {
    await work();
    throw new Error("the answer was lost");
  },
  hangs: () => new Promise(() => {}),
  "meets the end of its process": (work, stop) => {
    stop();
    return work();
  },
};

/** An inbox with a dead letter and a quarantined body, which are discarded after a while; and what was sent meanwhile. */
async function watched(processes: number, faulty: Call, nth: number, meet: Meet) {
  const bench = new Bench({ store: memoryStore({ volatile: true }), dispose: async () => {} }, expect);
  const { clock, store } = bench;
  await bench.open();
  const told: Alert[] = [];
  let calls = 0;
  const watch = () => {
    const through = <Given extends readonly unknown[]>(name: Call, work: (...given: Given) => Promise<unknown>) => {
      return (...given: Given): Promise<never> => {
        const call = () => work(...given) as Promise<never>;
        return name === faulty && ++calls === nth ? meet(call, restart) : call();
      };
    };
    const restart = () => {
      void one.stop();
      watches[watches.indexOf(one)] = watch();
    };
    const send = through("send", async (alert: Alert) => void told.push(alert));
    const one = new AlertWatch({
      ...{ clock, logger: silentLogger, name: "shop", workerIdleMs: () => null },
      store: { stats: through("stats", store.stats), changeNotes: through("changeNotes", store.changeNotes) },
      route: { to: "function", limits: { deadLetters: 1, quarantine: 1 }, send },
    });
    return one;
  };
  const watches: AlertWatch[] = Array.from({ length: processes }, watch);
  const looks = async (count: number) => {
    for (let look = 0; look < count; look++) {
      for (const one of watches) one.look().catch(() => {});
      await clock.advance(LOOK_MS);
    }
  };
  await bench.accept(bench.event(1));
  await bench.settle(bench.dead(await bench.claimOne()));
  await bench.step({ quarantines: [bench.quarantine("{")] });
  await looks(10);
  await bench.act({ kind: "discard", event: 1 });
  await bench.act({ kind: "discard_quarantined", quarantine: 1 });
  await looks(20);
  return { told, isMet: calls >= nth };
}

describe.each(Object.entries(FAULTS))("a call that %s", (fault, meet) => {
  it.each(Object.keys(CALLS) as Call[])("loses no message and makes no other: %s", async (call) => {
    // What hangs in one process is another one's to send.
    const places = (fault === "hangs" ? [2] : [1, 2]).flatMap((count) =>
      CALLS[call].map((nth) => [count, nth] as const),
    );
    for (const [processes, nth] of places) {
      const { told, isMet } = await watched(processes, call, nth, meet);
      expect(isMet).toBe(true);
      const different = [...new Map(told.map((alert) => [JSON.stringify(alert), alert])).values()];
      for (const condition of ["deadLetters", "quarantine"] as const) {
        const [began, ended, ...others] = different.filter((alert) => alert.condition === condition);
        const common = { condition, receiver: "shop", limit: 1, episode: began?.episode, since: began?.since };
        expect([began, ended]).toMatchObject([
          { ...common, status: "began", value: 1, id: `${began?.episode}:began` },
          { ...common, status: "ended", value: 0, id: `${began?.episode}:ended` },
        ]);
        expect(others).toEqual([]);
      }
      // One that was sent without anybody noting it comes again.
      expect(told.length).toBeLessThanOrEqual(5);
    }
  });
});

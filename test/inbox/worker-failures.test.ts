import { describe, expect, it } from "vitest";
import { PermanentError, RetryAfter } from "../../src/errors.ts";
import { type Bench, openBench } from "./bench.ts";

async function settleRounds(bench: Bench, count = 20): Promise<void> {
  for (let round = 0; round < count; round++) await bench.clock.advance(0);
}

describe("failures of handlers", () => {
  it.each<[string, () => unknown, string]>([
    [
      "throws",
      () => {
        throw new Error("boom");
      },
      "Error",
    ],
    [
      "rejects",
      async () => {
        throw new TypeError("boom");
      },
      "TypeError",
    ],
    [
      "throws null",
      () => {
        throw null;
      },
      "thrown",
    ],
    [
      "throws a string",
      () => {
        throw "boom";
      },
      "thrown",
    ],
    ["rejects with undefined", () => Promise.reject(undefined), "thrown"],
    [
      "throws an error whose message is no string",
      () => {
        throw Object.assign(new Error(), { message: { deep: 1 } });
      },
      "Error",
    ],
    [
      "throws what throws when it is read",
      () => {
        throw {
          get code() {
            throw new Error("code");
          },
        };
      },
      "thrown",
    ],
    [
      "returns a thenable that throws",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is about
        then() {
          throw new RangeError("then");
        },
      }),
      "RangeError",
    ],
  ])("are retried when a handler %s, and the worker goes on", async (_, fail, code) => {
    let calls = 0;
    const bench = await openBench({ register: (on) => on.onAny(() => (++calls === 1 ? fail() : undefined)) });
    bench.worker.start();
    await bench.accept("a");
    await settleRounds(bench);
    expect((await bench.lane("a")).attempts).toMatchObject([{ attempt: 1, errorCode: code }]);
    await bench.accept("b");
    await bench.clock.advance(1_000);
    expect(await bench.states()).toEqual(["handled", "handled"]);
    await bench.expectNothingLeaked();
  });

  it("become a dead letter on the twelfth attempt, after the whole table of waits (I7)", async () => {
    const bench = await openBench({
      register: (on) =>
        on.onAny(() => {
          throw new Error("always");
        }),
    });
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(25 * 3_600_000);
    expect(await bench.states()).toEqual(["dead"]);
    expect(bench.dead).toMatchObject([{ attempts: 12, code: "Error" }]);
    expect(bench.failures).toHaveLength(12);
    const at = (await bench.lane("a")).attempts.map((attempt) => attempt.at);
    const minutes = at.slice(1).map((time, index) => (time - (at[index] ?? 0)) / 60_000);
    expect(minutes).toEqual([1 / 60, 5 / 60, 0.5, 2, 10, 30, 60, 120, 240, 480, 480]);
  });

  it("wait as long as RetryAfter says, 0 or 24 h", async () => {
    const seen: number[] = [];
    const waits = [0, 86_400_000];
    const bench: Bench = await openBench({
      register: (on) =>
        on.onAny(() => {
          seen.push(bench.clock.now() - start);
          const ms = waits.shift();
          if (ms !== undefined) throw new RetryAfter(ms);
        }),
    });
    const start = bench.clock.now();
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(0);
    expect(seen).toEqual([0, 0]);
    await bench.clock.advance(86_399_999);
    expect(seen).toEqual([0, 0]);
    await bench.clock.advance(1);
    expect(seen).toEqual([0, 0, 86_400_000]);
  });

  it("are final at once with a PermanentError; the lane goes on, or is blocked", async () => {
    for (const onDead of ["continue", "block"] as const) {
      const bench = await openBench({
        worker: { onDead },
        register: (on) => {
          on.on("message.queued", () => {
            throw new PermanentError("never");
          });
          on.on("message.sent", () => {});
        },
      });
      bench.worker.start();
      await Promise.all([bench.accept("a", 1, { eventType: "message.queued" }), bench.accept("a", 2)]);
      await bench.clock.advance(0);
      expect(await bench.states()).toEqual(["dead", onDead === "block" ? "pending" : "handled"]);
      expect(bench.dead).toMatchObject([{ attempts: 1, code: "permanent_failure" }]);
      await bench.expectNothingLeaked();
    }
  });
});

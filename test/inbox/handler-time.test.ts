import { describe, expect, it } from "vitest";
import { type Bench, deferred, openBench, rounds } from "./bench.ts";

describe("a handler's time", () => {
  it("aborts the signal at handlerTimeoutMs, and retries at the end of the grace (I3)", async () => {
    let aborted = 0;
    const bench: Bench = await openBench({
      register: (on) =>
        on.onAny((_, ctx) => {
          ctx.signal.addEventListener("abort", () => {
            aborted = bench.clock.now() - start;
          });
          return new Promise(() => {});
        }),
      handlerTimeoutMs: 8_000,
    });
    const start = bench.clock.now();
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(37_999);
    expect(aborted).toBe(8_000);
    expect((await bench.lane("a")).status).toBe("leased");
    await bench.clock.advance(1);
    expect(await bench.lane("a")).toMatchObject({ status: "backoff", attempts: [{ errorCode: "handler_timeout" }] });
    await bench.clock.advance(0);
    expect(bench.endings).toEqual([[1, "retry"]]);
  });

  it("retries a handler that returns within the grace, and ignores one that returns after it", async () => {
    const gates = [deferred(), deferred()];
    const commits: unknown[] = [];
    let calls = 0;
    const bench = await openBench({
      register: (on) =>
        on.onAny(async (_, ctx) => {
          const gate = gates[calls++];
          await gate?.promise;
          try {
            ctx.commit(() => {});
          } catch (error) {
            commits.push((error as { code: string }).code);
          }
        }),
      handlerTimeoutMs: 1_000,
    });
    bench.worker.start();
    await bench.accept("a");
    await bench.clock.advance(20_000);
    gates[0]?.resolve();
    await bench.clock.advance(0);
    expect(bench.endings).toEqual([[1, "retry"]]);
    await bench.clock.advance(60_000);
    expect(bench.endings.length).toBeGreaterThanOrEqual(2);
    gates[1]?.resolve();
    await rounds();
    expect(commits.length).toBeGreaterThanOrEqual(2);
  });
});

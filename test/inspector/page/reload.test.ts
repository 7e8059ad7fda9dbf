import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createReload } from "../../../src/inspector/page/live.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

interface Asked {
  readonly signal: AbortSignal;
  answer(value: string): Promise<void>;
  fail(error: Error): Promise<void>;
}

/** Loads that are answered by hand, and what was told of them. */
function harness() {
  const asked: Asked[] = [];
  const told: { data?: string; error?: unknown; loading: boolean }[] = [];
  const view = { isHidden: false };
  const load = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      asked.push({
        signal,
        async answer(value) {
          resolve(value);
        },
        async fail(error) {
          reject(error);
        },
      });
    });
  const reload = createReload<string>({ load, isHidden: () => view.isHidden, report: (news) => told.push(news) });
  return { asked, told, view, reload };
}

describe("createReload()", () => {
  it("asks at once, and tells the answer", async () => {
    const { asked, told, reload } = harness();
    reload.now();
    await asked[0]?.answer("one");
    expect(told).toEqual([{ loading: true }, { data: "one", error: null, loading: false }]);
  });

  it("asks again at most once a second, however often something changed", async () => {
    const { asked, reload } = harness();
    reload.now();
    await asked[0]?.answer("one");
    for (let change = 0; change < 100; change++) reload.soon();
    vi.advanceTimersByTime(999);
    expect(asked).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(asked).toHaveLength(2);
  });

  it("never asks twice at once, and asks again for what changed meanwhile", async () => {
    const { asked, reload } = harness();
    reload.now();
    reload.soon();
    vi.advanceTimersByTime(10_000);
    expect(asked).toHaveLength(1);
    await asked[0]?.answer("one");
    vi.advanceTimersByTime(1_000);
    expect(asked).toHaveLength(2);
  });

  it("ignores an answer that another question has overtaken", async () => {
    const { asked, told, reload } = harness();
    reload.now();
    reload.now();
    expect(asked[0]?.signal.aborted).toBe(true);
    await asked[1]?.answer("second");
    await asked[0]?.answer("first");
    expect(told.filter(({ data }) => data !== undefined)).toEqual([{ data: "second", error: null, loading: false }]);
  });

  it("keeps what it had when asking fails", async () => {
    const { asked, told, reload } = harness();
    const error = new Error("gone");
    reload.now();
    await asked[0]?.fail(error);
    expect(told.at(-1)).toEqual({ error, loading: false });
  });

  it("asks nothing while the tab is hidden, and once when it is seen again", async () => {
    const { asked, view, reload } = harness();
    reload.now();
    await asked[0]?.answer("one");
    view.isHidden = true;
    reload.soon();
    reload.soon();
    vi.advanceTimersByTime(60_000);
    expect(asked).toHaveLength(1);
    view.isHidden = false;
    reload.seen();
    vi.advanceTimersByTime(1_000);
    expect(asked).toHaveLength(2);
  });

  it("asks nothing when it was hidden while it waited, and once when it is seen again", async () => {
    const { asked, view, reload } = harness();
    reload.now();
    await asked[0]?.answer("one");
    reload.soon();
    view.isHidden = true;
    vi.advanceTimersByTime(60_000);
    expect(asked).toHaveLength(1);
    view.isHidden = false;
    reload.seen();
    vi.advanceTimersByTime(0);
    expect(asked).toHaveLength(2);
  });

  it("asks nothing and tells nothing once it is stopped", async () => {
    const { asked, told, reload } = harness();
    reload.now();
    reload.stop();
    await asked[0]?.answer("one");
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([{ loading: true }]);
  });
});

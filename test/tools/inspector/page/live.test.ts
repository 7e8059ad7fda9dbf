import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Overview } from "../../../../src/tools/inspector/api.ts";
import { ApiFailure } from "../../../../src/tools/inspector/page/api.ts";
import { createPoll, createReload, type Live, merged } from "../../../../src/tools/inspector/page/live.ts";
import { sampleAt } from "./drawings.ts";

const MINUTE_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function timesOf(before: readonly number[], after: readonly number[]): number[] {
  return merged(
    before.map((at) => sampleAt(at)),
    after.map((at) => sampleAt(at)),
  ).map(({ at }) => at);
}

describe("merged()", () => {
  it("puts what came after behind what was before, without twins, and keeps 15 minutes", () => {
    expect(timesOf([1, 2, 3], [3, 4])).toEqual([1, 2, 3, 4]);
    expect(timesOf([], [1])).toEqual([1]);
    expect(timesOf([1], [])).toEqual([1]);
    expect(timesOf([0, 1, 5 * MINUTE_MS], [15 * MINUTE_MS + 1])).toEqual([1, 5 * MINUTE_MS, 15 * MINUTE_MS + 1]);
  });
});

/** A page, its inspector's number, and how often it was asked. */
function openPage() {
  const page = {
    live: { overview: null, changed: 0, samples: [], connected: false, ended: false } as Live,
    ...{ isHidden: false, asked: 0, number: 1, failure: null as unknown, signal: null as AbortSignal | null },
  };
  const poll = createPoll({
    async load(signal) {
      page.asked += 1;
      page.signal = signal;
      if (page.failure !== null) throw page.failure;
      return { changed: page.number, now: page.asked, sample: sampleAt(page.asked) } as Overview;
    },
    isHidden: () => page.isHidden,
    report(next) {
      page.live = next(page.live);
    },
  });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { page, poll, pass };
}

describe("createPoll()", () => {
  it("asks at once, and 2 s after each answer", async () => {
    const { page, poll, pass } = openPage();
    poll.now();
    await pass(0);
    expect(page.live).toMatchObject({ connected: true, ended: false, overview: { now: 1 } });
    await pass(1_999);
    expect(page.asked).toBe(1);
    await pass(1);
    expect(page.asked).toBe(2);
    await pass(20_000);
    expect(page.asked).toBe(12);
    expect(page.live.samples.map(({ at }) => at)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it("has the views load again for another number, and only then", async () => {
    const { page, poll, pass } = openPage();
    poll.now();
    await pass(0);
    const { changed } = page.live;
    await pass(20_000);
    expect(page.live).toMatchObject({ changed, overview: { now: 11 } });
    // A number says nothing but that it is another one.
    for (const number of [2, 1]) {
      const before = page.live.changed;
      page.number = number;
      await pass(2_000);
      expect(page.live.changed).toBe(before + 1);
      await pass(2_000);
      expect(page.live.changed).toBe(before + 1);
    }
  });

  it.each([
    ["no connection", new ApiFailure(0, "unreachable", "The inspector does not answer.")],
    ["no inbox", new ApiFailure(503, "unavailable", "The inbox does not answer now.")],
    ["an answer that breaks off", new TypeError("terminated")],
  ])("says that there is %s, asks on, and has the views load again once there is", async (_what, failure) => {
    const { page, poll, pass } = openPage();
    poll.now();
    await pass(0);
    const { changed } = page.live;
    page.failure = failure;
    await pass(2_000);
    expect(page.live).toMatchObject({ connected: false, ended: false, changed, overview: { now: 1 } });
    await pass(60_000);
    expect(page.asked).toBe(32);
    page.failure = null;
    await pass(2_000);
    expect(page.live).toMatchObject({ connected: true, changed: changed + 1 });
  });

  it("takes a connection without an answer for 10 s for a dead one", async () => {
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(late.signal);
    const { page, poll } = openPage();
    poll.now();
    expect(timeout).toHaveBeenCalledWith(10_000);
    expect(page.signal?.aborted).toBe(false);
    late.abort();
    expect(page.signal?.aborted).toBe(true);
  });

  it("asks nothing while it is hidden, and at once when it is seen again", async () => {
    const { page, poll, pass } = openPage();
    poll.now();
    await pass(1_000);
    page.isHidden = true;
    poll.now();
    await pass(10 * 60_000);
    expect(page.asked).toBe(1);
    expect(page.live.connected).toBe(true);
    page.isHidden = false;
    poll.now();
    expect(page.asked).toBe(2);
    await pass(2_000);
    expect(page.asked).toBe(3);
  });

  it("asks nothing when it is opened hidden, until it is seen", async () => {
    const { page, poll, pass } = openPage();
    page.isHidden = true;
    poll.now();
    await pass(60_000);
    expect(page.asked).toBe(0);
    page.isHidden = false;
    poll.now();
    expect(page.asked).toBe(1);
  });

  it.each([401, 403])("ends at a %d, and asks once more when the page is seen again", async (status) => {
    const { page, poll, pass } = openPage();
    poll.now();
    await pass(0);
    page.failure = new ApiFailure(status, "", "");
    await pass(2_000);
    expect(page.live).toMatchObject({ connected: false, ended: true });
    await pass(60_000);
    expect(page.asked).toBe(2);
    poll.now();
    await pass(60_000);
    expect(page.asked).toBe(3);
    page.failure = null;
    poll.now();
    await pass(2_000);
    expect(page.live).toMatchObject({ connected: true, ended: false });
    expect(page.asked).toBe(5);
  });

  it("asks at once after an act, and shows no answer from before it", async () => {
    const { page, poll, pass } = openPage();
    poll.now();
    const before = page.signal;
    poll.now();
    expect([before?.aborted, page.asked]).toEqual([true, 2]);
    await pass(0);
    expect(page.live.overview?.now).toBe(2);
  });
});

/** Loads that are answered by hand, and what was told of them. */
function harness() {
  const asked: { signal: AbortSignal; answer(value: string): Promise<void>; fail(error: Error): Promise<void> }[] = [];
  const told: { data?: string; error?: unknown; loading: boolean }[] = [];
  const view = { isHidden: false };
  const load = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      asked.push({ signal, answer: async (value) => resolve(value), fail: async (error) => reject(error) });
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

  it.each(["before something changed", "while it waited"])(
    "asks nothing when it was hidden %s, and once when it is seen again",
    async (when) => {
      const { asked, view, reload } = harness();
      reload.now();
      await asked[0]?.answer("one");
      view.isHidden = when === "before something changed";
      reload.soon();
      reload.soon();
      view.isHidden = true;
      vi.advanceTimersByTime(60_000);
      expect(asked).toHaveLength(1);
      view.isHidden = false;
      reload.seen();
      vi.advanceTimersByTime(1_000);
      expect(asked).toHaveLength(2);
    },
  );

  it("asks nothing and tells nothing once it is stopped", async () => {
    const { asked, told, reload } = harness();
    reload.now();
    reload.stop();
    await asked[0]?.answer("one");
    vi.advanceTimersByTime(10_000);
    expect(told).toEqual([{ loading: true }]);
  });
});

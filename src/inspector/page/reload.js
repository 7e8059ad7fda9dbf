/** When data is asked for again: at once when the question is another, else at most once a second, and never two at once. */

const PAUSE_MS = 1_000;

/**
 * @template T
 * @param {object} parts
 * @param {(signal: AbortSignal) => Promise<T>} parts.load
 * @param {() => boolean} parts.isHidden
 * @param {(news: { data?: T, error?: unknown, loading: boolean }) => void} parts.tell
 */
export function createReload({ load, isHidden, tell }) {
  /** @type {AbortController | null} */
  let under = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isWanted = false;
  let endedAt = Number.NEGATIVE_INFINITY;

  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    under?.abort();
    under = null;
  };
  /** What was asked before no longer matters. */
  const now = () => {
    stop();
    isWanted = false;
    const mine = new AbortController();
    under = mine;
    tell({ loading: true });
    const end = (/** @type {{ data?: T, error: unknown }} */ news) => {
      if (under !== mine) return;
      under = null;
      endedAt = performance.now();
      tell({ ...news, loading: false });
      seen();
    };
    load(mine.signal).then(
      (data) => end({ data, error: null }),
      (error) => end({ error }),
    );
  };
  /** The answer may have changed. */
  const soon = () => {
    isWanted = true;
    if (under || timer || isHidden()) return;
    timer = setTimeout(now, Math.max(0, endedAt + PAUSE_MS - performance.now()));
  };
  /** After a time in which nothing was asked. */
  const seen = () => {
    if (isWanted) soon();
  };
  return { now, soon, seen, stop };
}

/** When data is asked for again: at once when what is asked for has changed, else at most once a second, and never two at once. */

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

  /** Another question: what was asked before no longer matters. */
  const now = () => {
    under?.abort();
    clearTimeout(timer);
    timer = undefined;
    void run();
  };

  const run = async () => {
    const mine = new AbortController();
    under = mine;
    isWanted = false;
    tell({ loading: true });
    const news = await Promise.resolve(load(mine.signal)).then(
      (data) => ({ data, error: null, loading: false }),
      (error) => ({ error, loading: false }),
    );
    // Overtaken by another question, or nobody listens any more.
    if (under !== mine) return;
    under = null;
    endedAt = performance.now();
    tell(news);
    if (isWanted) soon();
  };

  /** The same question, because the answer may have changed. */
  const soon = () => {
    isWanted = true;
    if (under !== null || timer !== undefined || isHidden()) return;
    timer = setTimeout(now, Math.max(0, endedAt + PAUSE_MS - performance.now()));
  };

  return {
    now,
    soon,
    /** It may have been hidden, and is seen again. */
    seen: () => {
      if (isWanted) soon();
    },
    stop: () => {
      clearTimeout(timer);
      under?.abort();
      under = null;
    },
  };
}

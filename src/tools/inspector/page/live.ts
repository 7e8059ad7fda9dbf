/** Live data: the page asks for the overview every 2 s, and views load again when its number says that the inbox has changed. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { History, Overview, Sample } from "../api.ts";
import { ApiFailure, get } from "./api.ts";
import { useListener } from "./parts.tsx";

/** What the inspector has answered so far. */
export interface Live {
  readonly overview: Overview | null;
  /** Grows when the inbox may have changed. */
  readonly changed: number;
  readonly samples: readonly Sample[];
  readonly connected: boolean;
  /** The viewer may no longer look at the inbox. */
  readonly ended: boolean;
}

const KEPT_MS = 15 * 60_000;
const EVERY_MS = 2_000;
/** After this time without an answer, the connection is dead. */
const PATIENCE_MS = 10_000;

let live: Live = { overview: null, changed: 0, samples: [], connected: false, ended: false };
const listeners = new Set<(now: Live) => void>();

export function useLive(): Live {
  const [, show] = useState(live);
  useEffect(() => {
    listeners.add(show);
    show(live);
    return () => {
      listeners.delete(show);
    };
  }, []);
  return live;
}

function update(now: Live): void {
  live = now;
  for (const show of listeners) show(live);
}

export function startLive(): void {
  get<History>("api/history").then(
    ({ samples }) => update({ ...live, samples: merged(samples, live.samples) }),
    () => {},
  );
  const poll = createPoll({
    load: (signal) => get<Overview>("api/overview", signal),
    isHidden: () => document.hidden,
    report: (next) => update(next(live)),
  });
  document.addEventListener("visibilitychange", poll.now);
  addEventListener("acted", poll.now);
  poll.now();
}

export interface PollParts {
  load(signal: AbortSignal): Promise<Overview>;
  isHidden(): boolean;
  report(next: (before: Live) => Live): void;
}

/** Asks again 2 s after each answer, but not while the page is hidden, nor once the viewer may no longer look. */
export function createPoll({ load, isHidden, report }: PollParts): Pick<Reload, "now"> {
  const poll = createReload<Overview>({
    load: (signal) => load(AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)])),
    isHidden,
    pauseMs: EVERY_MS,
    report({ data, error, loading }) {
      if (loading) return;
      report((before) => (data === undefined ? unanswered(before, error) : answered(before, data)));
      if (!isDenied(error)) poll.soon();
    },
  });
  return { now: () => (isHidden() ? undefined : poll.now()) };
}

function answered(before: Live, overview: Overview): Live {
  // What failed to load while there was no connection is loaded again too.
  const isSame = before.connected && overview.changed === before.overview?.changed;
  return {
    overview,
    changed: isSame ? before.changed : before.changed + 1,
    samples: merged(before.samples, [overview.sample]),
    connected: true,
    ended: false,
  };
}

function unanswered(before: Live, error: unknown): Live {
  return { ...before, connected: false, ended: isDenied(error) };
}

function isDenied(error: unknown): boolean {
  return error instanceof ApiFailure && (error.status === 401 || error.status === 403);
}

/** Both lists as one, without duplicates and without samples that are too old. */
export function merged(before: readonly Sample[], after: readonly Sample[]): readonly Sample[] {
  const from = after[0]?.at ?? Number.POSITIVE_INFINITY;
  const all = [...before.filter(({ at }) => at < from), ...after];
  const last = all.at(-1)?.at ?? 0;
  return all.filter(({ at }) => at >= last - KEPT_MS);
}

export interface Loaded<T> {
  readonly data: T | null;
  readonly error: unknown;
  readonly reload: () => void;
}

/**
 * Loads when `inputs` change, and again when the inbox has changed. While `held`, changes wait; but an error does not hold. Data stays
 * until the next answer, so give a view of one thing a `key`: otherwise it shows the previous thing for a moment.
 */
export function useData<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  { held = false } = {},
): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; error: unknown }>({ data: null, error: null });
  const { changed } = useLive();
  const latest = useRef(load);
  latest.current = load;
  const [reload] = useState(() =>
    createReload<T>({
      load: (signal) => latest.current(signal),
      isHidden: () => document.hidden,
      report({ loading, ...news }) {
        if (!loading) setState((before) => ({ ...before, ...news }));
      },
    }),
  );
  const isHeld = held && !state.error;
  const seen = useRef(changed);
  // A layout effect: other effects wait for the next frame, which would be drawn before the request is sent.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the inputs are the caller's
  useLayoutEffect(reload.now, inputs);
  useEffect(() => {
    if (isHeld) return;
    if (changed !== seen.current) reload.soon();
    seen.current = changed;
  }, [changed, isHeld, reload]);
  useListener(document, "visibilitychange", reload.seen);
  useEffect(() => reload.stop, [reload]);
  return { ...state, reload: reload.now };
}

const PAUSE_MS = 1_000;

export interface ReloadParts<T> {
  load(signal: AbortSignal): Promise<T>;
  isHidden(): boolean;
  report(news: { data?: T; error?: unknown; loading: boolean }): void;
  /** How long `soon()` waits after the last answer. Default 1 s. */
  readonly pauseMs?: number;
}

export interface Reload {
  /** Loads at once and ignores the answer of an earlier load. */
  now(): void;
  /** Loads again because the answer may have changed. */
  soon(): void;
  /** The page is visible again: makes up for a load that was put off. */
  seen(): void;
  stop(): void;
}

/** Decides when to load again: at once for a new question, otherwise after a pause, never twice at a time, and not while hidden. */
export function createReload<T>({ load, isHidden, report, pauseMs = PAUSE_MS }: ReloadParts<T>): Reload {
  let running: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isWanted = false;
  let endedAt = Number.NEGATIVE_INFINITY;

  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    running?.abort();
    running = null;
  };
  const now = () => {
    stop();
    isWanted = false;
    const mine = new AbortController();
    running = mine;
    report({ loading: true });
    const end = (news: { data?: T; error: unknown }) => {
      if (running !== mine) return;
      running = null;
      endedAt = performance.now();
      report({ ...news, loading: false });
      seen();
    };
    load(mine.signal).then(
      (data) => end({ data, error: null }),
      (error) => end({ error }),
    );
  };
  const soon = () => {
    isWanted = true;
    if (running !== null || timer !== undefined || isHidden()) return;
    timer = setTimeout(wake, Math.max(0, endedAt + pauseMs - performance.now()));
  };
  const wake = () => {
    timer = undefined;
    if (!isHidden()) now();
  };
  const seen = () => {
    if (isWanted) soon();
  };
  return { now, soon, seen, stop };
}

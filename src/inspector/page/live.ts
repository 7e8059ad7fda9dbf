/** Live data: one stream for the whole page, and data that is loaded again when the inbox has changed. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { History, Overview, Sample, StreamEvent } from "../api.ts";
import { ApiFailure, get, readLines } from "./api.ts";
import { useListener } from "./parts.tsx";

/** What the stream has reported so far. */
export interface Live {
  readonly overview: Overview | null;
  /** Grows when the inbox may have changed. */
  readonly changed: number;
  readonly samples: readonly Sample[];
  readonly connected: boolean;
  /** The viewer may no longer look at the inbox. */
  readonly ended: boolean;
  /** Why the server refuses the stream. */
  readonly refusal: string | null;
}

const KEPT_MS = 15 * 60_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** The server sends an overview every second. After this time without one, the page shows old figures. */
const OLD_MS = 5_000;
/** The server sends something every 15 s, even if it cannot read the inbox. After this time the connection is dead. */
const SILENT_MS = 45_000;

let live: Live = { overview: null, changed: 0, samples: [], connected: false, ended: false, refusal: null };
const listeners = new Set<(now: Live) => void>();
/** The server's last `changed`. It starts again with the server, so the page has a counter of its own. */
let serverChanged = 0;

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

function update(news: Partial<Live>): void {
  live = { ...live, ...news };
  for (const show of listeners) show(live);
}

/** Follows the stream while the page is visible. A hidden page would hold one of the few connections per host that browsers allow. */
export async function startLive(): Promise<void> {
  get<History>("api/history").then(
    ({ samples }) => update({ samples: merged(samples, live.samples) }),
    () => {},
  );
  for (let waitMs = FIRST_WAIT_MS; !live.ended; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    if (document.hidden) await visibilityChange();
    await followStream(() => {
      waitMs = FIRST_WAIT_MS;
    });
    if (live.ended || document.hidden) update({ connected: false });
    else loadOnce();
    if (!document.hidden) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** One connection, until it ends, goes silent, or the page is hidden. */
async function followStream(onData: () => void): Promise<void> {
  const leaving = new AbortController();
  void visibilityChange().then(() => leaving.abort());
  const old = startTimeout(OLD_MS, loadOnce);
  const silent = startTimeout(SILENT_MS, () => leaving.abort());
  const onLine = (line: string) => {
    silent.restart();
    if (!line.startsWith("data:")) return;
    old.restart();
    onData();
    take(JSON.parse(line.slice("data:".length)));
  };
  await readLines("api/stream", undefined, onLine, leaving.signal).catch((error: unknown) => {
    if (!(error instanceof ApiFailure)) return;
    if (error.status === 401 || error.status === 403) update({ ended: true });
    else if (error.status > 0) update({ refusal: error.message });
  });
  old.stop();
  silent.stop();
}

/** Without a stream: loads once what it would report about the inbox and the viewer's rights. */
function loadOnce(): void {
  update({ connected: false });
  get<Overview>("api/overview").then(
    (overview) => {
      if (!live.connected) update({ overview });
    },
    () => {},
  );
}

function take(event: StreamEvent): void {
  if (event.kind === "end") return update({ connected: false, ended: event.reason === "unauthorized" });
  const { overview, sample } = event;
  const isSame = live.connected && event.changed === serverChanged;
  serverChanged = event.changed;
  update({
    overview,
    changed: isSame ? live.changed : live.changed + 1,
    samples: merged(live.samples, [sample]),
    connected: true,
    refusal: null,
  });
}

function visibilityChange(): Promise<void> {
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}

/** Calls `onEnd` once, `ms` after its start or its last restart. */
function startTimeout(ms: number, onEnd: () => void): { restart(): void; stop(): void } {
  let timer = setTimeout(onEnd, ms);
  return {
    restart() {
      clearTimeout(timer);
      timer = setTimeout(onEnd, ms);
    },
    stop() {
      clearTimeout(timer);
    },
  };
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

/** Decides when to load again: at once for a new question, otherwise at most once a second and never twice at a time. */
export function createReload<T>({ load, isHidden, report }: ReloadParts<T>): Reload {
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
    timer = setTimeout(now, Math.max(0, endedAt + PAUSE_MS - performance.now()));
  };
  const seen = () => {
    if (isWanted) soon();
  };
  return { now, soon, seen, stop };
}

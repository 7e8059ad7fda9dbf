/** What goes on while somebody looks: one live connection for the page, and data that is asked for again when it changed. */
import { ApiError, get, read } from "./api.js";
import { useListener } from "./parts/listen.js";
import { createReload } from "./reload.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact.js";

/** @import { History, Overview, Sample, StreamEvent } from "../api.ts" */
/** Another `changed` tells that the inbox may have changed; `ended`, that the right to look has ended; `refusal`, why there is no stream. */
/** @typedef {{ overview: Overview | null, changed: number, samples: readonly Sample[], connected: boolean, ended: boolean, refusal: string | null }} Live */

const KEPT_MS = 15 * 60_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Looks come once a second: after this time without one, what is shown is old. */
const OLD_MS = 5_000;
/** Something comes every 15 s, also while the inbox cannot be read: after this time nothing will on this connection. */
const SILENT_MS = 45_000;

/** @type {Live} */
let live = { overview: null, changed: 0, samples: [], connected: false, ended: false, refusal: null };
/** @type {Set<(now: Live) => void>} */
const listeners = new Set();

/** @returns {Live} */
export function useLive() {
  const [, show] = useState(live);
  useEffect(() => {
    listeners.add(show);
    show(live);
    return () => void listeners.delete(show);
  }, []);
  return live;
}

/** @param {Partial<Live>} news */
function tell(news) {
  live = { ...live, ...news };
  for (const show of listeners) show(live);
}

/** Follows the stream while the page is seen: a hidden one would hold one of the few connections a browser has for a host. */
export async function startLive() {
  get("api/history").then(
    (/** @type {History} */ { samples }) => tell({ samples: merged(samples, live.samples) }),
    Object,
  );
  const onceTurned = (/** @type {(event: Event) => void} */ listener) => {
    document.addEventListener("visibilitychange", listener, { once: true });
  };
  for (let waitMs = FIRST_WAIT_MS; !live.ended; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    if (document.hidden) await new Promise(onceTurned);
    const leaving = new AbortController();
    onceTurned(() => leaving.abort());
    const old = alarm(OLD_MS, miss);
    const silent = alarm(SILENT_MS, () => leaving.abort());
    const hear = (/** @type {string} */ line) => {
      silent.set();
      if (!line.startsWith("data:")) return;
      old.set();
      waitMs = FIRST_WAIT_MS;
      take(JSON.parse(line.slice(5)));
    };
    await read("api/stream", undefined, hear, leaving.signal).catch((error) => {
      if (!(error instanceof ApiError)) return;
      if ([401, 403].includes(error.status)) tell({ ended: true });
      else if (error.status) tell({ refusal: error.message });
    });
    old.stop();
    silent.stop();
    if (live.ended || document.hidden) tell({ connected: false });
    else miss();
    if (!document.hidden) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Nothing comes: what the stream would tell of the inbox, and of the rights of who looks, is asked for once. */
function miss() {
  tell({ connected: false });
  get("api/overview").then((/** @type {Overview} */ overview) => live.connected || tell({ overview }), Object);
}

/** Rings once, `ms` after it was set. @param {number} ms @param {() => void} ring */
function alarm(ms, ring) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const stop = () => clearTimeout(timer);
  const set = () => {
    stop();
    timer = setTimeout(ring, ms);
  };
  set();
  return { set, stop };
}

/** The server's `changed` that was heard last. It begins again with the server, so the page counts for itself. */
let heard = 0;

/** @param {StreamEvent} event */
function take(event) {
  if (event.kind === "end") return tell({ connected: false, ended: event.reason === "unauthorized" });
  const { overview, sample } = event;
  const changed = live.connected && event.changed === heard ? live.changed : live.changed + 1;
  heard = event.changed;
  tell({ overview, changed, samples: merged(live.samples, [sample]), connected: true, refusal: null });
}

/** Without twins, and without what is too old. @param {readonly Sample[]} before @param {readonly Sample[]} after */
export function merged(before, after) {
  const from = after[0]?.at ?? Number.POSITIVE_INFINITY;
  const all = [...before.filter(({ at }) => at < from), ...after];
  const last = all.at(-1)?.at ?? 0;
  return all.filter(({ at }) => at >= last - KEPT_MS);
}

/**
 * Loads when `inputs` change, and again when the inbox has changed, unless `held`; but what failed is no answer to hold. What was loaded stays until the next answer:
 * a view of one thing is keyed by its id, so that it never shows another's.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {readonly unknown[]} inputs
 * @param {{ held?: boolean }} [options]
 * @returns {{ data: T | null, error: unknown, loading: boolean, reload: () => void }}
 */
export function useData(load, inputs, { held = false } = {}) {
  const [state, setState] = useState({
    data: /** @type {T | null} */ (null),
    error: /** @type {unknown} */ (null),
    loading: true,
  });
  const { changed } = useLive();
  const latest = useRef(load);
  latest.current = load;
  const [reload] = useState(() =>
    createReload({
      load: (/** @type {AbortSignal} */ signal) => latest.current(signal),
      isHidden: () => document.hidden,
      tell: (/** @type {Partial<typeof state>} */ news) => setState((before) => ({ ...before, ...news })),
    }),
  );
  const isHeld = held && !state.error;
  const seen = useRef(changed);
  // At once: other effects wait for the frame, which is drawn while the answer is on its way.
  useLayoutEffect(reload.now, inputs);
  useEffect(() => {
    if (!isHeld && changed !== seen.current) reload.soon();
    if (!isHeld) seen.current = changed;
  }, [changed, isHeld]);
  useListener(document, "visibilitychange", reload.seen);
  useEffect(() => reload.stop, []);
  return { ...state, reload: reload.now };
}

/** What goes on while somebody looks: one live connection for the whole page, and data that is asked for again when it changed. */
import { ApiError, addressOf, get } from "./api.js";
import { createReload } from "./reload.js";
import { useEffect, useRef, useState } from "./vendor/htm-preact.js";

/**
 * @typedef {import("../api.ts").Overview} Overview
 * @typedef {import("../api.ts").Sample} Sample
 * @typedef {import("../api.ts").StreamEvent} StreamEvent
 * @typedef {object} Live
 * @property {Overview | null} overview null until the first look
 * @property {number} changed grows whenever something in the inbox may have changed
 * @property {readonly Sample[]} samples of the last 15 minutes, the oldest first
 * @property {boolean} connected
 * @property {"unauthorized" | "closing" | null} ended why it is over for good
 */

const KEPT_MS = 15 * 60_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/** @type {Live} */
let live = { overview: null, changed: 0, samples: [], connected: false, ended: null };
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {EventSource | null} */
let source = null;
let waitMs = FIRST_WAIT_MS;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retry;

/** What is known live. @returns {Live} */
export function useLive() {
  const [, redraw] = useState(live);
  useEffect(() => {
    const listener = () => redraw(live);
    listeners.add(listener);
    listener();
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return live;
}

/** Connects while the page is seen: a hidden one would hold one of the few connections that a browser has for a host. */
export function startLive() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  if (!document.hidden) connect();
  get("api/history").then(
    (/** @type {import("../api.ts").History} */ history) => tell({ samples: merged(history.samples, live.samples) }),
    () => {},
  );
}

/** @param {readonly Sample[]} before @param {readonly Sample[]} after @returns {readonly Sample[]} without twins, and without what is too old */
export function merged(before, after) {
  const [first] = after;
  const all = [...(first ? before.filter(({ at }) => at < first.at) : before), ...after];
  const from = (all.at(-1)?.at ?? 0) - KEPT_MS;
  return all.filter(({ at }) => at >= from);
}

/** @param {Partial<Live>} news */
function tell(news) {
  live = { ...live, ...news };
  for (const listener of listeners) listener();
}

function connect() {
  if (source !== null || live.ended !== null) return;
  clearTimeout(retry);
  source = new EventSource(addressOf("api/stream"));
  source.onerror = () => reconnect();
  source.onopen = () => {
    waitMs = FIRST_WAIT_MS;
    tell({ connected: true });
  };
  for (const kind of ["message", "overview", "end"]) source.addEventListener(kind, hear);
}

/** @param {MessageEvent} message */
function hear(message) {
  /** @type {StreamEvent} */
  const event = JSON.parse(message.data);
  if (event.kind === "end") return finish(event.reason);
  const { overview, sample } = event;
  // The count begins anew when the application has: then too there is something new.
  const changed = event.changed === lastChanged ? live.changed : live.changed + 1;
  lastChanged = event.changed;
  tell({ overview, changed, samples: merged(live.samples, [sample]), connected: true });
}
let lastChanged = -1;

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

/** An application that closes may come back, and a right that has ended may be given again: only the latter needs the person. */
/** @param {"unauthorized" | "closing"} reason */
function finish(reason) {
  if (reason === "closing") return reconnect();
  disconnect();
  tell({ connected: false, ended: reason });
}

/** Not left to the browser, which gives up for good after an answer that is no stream. */
function reconnect() {
  disconnect();
  tell({ connected: false });
  if (document.hidden) return;
  retry = setTimeout(async () => {
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    const refusal = await get("api/overview").then(
      () => null,
      (error) => error,
    );
    if (refusal instanceof ApiError && (refusal.status === 401 || refusal.status === 403)) finish("unauthorized");
    else if (refusal === null) connect();
    else reconnect();
  }, waitMs);
}

/**
 * Loads when `inputs` change, and again when the inbox has changed: at most once a second, never two at once, and none while the
 * tab is hidden. What was loaded stays until the next answer. A view of one thing is keyed by its id, so that none shows another's.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {readonly unknown[]} inputs
 * @param {{ held?: boolean }} [options] `held` loads only when inputs change, until it is let go
 * @returns {{ data: T | null, error: unknown, loading: boolean, reload: () => void }}
 */
export function useData(load, inputs, { held = false } = {}) {
  /** @type {{ data: T | null, error: unknown, loading: boolean }} */
  const empty = { data: null, error: null, loading: true };
  const [state, setState] = useState(empty);
  const { changed } = useLive();
  const latest = useRef(load);
  latest.current = load;
  const [reload] = useState(() =>
    createReload({
      load: (/** @type {AbortSignal} */ signal) => latest.current(signal),
      isHidden: () => document.hidden,
      tell: (/** @type {Partial<typeof empty>} */ news) => setState((before) => ({ ...before, ...news })),
    }),
  );
  useEffect(() => reload.now(), inputs);
  const seen = useRef(changed);
  useEffect(() => {
    if (held || changed === seen.current) return;
    seen.current = changed;
    reload.soon();
  }, [changed, held]);
  useEffect(() => {
    document.addEventListener("visibilitychange", reload.seen);
    return () => {
      document.removeEventListener("visibilitychange", reload.seen);
      reload.stop();
    };
  }, []);
  return { ...state, reload: reload.now };
}

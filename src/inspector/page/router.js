/** Which view is open: what follows `#`. No number goes in there, for it would stay in the browser's history. */
import { useListener } from "./parts/listen.js";
import { useEffect, useState } from "./vendor/htm-preact.js";

/** @typedef {Readonly<Record<string, string | number | null | undefined>>} Params */

/** `#/message/7?event=3` @param {string} hash */
export function parseHash(hash) {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [view, id = ""] = path.split("/");
  /** @type {Readonly<Record<string, string>>} */
  const params = Object.fromEntries(new URLSearchParams(query));
  return { view: view || "events", id: /^\d{1,15}$/.test(id) ? Number(id) : null, params };
}

/** Params without a value are left out. @param {string} view @param {number | null} [id] @param {Params} [params] */
export function href(view, id = null, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value != null && value !== "");
  const query = `${new URLSearchParams(given.map(([name, value]) => [name, `${value}`]))}`;
  return `#/${view}${id === null ? "" : `/${id}`}${query && `?${query}`}`;
}

/** Opens a view. @param {string} view @param {number | null} [id] @param {Params} [params] */
export function go(view, id, params) {
  location.hash = href(view, id, params);
}

/** Another with each thing that somebody waits for, and each view that is opened. */
let turn = 0;

/**
 * What `work` comes to, for whoever is taken somewhere by it. It never settles once something else is waited for or another view is open.
 *
 * @template T
 * @param {Promise<T>} work
 * @returns {Promise<T>}
 */
export function awaited(work) {
  const mine = ++turn;
  return new Promise((resolve, reject) => {
    work.then(
      (value) => mine === turn && resolve(value),
      (error) => mine === turn && reject(error),
    );
  });
}

export function useRoute() {
  const [hash, setHash] = useState(() => location.hash);
  const follow = () => {
    turn++;
    setHash(location.hash);
  };
  useListener(window, "hashchange", follow);
  // Listened to only after the first drawing: the address may have changed since.
  useEffect(follow, []);
  return parseHash(hash);
}

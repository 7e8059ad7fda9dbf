/** Which view is open: the address after `#`. A number or a text never goes in there, for it would stay in the browser's history. */
import { useEffect, useState } from "./vendor/htm-preact.js";

/** @typedef {{ view: string, id: number | null, params: Readonly<Record<string, string>> }} Route */

/** `#/message/7?event=3` @param {string} hash @returns {Route} */
export function parseHash(hash) {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [view, rawId = ""] = path.split("/");
  const id = /^\d{1,15}$/.test(rawId) ? Number(rawId) : null;
  return { view: view || "events", id, params: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * @param {string} view
 * @param {number | null} [id]
 * @param {Readonly<Record<string, string | number | null | undefined>>} [params] empty ones are left out
 * @returns {string}
 */
export function href(view, id = null, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value != null && value !== "") query.set(name, `${value}`);
  return `#/${view}${id === null ? "" : `/${id}`}${query.size > 0 ? `?${query}` : ""}`;
}

/**
 * Opens a view.
 *
 * @param {string} view
 * @param {number | null} [id]
 * @param {Readonly<Record<string, string | number | null | undefined>>} [params]
 */
export function go(view, id, params) {
  location.hash = href(view, id, params);
}

/** @returns {Route} */
export function useRoute() {
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return parseHash(hash);
}

/** Which view is open, read from the part of the address after `#`. Phone numbers never go there: browsers keep it in their history. */
import { useEffect, useState } from "preact/hooks";
import { useListener } from "./parts.tsx";

export type Params = Readonly<Record<string, string | number | null | undefined>>;

export interface OpenView {
  readonly view: string;
  readonly id: number | null;
  readonly params: Readonly<Record<string, string>>;
}

/** Reads `#/lane/7?event=3`. */
export function parseHash(hash: string): OpenView {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [view, id = ""] = path.split("/");
  return {
    view: view || "events",
    id: /^\d{1,15}$/.test(id) ? Number(id) : null,
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Omits params without a value. */
export function href(view: string, id: number | null = null, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, `${value}`);
  }
  const path = id === null ? `#/${view}` : `#/${view}/${id}`;
  return query.size > 0 ? `${path}?${query}` : path;
}

/** Opens a view. */
export function go(view: string, id?: number | null, params?: Params): void {
  location.hash = href(view, id, params);
}

/** Grows with each `ifStillWanted` and each opened view. */
let turn = 0;

/**
 * The result of `work`, for code that then opens a view or a dialog. The promise never settles once other work was started or another
 * view was opened: a late answer must not take the user away from there.
 */
export function ifStillWanted<T>(work: Promise<T>): Promise<T> {
  turn += 1;
  const mine = turn;
  return new Promise((resolve, reject) => {
    work.then(
      (value) => mine === turn && resolve(value),
      (error) => mine === turn && reject(error),
    );
  });
}

export function useRoute(): OpenView {
  const [hash, setHash] = useState(() => location.hash);
  const follow = () => {
    turn += 1;
    setHash(location.hash);
  };
  useListener(window, "hashchange", follow);
  // The address may have changed between the first render and the first effect.
  useEffect(follow, []);
  return parseHash(hash);
}

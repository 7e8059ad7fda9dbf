/** What a route of the inspector's JSON API is, and what it is given. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { InboxOperator } from "../receiver/operator.ts";
import type { Access } from "./api.ts";
import type { Asset, Assets } from "./assets.ts";
import type { InspectorAnswer, JsonReading } from "./http.ts";
import type { Watch } from "./watch.ts";

/** A POST changes something or carries a filter that may name somebody; it needs the CSRF header. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Below `api/`, with `:id` where a number is: `messages/:id/reveal`. */
  readonly path: string;
  readonly access: Access;
  run(call: Call): Promise<InspectorAnswer> | InspectorAnswer;
}

/** One call of a route by somebody who may make it. */
export interface Call {
  readonly inbox: InboxOperator;
  readonly watch: Watch;
  readonly clock: Clock;
  /** Each act and reveal is told to it: who, what, which. */
  readonly logger: Logger;
  readonly access: Access;
  readonly by: string;
  /** That of `:id`; 0 where the path has none. */
  readonly id: number;
  readonly query: URLSearchParams;
  /** At most 64 KiB. */
  readJson(): Promise<JsonReading>;
  /** Asks `authorize` again: what the same request may do by now. */
  reauthorize(): Promise<Access | false>;
  /** Aborts when whoever asked is gone, and when the inspector is closed. */
  readonly signal: AbortSignal;
}

// What a path leads to: the page, one of its files, or a route of the JSON API.

export type Place =
  | { readonly kind: "page" }
  | { readonly kind: "asset"; readonly asset: Asset }
  | { readonly kind: "api"; readonly routes: readonly Route[]; readonly id: number }
  | { readonly kind: "nothing" };

/** A path below the one where the inspector is mounted; null for any other. */
export type Match = (pathname: string) => Place | null;

const NOTHING: Place = { kind: "nothing" };
const API = "/api/";
const ASSETS = "/assets/";

/** Paths are compared as they were written: none that leads somewhere has an encoded character in it. */
export function matcher(path: string, { files }: Assets, table: readonly Route[]): Match {
  const patterns = table.map((route) => ({ route, pattern: patternOf(route.path) }));
  const matchApi = (name: string): Place => {
    const found = patterns.flatMap(({ route, pattern }) => {
      const match = pattern.exec(name);
      return match === null ? [] : [{ route, id: Number(match[1] ?? 0) }];
    });
    const [first] = found;
    if (first === undefined || !Number.isSafeInteger(first.id)) return NOTHING;
    return { kind: "api", routes: found.map(({ route }) => route), id: first.id };
  };
  return (pathname) => {
    if (!pathname.startsWith(path)) return null;
    const below = pathname.slice(path.length);
    if (below === "" || below === "/") return { kind: "page" };
    if (!below.startsWith("/")) return null;
    if (below.startsWith(API)) return matchApi(below.slice(API.length));
    const asset = below.startsWith(ASSETS) ? files.get(below.slice(ASSETS.length)) : undefined;
    return asset === undefined ? NOTHING : { kind: "asset", asset };
  };
}

/** The methods that a place has, as the header Allow names them. */
export function methodsOf(place: Place): readonly string[] {
  if (place.kind === "api") return place.routes.map(({ method }) => method);
  return place.kind === "nothing" ? ["GET", "HEAD", "POST"] : ["GET", "HEAD"];
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(":id", "([1-9]\\d{0,15})")}$`);
}

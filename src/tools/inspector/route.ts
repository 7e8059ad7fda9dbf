/** The routes of the inspector's JSON API: what a route is, what it gets, and which path leads to it. */
import type { Clock } from "../../internal/clock.ts";
import type { Logger } from "../../internal/logger.ts";
import type { InboxOperator } from "../../receiver/operator.ts";
import type { Access } from "./api.ts";
import type { Asset, Assets } from "./assets.ts";
import type { InspectorAnswer, JsonReading } from "./http.ts";
import type { Samples } from "./look.ts";

/** A route is a POST if it changes something, or takes a filter that may name a person. A POST needs the CSRF header. */
export interface ApiRoute {
  readonly method: "GET" | "POST";
  /** Below `api/`, with `:id` for a number: `lanes/:id/reveal`. */
  readonly path: string;
  readonly access: Access;
  run(call: ApiCall): Promise<InspectorAnswer> | InspectorAnswer;
}

/** One call of a route, after its sender was authorized. */
export interface ApiCall {
  readonly inbox: InboxOperator;
  readonly samples: Samples;
  readonly clock: Clock;
  /** Logs each act and each reveal: who, what, which. */
  readonly logger: Logger;
  readonly access: Access;
  readonly by: string;
  /** The number in place of `:id`; 0 if the path has none. */
  readonly id: number;
  readonly query: URLSearchParams;
  /** At most 64 KiB. */
  readJson(): Promise<JsonReading>;
  /** Calls `authorize` again for the same request. */
  reauthorize(): Promise<Access | false>;
  /** Aborts when the client disconnects, and when the inspector is closed. */
  readonly signal: AbortSignal;
}

/** What a path leads to. */
export type PathTarget =
  | { readonly kind: "page" }
  | { readonly kind: "asset"; readonly asset: Asset }
  | { readonly kind: "api"; readonly routes: readonly ApiRoute[]; readonly id: number }
  | { readonly kind: "nothing" };

/** Null for a path outside of the inspector's own path. */
export type PathMatch = (pathname: string) => PathTarget | null;

const NOTHING: PathTarget = { kind: "nothing" };
const API = "/api/";
const ASSETS = "/assets/";

/** Paths are compared without decoding: no valid path has an encoded character. */
export function matcher(path: string, { files }: Assets, table: readonly ApiRoute[]): PathMatch {
  const patterns = table.map((route) => ({ route, pattern: patternOf(route.path) }));
  const matchApi = (name: string): PathTarget => {
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

/** The methods for the header Allow. */
export function methodsOf(place: PathTarget): readonly string[] {
  if (place.kind === "api") return place.routes.map(({ method }) => method);
  return place.kind === "nothing" ? ["GET", "HEAD", "POST"] : ["GET", "HEAD"];
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(":id", "([1-9]\\d{0,15})")}$`);
}

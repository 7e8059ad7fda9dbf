/** What a source sees of a request besides its body: the request as it came, and the part that is kept. */

/** Headers of fetch, or a record such as that of `http.IncomingMessage`, whose names may be in any case. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns the value of one header, or undefined when it is absent. Several values are joined with ", ", as HTTP defines it, so a
 * duplicate never hides behind the first one. If a record has the name in lower case, as those of node:http do, other spellings are
 * ignored.
 *
 * @param name lower-case name
 */
export function readHeader(source: HeaderSource, name: string): string | undefined {
  if (hasGetter(source)) return source.get(name) ?? undefined;
  return Object.hasOwn(source, name) ? joined(source[name]) : readInAnyCase(source, name);
}

/** A record may contain a header named "get"; only a function `get` means fetch's `Headers`. */
function hasGetter(source: HeaderSource): source is { get(name: string): string | null } {
  return typeof source.get === "function";
}

function readInAnyCase(
  source: Readonly<Record<string, string | readonly string[] | undefined>>,
  name: string,
): string | undefined {
  const values: string[] = [];
  for (const key of Object.keys(source)) {
    if (key.length !== name.length || key.toLowerCase() !== name) continue;
    const value = joined(source[key]);
    if (value !== undefined) values.push(value);
  }
  return values.length === 0 ? undefined : values.join(", ");
}

function joined(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.length > 0 ? value.join(", ") : undefined;
}

/** What an adapter passes of a request, besides its body. */
export interface RequestParts {
  readonly headers: HeaderSource;
  /** As it was requested: a path with its query, or a whole URL. Default: `/`. */
  readonly url?: string | undefined;
}

/** A request as it came. Nothing in it is verified. */
export interface RequestHead {
  /** As requested, without the query. Behind a proxy it may differ from the one that the provider called. */
  readonly path: string;
  /** As it came, without the question mark. Empty if there is none. */
  readonly query: string;
  /** The value of a header, by its lower-case name. Several values are joined with ", ". */
  header(name: string): string | undefined;
}

/** A class, because one is made for each delivery. */
export class Head implements RequestHead {
  readonly #parts: RequestParts;

  constructor(parts: RequestParts) {
    this.#parts = parts;
  }

  header(name: string): string | undefined {
    return readHeader(this.#parts.headers, name);
  }

  get path(): string {
    const { url = "/" } = this.#parts;
    const [target = ""] = url.split(/[?#]/, 1);
    const begin = SCHEME.test(target) ? target.indexOf("/", target.indexOf("//") + 2) : 0;
    return begin === -1 ? "/" : target.slice(begin);
  }

  get query(): string {
    return queryIn(this.#parts.url ?? "");
  }
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** The query of a path or a URL, without the question mark. Empty if there is none. */
export function queryIn(url: string): string {
  const [target = ""] = url.split("#", 1);
  const mark = target.indexOf("?");
  return mark === -1 ? "" : target.slice(mark + 1);
}

/**
 * What a source keeps of a request next to the body, and nothing else: it is all that is left of the request after a restart. The headers of
 * its list `keep`; `?name`, one parameter of the query, decoded; `:query` and `:path`, if the list names them; and `:proven`, the text outside
 * of the body that `verify` proved.
 */
export interface Kept {
  /** A header by its lower-case name, or one of the others. Undefined if it was absent, or is not in the list. */
  header(name: string): string | undefined;
}

/** Names in a list `keep` that are not headers: no header has a colon in its name. */
export const QUERY = ":query";
const PATH = ":path";
const PROVEN = ":proven";
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const PARAMETER = /^\?[!-~]{1,64}$/;
/** Characters. Each is stored with every event. */
const LONGEST_KEPT = 1_024;
export const LONGEST_QUERY = 8_192;

export function isHeaderName(name: unknown): boolean {
  return typeof name === "string" && HEADER_NAME.test(name);
}

/** Whether a list `keep` may name it. */
export function isKeptName(name: unknown): boolean {
  return name === QUERY || name === PATH || isHeaderName(name) || (typeof name === "string" && PARAMETER.test(name));
}

/** What is stored of a request, as JSON; null for nothing. */
export function keptText(keep: readonly string[], head: RequestHead, proven: string | undefined): string | null {
  const kept: [string, string][] = [];
  const add = (name: string, value: string | undefined, longest = LONGEST_KEPT) => {
    if (value !== undefined && value !== "") kept.push([name, value.slice(0, longest).toWellFormed()]);
  };
  for (const name of keep) {
    if (name === QUERY) add(name, head.query, LONGEST_QUERY);
    else if (name === PATH) add(name, head.path);
    else if (name.startsWith("?")) add(name, new URLSearchParams(head.query).get(name.slice(1)) ?? undefined);
    else add(name, head.header(name));
  }
  add(PROVEN, proven);
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

export function keptFrom(text: string | null): Kept {
  if (text === null) return NOTHING_KEPT;
  const kept = JSON.parse(text) as Readonly<Record<string, string>>;
  return { header: (name) => (Object.hasOwn(kept, name) ? kept[name] : undefined) };
}

const NOTHING_KEPT: Kept = { header: () => undefined };

/** Strict W3C `traceparent`, version 00, neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The delivery's trace context, if it is strictly valid. Any other text must not reach logs and traces. */
export function readTrace(headers: HeaderSource): string | null {
  const text = readHeader(headers, "traceparent");
  return text !== undefined && TRACEPARENT.test(text) ? text : null;
}

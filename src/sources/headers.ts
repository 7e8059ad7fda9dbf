/** Reads one header of a request, whatever form its headers have. */

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

/** The headers that a source keeps next to a body: those of its list, and no others. */
export interface Kept {
  /** The value of a header, by its lower-case name. Several values are joined with ", ". `:query` names the query of the URL. */
  header(name: string): string | undefined;
}

export const NOTHING_KEPT: Kept = { header: () => undefined };

/** Strict W3C `traceparent`, version 00, neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The delivery's trace context, if it is strictly valid. Any other text must not reach logs and traces. */
export function readTrace(headers: HeaderSource): string | null {
  const text = readHeader(headers, "traceparent");
  return text !== undefined && TRACEPARENT.test(text) ? text : null;
}

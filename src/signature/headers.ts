/** Reads the service's two headers from whatever a framework calls headers. */

/** Header that holds the timestamp text; that text itself is what is signed (DLV-5). Written `X-Service-Timestamp` on the wire. */
export const TIMESTAMP_HEADER = "x-service-timestamp";
/** Header that holds the signature. Written `X-Service-Signature` on the wire. */
export const SIGNATURE_HEADER = "x-service-signature";

/** Headers as fetch has them, or a record as `http.IncomingMessage` has it; names of a record may be in any case. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The value of one header, or undefined when it is absent. Several values are joined with ", ", as HTTP defines it,
 * so a duplicate never hides behind the first one. In a record that has the name in lower case, as node:http makes it, other
 * spellings are not looked for.
 *
 * @param name lower-case name
 */
export function readHeader(source: HeaderSource, name: string): string | undefined {
  if (hasGetter(source)) return source.get(name) ?? undefined;
  if (Object.hasOwn(source, name)) return joined(source[name]);
  const values: string[] = [];
  for (const key of Object.keys(source)) {
    if (key.length !== name.length || key.toLowerCase() !== name) continue;
    const value = joined(source[key]);
    if (value !== undefined) values.push(value);
  }
  return values.length === 0 ? undefined : values.join(", ");
}

/** A record may hold a header that is called "get"; only a function makes it fetch's `Headers`. */
function hasGetter(source: HeaderSource): source is { get(name: string): string | null } {
  return typeof source.get === "function";
}

function joined(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.length > 0 ? value.join(", ") : undefined;
}

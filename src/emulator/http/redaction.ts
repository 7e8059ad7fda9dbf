/** Takes secrets out of what is logged (TOK-22). */

export const REDACTED = "[redacted]";

/** Headers that carry credentials, also those of schemes that the service does not have (GEN-6). */
const SECRET_HEADER = /auth|cookie|secret|token|api-?key/i;
/** Also as users misspell them: `clientSecret`, `Authorization`. `previousSecretValidUntil` is none. */
const SECRET_FIELD = /(?:secret|password|authorization|access_?token|api_?key)$/i;
/** The fields of a token request whose values may be seen. Other names may be a secret that lost its own. */
const SHOWN_FIELDS: ReadonlySet<string> = new Set(["grant_type", "scope", "audience", "resource"]);

export function redactedHeaders(headers: Headers): Record<string, string> {
  const entries = [...headers].map(([name, value]) => [name, SECRET_HEADER.test(name) ? REDACTED : value]);
  return Object.fromEntries(entries);
}

/** A JSON value without what its field names call a secret, whatever its type; flags such as `hasCurrentSecret` stay. */
export function redacted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => {
    const isFlag = typeof field === "boolean" || field === null;
    return [name, SECRET_FIELD.test(name) && !isFlag ? REDACTED : redacted(field)];
  });
  return Object.fromEntries(entries);
}

/** The fields of a token request: what is known to be harmless, and a client id when it is one. */
export function redactedCredentials(
  fields: Iterable<readonly [string, unknown]>,
  isClientId: (value: unknown) => boolean,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    if (SHOWN_FIELDS.has(name) && typeof value === "string") shown[name] = value;
    else if (name === "client_id") shown[name] = isClientId(value) ? value : "[unknown]";
    else if (name === "client_secret") shown[name] = REDACTED;
    else shown["other fields"] = REDACTED;
  }
  return shown;
}

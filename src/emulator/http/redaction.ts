/** Takes secrets out of what is logged (TOK-22). */

const REDACTED = "[redacted]";

/** Headers that carry credentials, also those of schemes that the service does not have (GEN-6). */
const SECRET_HEADER = /auth|cookie|secret|token|api-?key/i;
/** Also as users misspell them, and a client's id, which may be a secret in the wrong place. `previousSecretValidUntil` is none. */
const SECRET_FIELD = /(?:secret|password|authorization|access_?token|api_?key|^client_?id)$/i;
/** What `grant_type` may show; anything else may be a form whose separators are wrong. */
const GRANTS: ReadonlySet<unknown> = new Set(["client_credentials", "password", "authorization_code", "refresh_token"]);

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

/** The fields of a token request: those whose value is a known one, and that there were others. */
export function redactedCredentials(
  fields: Iterable<readonly [string, unknown]>,
  clientIds: ReadonlySet<unknown>,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    if (name === "grant_type") shown[name] = GRANTS.has(value) ? value : "[unknown]";
    else if (name === "client_id") shown[name] = clientIds.has(value) ? value : "[unknown]";
    else if (name === "client_secret") shown[name] = REDACTED;
    // Not even their names: one may be a secret that lost its own.
    else shown["other fields"] = REDACTED;
  }
  return shown;
}

/** Takes secrets out of what is logged (TOK-22). */

const REDACTED = "[redacted]";

/** Headers that carry credentials, also those of schemes that the service does not have (GEN-6). */
const SECRET_HEADER = /auth|cookie|secret|token|password|credential|api-?key|signing-?key/i;
/** Looked for in a field's name without its hyphens and underscores, also as users misspell or extend it. */
const SECRET_FIELD = /secret|password|passphrase|credential|authorization|token|(?:api|signing|private)key/i;
/** A field's name in a form, in XML, or in JSON that was cut. Each word is begun once: anybody may send a long one. */
const NAME = /\b(\w+)["']?\s*[:=>]/g;
/** A client's id, which may be a secret in the wrong place. */
const CLIENT_ID = /^clientid$/i;
/** What `grant_type` may show; anything else may be a form whose separators are wrong. */
const GRANTS: ReadonlySet<unknown> = new Set(["client_credentials", "password", "authorization_code", "refresh_token"]);

export function redactedHeader(name: string, value: string): string {
  return SECRET_HEADER.test(name) ? REDACTED : withoutCredentials(value);
}

/** A path without what stands behind the token route's: a client secret that somebody put there. */
export function redactedPath(path: string): string {
  return path.replace(/(\/api\/auth\/token\/*)[^/].*$/is, `$1${REDACTED}`);
}

/** A URL without user name and password; any other text as it is. A secret in its query cannot be told from other values. */
export function withoutCredentials(url: string): string {
  // Any slashes after http(s), and what comes before the last @ of the host: as a URL is parsed, though this need not be one.
  return url.replace(/^(\s*(?:https?:[\\/\s]*|[a-z][a-z\d+.-]*:\/\/))(?:[^\\/?#\s][^\\/?#]*)?@/i, "$1");
}

/** A JSON value without what its field names call a secret, whatever its type, and without credentials in URLs. */
export function redacted(value: unknown): unknown {
  if (typeof value === "string") return withoutCredentials(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [
    name,
    isSecret(name, field) ? REDACTED : redacted(field),
  ]);
  return Object.fromEntries(entries);
}

/** A text from anybody: JSON as `redacted` has it. Of another one that has such a field only the length: it may end anywhere. */
export function redactedText(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const shown = JSON.stringify(redacted(value));
    return shown === JSON.stringify(value) ? text : shown;
  } catch {
    // No JSON, or nested deeper than the stack.
    return hasNamedSecret(text) ? `[${Buffer.byteLength(text)} bytes]` : withoutCredentials(text);
  }
}

function hasNamedSecret(text: string): boolean {
  for (const [, name = ""] of text.replace(/[-_]/g, "").matchAll(NAME)) if (SECRET_FIELD.test(name)) return true;
  return false;
}

/** Flags such as `hasCurrentSecret` are none, nor are two fields of the service's own answers. */
function isSecret(name: string, value: unknown): boolean {
  if (typeof value === "boolean" || value === null) return false;
  if (name === "previousSecretValidUntil" && typeof value === "number") return false;
  if (name === "token_type" && value === "bearer") return false;
  const bare = name.replace(/[^a-z\d]/gi, "");
  return SECRET_FIELD.test(bare) || CLIENT_ID.test(bare);
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

/** What a token request says, read from a form or from JSON (TOK-2). */
import { parseJsonObject } from "../http/body.ts";
import { parseForm } from "../http/form.ts";

/** Its fields by name; an empty one counts as absent, as OAuth has it. */
export type TokenRequest =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly problem: string };

export function readTokenRequest(headers: Headers, rawBody: Uint8Array | null): TokenRequest {
  if (rawBody === null) return { ok: false, problem: "The body is longer than 1 MiB." };
  // Parameters such as a charset change nothing: a form is ASCII, JSON is UTF-8.
  const [mediaType = ""] = (headers.get("content-type") ?? "").split(";");
  switch (mediaType.trim().toLowerCase()) {
    case "application/x-www-form-urlencoded":
      return withoutEmpty(parseForm(new TextDecoder().decode(rawBody)));
    case "application/json":
    case "": // As on the other routes, JSON needs no content type (GEN-8).
      return fromJson(rawBody);
    default:
      return { ok: false, problem: "The body must be a form or JSON, and its content type must say so." };
  }
}

function fromJson(rawBody: Uint8Array): TokenRequest {
  if (rawBody.byteLength === 0) return { ok: true, fields: new Map() };
  const parsed = parseJsonObject(rawBody);
  if (!parsed.ok) return { ok: false, problem: "The body is not a JSON object in UTF-8." };
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed.value as object)) {
    if (typeof value === "string") fields.set(name, value);
    else if (KNOWN_FIELDS.has(name)) return { ok: false, problem: `${name} must be a string.` };
  }
  return withoutEmpty({ ok: true, fields });
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set(["grant_type", "client_id", "client_secret"]);

function withoutEmpty(request: TokenRequest): TokenRequest {
  if (!request.ok) return request;
  return { ok: true, fields: new Map([...request.fields].filter(([, value]) => value !== "")) };
}

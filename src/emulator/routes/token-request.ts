/** What a token request says, read from a form or from JSON (TOK-2). */
import type { Body } from "../http/body.ts";
import { parseForm } from "../http/form.ts";

/** Its fields by name; an empty one counts as absent, as OAuth has it. */
export type TokenRequest =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly problem: string };

export function readTokenRequest(headers: Headers, body: Body): TokenRequest {
  if (body.bytes === null) return { ok: false, problem: "The body is longer than 1 MiB." };
  // Parameters such as a charset change nothing: a form is ASCII, JSON is UTF-8.
  const [mediaType = ""] = (headers.get("content-type") ?? "").split(";");
  switch (mediaType.trim().toLowerCase()) {
    case "application/x-www-form-urlencoded":
      return withoutEmpty(parseForm(new TextDecoder().decode(body.bytes)));
    case "application/json":
    case "": // As on the other routes, JSON needs no content type (GEN-8).
      return fromJson(body);
    default:
      return { ok: false, problem: "The body must be a form or JSON, and its content type must say so." };
  }
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set(["grant_type", "client_id", "client_secret"]);

function fromJson(body: Body): TokenRequest {
  if (body.bytes?.byteLength === 0) return { ok: true, fields: new Map() };
  const parsed = body.json();
  if (!parsed.ok) return { ok: false, problem: "The body is not a JSON object in UTF-8." };
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries(parsed.value)) {
    if (!KNOWN_FIELDS.has(name)) fields.set(name, "of no interest");
    else if (typeof value === "string") fields.set(name, value);
    else return { ok: false, problem: `${name} must be a string.` };
  }
  return withoutEmpty({ ok: true, fields });
}

function withoutEmpty(request: TokenRequest): TokenRequest {
  if (!request.ok) return request;
  return { ok: true, fields: new Map([...request.fields].filter(([, value]) => value !== "")) };
}

/** How many fields the specification does not know (GEN-9). Their names are not told: a malformed form has its secret there. */
export function unknownFieldCount(fields: ReadonlyMap<string, string>): number {
  return [...fields.keys()].filter((name) => !KNOWN_FIELDS.has(name)).length;
}

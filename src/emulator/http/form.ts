/** Reads an `application/x-www-form-urlencoded` text strictly: what a lenient reader would guess at is refused. */

export type Form =
  | { readonly ok: true; readonly fields: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly problem: string };

/** The fields of a form. A name that comes twice is refused (TOK-19), as is a percent sign that begins no UTF-8. */
export function parseForm(text: string): Form {
  const fields = new Map<string, string>();
  for (const part of text.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = formDecoded(equals === -1 ? part : part.slice(0, equals));
    const value = formDecoded(equals === -1 ? "" : part.slice(equals + 1));
    if (name === null || value === null) return { ok: false, problem: "The form is not percent-encoded UTF-8." };
    if (fields.has(name)) return { ok: false, problem: "The form has a parameter more than once." };
    fields.set(name, value);
  }
  return { ok: true, fields };
}

/** Undoes form encoding; null for a text that cannot be encoded so. */
export function formDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

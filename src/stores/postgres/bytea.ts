/** Bytes as the server writes them: in hexadecimal, or escaped, where a role, a database or an effect has set `bytea_output` so. */

/** A backslash, or any byte by its three octal digits. */
const ESCAPED = /\\(\\|[0-3][0-7]{2})/g;

export function bytesOf(text: string): Buffer {
  // Nothing that is escaped begins so: a backslash is written twice.
  if (text.startsWith("\\x")) return Buffer.from(text.slice(2), "hex");
  const characters = text.replace(ESCAPED, (_, escaped: string) =>
    escaped === "\\" ? escaped : String.fromCharCode(Number.parseInt(escaped, 8)),
  );
  return Buffer.from(characters, "latin1");
}

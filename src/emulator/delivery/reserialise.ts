/** The same JSON content in other bytes, as a retry may repeat it (DLV-8). */

/**
 * Another spelling of `json` for each `variant` from 1: keys in reverse order, and so many spaces of indentation (at most 10).
 * What has none, being no JSON or nested too deeply, stays as it is: an imported state can hold any text, and its deliveries
 * must come to their end.
 */
export function reserialised(json: string, variant: number): string {
  try {
    return JSON.stringify(reversed(JSON.parse(json)), null, Math.min(variant, 10));
  } catch {
    return json;
  }
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, field]) => [name, reversed(field)]),
  );
}

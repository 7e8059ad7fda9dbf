/** Whether a value is an AbortSignal, by what is used of it: an application may bring another implementation. */

export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, throwIfAborted }: Partial<Record<keyof AbortSignal, unknown>> = value;
  return typeof aborted === "boolean" && typeof addEventListener === "function" && typeof throwIfAborted === "function";
}

/** What kind of value something is, by what is used of it: an application may bring another implementation. */

// Whether a value is an object with fields.

/** An object that is no list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value can be waited for, whoever made it: libraries have promises of their own. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

// Whether a value is an AbortSignal, by what is used of it: an application may bring another implementation.

export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, throwIfAborted }: Partial<Record<keyof AbortSignal, unknown>> = value;
  return typeof aborted === "boolean" && typeof addEventListener === "function" && typeof throwIfAborted === "function";
}

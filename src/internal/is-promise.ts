/** Whether a value can be waited for, whoever made it: libraries have promises of their own. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** Whether the application is being built or developed. `next build` loads every route, on a machine without its secrets. */

/** True in `next build`. */
export function isBuilding(): boolean {
  return process.env.NEXT_PHASE === "phase-production-build";
}

/**
 * True when `NODE_ENV` is `development`, or when it is not set and standard error is a terminal. False in tests: vitest and Jest set
 * `NODE_ENV` to `test`, and `node --test` sets a variable of its own.
 */
export function isDevelopment(): boolean {
  const { NODE_ENV, NODE_TEST_CONTEXT } = process.env;
  if (NODE_ENV === "development") return true;
  return !NODE_ENV && NODE_TEST_CONTEXT === undefined && process.stderr.isTTY === true;
}

/** True in a build for undefined, null and `""`, which an unset variable becomes in `process.env.NAME ?? ""`. */
export function isUnsetInBuild(value: unknown): boolean {
  return (value ?? "") === "" && isBuilding();
}

/**
 * Runs `make` now, so that a mistake fails at construction. Only in a build, and only when one of `values` is unset, `make` runs at
 * each use instead and fails there.
 */
export function atFirstUse<T>(values: readonly unknown[], make: () => T): () => T {
  if (values.some(isUnsetInBuild)) return make;
  const made = make();
  return () => made;
}

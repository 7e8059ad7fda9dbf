/** What this process is doing: building an application, or running one that is being developed. */

// Settings that are not set while an application is built: `next build` loads every route, on a machine without its secrets.

/** True in `next build`. */
export function isBuilding(): boolean {
  return process.env.NEXT_PHASE === "phase-production-build";
}

/** True in a build for undefined, null and `""`, which an unset variable becomes in `process.env.NAME ?? ""`. */
export function isUnsetInBuild(value: unknown): boolean {
  return (value ?? "") === "" && isBuilding();
}

/**
 * Runs `make` now, so that a mistake fails at construction. Only in a build, and only when one of `values` is not set, `make` runs at
 * each use instead, and fails there.
 */
export function atFirstUse<T>(values: readonly unknown[], make: () => T): () => T {
  if (values.some(isUnsetInBuild)) return make;
  const made = make();
  return () => made;
}

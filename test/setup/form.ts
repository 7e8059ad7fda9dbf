/**
 * `npm test` has two forms: the quick one, and with `FULL=1` the whole. A test or a group with `{ tags: "full" }`, or a file with
 * `@module-tag full` in its first comment, runs in the whole only.
 */

declare module "vitest" {
  interface TestTags {
    tags: "full";
  }
}

export const FULL = process.env.FULL === "1";

/** How often something is tried: a property's runs, repetitions, rows. */
export function sized({ quick, full }: { readonly quick: number; readonly full: number }): number {
  return FULL ? full : quick;
}

/** The rows of a table: in the quick form one of each kind. */
export function rows<Row>(all: readonly Row[], isQuick: (row: Row) => boolean): readonly Row[] {
  return FULL ? all : all.filter(isQuick);
}

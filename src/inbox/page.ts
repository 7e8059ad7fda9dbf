/** A page of what a query found; that there is more shows in a row more than it holds. */
import type { Page } from "./operations.ts";

/** @param rows - as many as the page holds and, if there are more, at least another one */
export function pageOf<Row, Item extends { readonly id: number }>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
): Page<Item> {
  const items = rows.slice(0, limit).map(toItem);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, next: last?.id ?? null };
}

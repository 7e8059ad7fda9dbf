/** Many rows in one statement: each column is an array. */
import { arrayOf, type ElementType, isElementType } from "./arrays.ts";

/** Names and types of a table's columns, in the order of the values. */
export type Columns = readonly (readonly [name: string, type: ElementType])[];

export type Values = readonly unknown[];

/** Columns written as `name type`, separated by commas. */
export function columns(text: string): Columns {
  return text.split(",").map((column) => {
    const [name = "", type = ""] = column.trim().split(" ");
    if (!isElementType(type)) throw new RangeError(`Column ${name} has no type that is written in batches: ${type}.`);
    return [name, type];
  });
}

/** `unnest($1::bigint[], …)`, from the parameter after `offset` on. */
export function unnested(columns: Columns, offset: number): string {
  return `unnest(${columns.map(([, type], index) => `$${offset + index + 1}::${type}[]`).join(", ")})`;
}

/** `id, name`, or `t.id, t.name` of a table. */
export function named(columns: Columns, table?: string): string {
  return columns.map(([name]) => (table === undefined ? name : `${table}.${name}`)).join(", ");
}

/**
 * The rows as one array per column. One that holds nothing is empty: `unnest` fills up with nulls what ends before the longest, which the
 * first column is, since it is never null.
 */
export function transposed(columns: Columns, rows: readonly Values[]): Buffer[] {
  return columns.map(([, type], index) => {
    const values = rows.map((row) => row[index]);
    return arrayOf(type, values.every(isNothing) ? [] : values);
  });
}

const isNothing = (value: unknown): boolean => value === null || value === undefined;

/** `name = new.name, …` of all columns but the first, which finds the row. */
export function assigned(columns: Columns): string {
  return columns
    .slice(1)
    .map(([name]) => `${name} = new.${name}`)
    .join(", ");
}

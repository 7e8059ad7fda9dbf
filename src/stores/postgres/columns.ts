/** Many rows in one statement: each column is an array. */

/** Names and types of a table's columns, in the order of the values. */
export type Columns = readonly (readonly [name: string, type: string])[];

export type Values = readonly unknown[];

/** `unnest($1::bigint[], …)`, from the parameter after `offset` on. */
export function unnested(columns: Columns, offset: number): string {
  return `unnest(${columns.map(([, type], index) => `$${offset + index + 1}::${type}[]`).join(", ")})`;
}

export function named(columns: Columns): string {
  return columns.map(([name]) => name).join(", ");
}

/** Types whose values need no quotes in an array's text. */
const PLAIN = new Set(["bigint", "int", "smallint", "boolean"]);

/** The rows as one array per column. Those of numbers are written out here: pg quotes and escapes each, which takes five times as long. */
export function transposed(columns: Columns, rows: readonly Values[]): unknown[] {
  return columns.map(([, type], index) => {
    const values = rows.map((row) => row[index]);
    return PLAIN.has(type) ? plainArray(values) : values;
  });
}

/** An array of numbers or booleans as Postgres reads it. */
export function plainArray(values: readonly unknown[]): string {
  return `{${values.map((value) => value ?? "null").join(",")}}`;
}

/** `name = new.name, …` of all columns but the first, which finds the row. */
export function assigned(columns: Columns): string {
  return columns
    .slice(1)
    .map(([name]) => `${name} = new.${name}`)
    .join(", ");
}

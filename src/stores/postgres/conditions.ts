/** Puts a `where` together from the filters that were given. */

export class Conditions {
  readonly values: unknown[] = [];
  readonly #sql: string[] = [];

  /** `?` in `sql` becomes the parameter; nothing is added for an undefined value. */
  add(value: unknown, sql: string): void {
    if (value === undefined) return;
    this.values.push(value);
    this.#sql.push(sql.replaceAll("?", `$${this.values.length}`));
  }

  get where(): string {
    return this.#sql.length === 0 ? "" : `where ${this.#sql.join(" and ")}`;
  }
}

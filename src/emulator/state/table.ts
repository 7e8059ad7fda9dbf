/** A table of records by id, in insertion order, that tells a listener of each change. Records are replaced, never changed. */

/** Called after each change; `record` is undefined for a removal. */
export type ChangeListener = (table: string, id: string, record: unknown) => void;

export class Table<T> {
  readonly name: string;
  readonly #records = new Map<string, T>();
  readonly #onChange: ChangeListener;

  constructor(name: string, onChange: ChangeListener) {
    this.name = name;
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#records.size;
  }

  has(id: string): boolean {
    return this.#records.has(id);
  }

  get(id: string): T | undefined {
    return this.#records.get(id);
  }

  put(id: string, record: T): void {
    this.#records.set(id, record);
    this.#onChange(this.name, id, record);
  }

  /** Replaces some fields of a record; a record that is gone stays gone. */
  update(id: string, fields: Partial<T>): void {
    const record = this.#records.get(id);
    if (record !== undefined) this.put(id, { ...record, ...fields });
  }

  remove(id: string): void {
    if (this.#records.delete(id)) this.#onChange(this.name, id, undefined);
  }

  clear(): void {
    for (const id of [...this.#records.keys()]) this.remove(id);
  }

  entries(): MapIterator<[string, T]> {
    return this.#records.entries();
  }

  values(): MapIterator<T> {
    return this.#records.values();
  }

  /** The record that has been there longest. */
  oldest(): [string, T] | undefined {
    return this.#records.entries().next().value;
  }
}

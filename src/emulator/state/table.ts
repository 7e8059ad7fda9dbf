/** A table of records by id, in insertion order, that tells a listener of each change. Records are replaced, never changed. */

/** One change of a table: a new record has no `previous`, a removed one no `record`. */
export interface Change {
  readonly table: string;
  readonly id: string;
  readonly record: unknown;
  readonly previous: unknown;
}

/** Called after each change. */
export type ChangeListener = (change: Change) => void;

export class Table<T> {
  readonly name: string;
  readonly #records = new Map<string, T>();
  readonly #onChange: ChangeListener;
  /** Walks on from the oldest record: a walk that began anew each time would pass by all that was removed before. */
  #walk: MapIterator<[string, T]>;
  /** Where the walk stands: the oldest id, unless it was not asked for yet. */
  #oldestId: string | undefined;

  constructor(name: string, onChange: ChangeListener) {
    this.name = name;
    this.#onChange = onChange;
    this.#walk = this.#records.entries();
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
    const previous = this.#records.get(id);
    this.#records.set(id, record);
    this.#onChange({ table: this.name, id, record, previous });
  }

  /** Replaces some fields of a record; a record that is gone stays gone. */
  update(id: string, fields: Partial<T>): void {
    const record = this.#records.get(id);
    if (record !== undefined) this.put(id, { ...record, ...fields });
  }

  remove(id: string): void {
    const previous = this.#records.get(id);
    if (!this.#records.delete(id)) return;
    if (id === this.#oldestId) this.#oldestId = undefined;
    this.#onChange({ table: this.name, id, record: undefined, previous });
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
    if (this.#oldestId === undefined) this.#oldestId = this.#nextOldest();
    const id = this.#oldestId;
    return id === undefined ? undefined : [id, this.#records.get(id) as T];
  }

  #nextOldest(): string | undefined {
    const next = this.#walk.next();
    if (!next.done) return next.value[0];
    // A walk that reached the end never goes on, not even over what came later.
    this.#walk = this.#records.entries();
    return this.#walk.next().value?.[0];
  }
}

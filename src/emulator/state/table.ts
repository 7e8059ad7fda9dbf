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

/** A record's place among the others. */
interface Place<T> {
  readonly id: string;
  record: T;
  older: Place<T> | undefined;
  newer: Place<T> | undefined;
}

/**
 * The places are a list besides the map's own order: a map finds its first entry only by passing all that was removed before
 * it, and an iterator that waits there keeps everything that the map ever held.
 */
export class Table<T> {
  readonly name: string;
  readonly #places = new Map<string, Place<T>>();
  readonly #onChange: ChangeListener;
  #oldest: Place<T> | undefined;
  #newest: Place<T> | undefined;

  constructor(name: string, onChange: ChangeListener) {
    this.name = name;
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#places.size;
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  get(id: string): T | undefined {
    return this.#places.get(id)?.record;
  }

  put(id: string, record: T): void {
    const place = this.#places.get(id);
    const previous = place?.record;
    if (place === undefined) this.#append({ id, record, older: this.#newest, newer: undefined });
    else place.record = record;
    this.#onChange({ table: this.name, id, record, previous });
  }

  /** Replaces some fields of a record; a record that is gone stays gone. */
  update(id: string, fields: Partial<T>): void {
    const record = this.get(id);
    if (record !== undefined) this.put(id, { ...record, ...fields });
  }

  remove(id: string): void {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    if (place.older === undefined) this.#oldest = place.newer;
    else place.older.newer = place.newer;
    if (place.newer === undefined) this.#newest = place.older;
    else place.newer.older = place.older;
    // Else what was removed would hold on to what came after it.
    place.newer = undefined;
    this.#onChange({ table: this.name, id, record: undefined, previous: place.record });
  }

  clear(): void {
    for (const id of [...this.#places.keys()]) this.remove(id);
  }

  *entries(): Generator<[string, T], undefined> {
    for (const [id, { record }] of this.#places) yield [id, record];
  }

  *values(): Generator<T, undefined> {
    for (const { record } of this.#places.values()) yield record;
  }

  /** The record that has been there longest. */
  oldest(): [string, T] | undefined {
    return this.#oldest === undefined ? undefined : [this.#oldest.id, this.#oldest.record];
  }

  #append(place: Place<T>): void {
    if (this.#newest === undefined) this.#oldest = place;
    else this.#newest.newer = place;
    this.#newest = place;
    this.#places.set(place.id, place);
  }
}

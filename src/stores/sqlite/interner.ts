/** Numbers for texts that repeat: client ids and event types. Remembers only what was committed. */
import type { Change, Query } from "./statements.ts";

/** The statements of one interned table. */
export interface InternTable {
  readonly idOf: Query<{ readonly id: number }>;
  readonly nameOf: Query<{ readonly name: string }>;
  readonly insert: Change;
}

/** Texts are as many as clients and event types; a signer who invents more must not fill the memory. */
const MOST_REMEMBERED = 10_000;
const MOST_CHARACTERS = 1_000_000;

export class Interner {
  readonly #ids = new Map<string, number>();
  readonly #names = new Map<number, string>();
  readonly #fresh = new Map<string, number>();
  #characters = 0;
  #pruned = 0;

  /**
   * Forgets all of it when names were pruned since, by whatever process. To be called first in each transaction.
   *
   * @param pruned - how often names were pruned, as the transaction reads it
   */
  asOf(pruned: number): void {
    if (pruned === this.#pruned) return;
    this.#pruned = pruned;
    this.#forget();
  }

  /** The number of `name`; made in the transaction under way if it is new. */
  id(table: InternTable, name: string): number {
    const known = this.#ids.get(name) ?? this.#fresh.get(name);
    if (known !== undefined) return known;
    const id = table.idOf.get(name)?.id ?? Number(table.insert.run(name).lastInsertRowid);
    this.#fresh.set(name, id);
    return id;
  }

  name(table: InternTable, id: number): string {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const row = table.nameOf.get(id);
    if (row === undefined) throw new RangeError(`The inbox refers to name ${id}, which it does not hold.`);
    this.#fresh.set(row.name, id);
    return row.name;
  }

  committed(): void {
    if (this.#fresh.size === 0) return;
    for (const name of this.#fresh.keys()) this.#characters += name.length;
    if (this.#ids.size + this.#fresh.size > MOST_REMEMBERED || this.#characters > MOST_CHARACTERS) this.#forget();
    for (const [name, id] of this.#fresh) {
      this.#ids.set(name, id);
      this.#names.set(id, name);
    }
    this.#fresh.clear();
  }

  rolledBack(): void {
    this.#fresh.clear();
  }

  #forget(): void {
    this.#ids.clear();
    this.#names.clear();
    this.#characters = 0;
  }
}

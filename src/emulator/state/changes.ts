/** What changed since the state was last written: per record its newest content, and whether the file has it. */
import type { Change } from "./table.ts";

/** `move`: removed and put again, so that its place is at the end. */
export type Write =
  | { readonly kind: "insert" | "update" | "move"; readonly record: unknown }
  | { readonly kind: "remove" };

export class Changes {
  readonly #tables = new Map<string, Map<string, Write>>();

  add({ table, id, record, previous }: Change): void {
    const writes = this.#tables.get(table) ?? new Map<string, Write>();
    this.#tables.set(table, writes);
    const earlier = writes.get(id);
    if (record === undefined) {
      // What the file never had needs no removal.
      if (earlier?.kind === "insert") writes.delete(id);
      else writes.set(id, { kind: "remove" });
    } else if (previous === undefined) {
      // At the end of the batch as well: the order of inserts is the order on load.
      writes.delete(id);
      writes.set(id, { kind: earlier === undefined ? "insert" : "move", record });
    } else {
      const kind = earlier === undefined || earlier.kind === "remove" ? "update" : earlier.kind;
      writes.set(id, { kind, record });
    }
  }

  get isEmpty(): boolean {
    for (const writes of this.#tables.values()) if (writes.size > 0) return false;
    return true;
  }

  *[Symbol.iterator](): Generator<readonly [table: string, id: string, write: Write]> {
    for (const [table, writes] of this.#tables) for (const [id, write] of writes) yield [table, id, write];
  }

  clear(): void {
    this.#tables.clear();
  }
}

/** Counters, gauges and ids of one transaction: read at most once, written once per name that changed. */
import { STATE } from "../codes.ts";
import type { Statements } from "./statements.ts";

export type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
export type Counter =
  | "accepted"
  | "duplicates"
  | "conflicts"
  | "late"
  | "handled"
  | "unhandled"
  | "retried"
  | "dead_lettered"
  | "discarded"
  | "gaps_skipped"
  | "quarantined";
type Sequence = "next_event" | "next_lane";

export interface LedgerSnapshot {
  readonly changes: ReadonlyMap<string, number>;
  readonly next: ReadonlyMap<Sequence, number>;
}

export class Ledger {
  readonly #sql: Statements;
  #changes: Map<string, number> = new Map();
  #next: Map<Sequence, number> = new Map();
  #newestSigned = -1;
  #serviceResigns = false;
  #witness: number | null = null;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  add(name: Gauge | Counter, by = 1): void {
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }

  /** The id the next row will get; it is used up by `take`. */
  peek(name: Sequence): number {
    const known = this.#next.get(name);
    if (known !== undefined) return known;
    const value = this.#sql.readCounter.get(name)?.value ?? 1;
    this.#next.set(name, value);
    return value;
  }

  take(name: Sequence): number {
    const id = this.peek(name);
    this.#next.set(name, id + 1);
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1);
    return id;
  }

  signed(at: number): void {
    if (at > this.#newestSigned) this.#newestSigned = at;
  }

  resigned(): void {
    this.#serviceResigns = true;
  }

  /** Notes an event that is no longer pending once the transaction is committed. */
  finished(event: number): void {
    this.#witness ??= event;
  }

  /** Whether the transaction was committed by somebody else, as an event that was finished in it tells. */
  wasCommitted(): boolean {
    return this.#witness !== null && this.#sql.eventState.get(this.#witness)?.state !== STATE.pending;
  }

  /** What `restore` goes back to when a savepoint is rolled back. */
  snapshot(): LedgerSnapshot {
    return { changes: new Map(this.#changes), next: new Map(this.#next) };
  }

  restore({ changes, next }: LedgerSnapshot): void {
    this.#changes = new Map(changes);
    this.#next = new Map(next);
  }

  flush(): void {
    for (const [name, by] of this.#changes) if (by !== 0) this.#sql.addCounter.run(by, name);
    if (this.#newestSigned >= 0) this.#sql.raiseCounter.run(this.#newestSigned, "newest_signed");
    if (this.#serviceResigns) this.#sql.raiseCounter.run(1, "service_resigns");
  }
}

/** What a transaction counted, for this instance's row of counters and gauges. */
import type { Tally } from "../../inbox/lanes/state.ts";
import type { InboxStats } from "../../inbox/store.ts";
import { COUNTERS } from "../codes.ts";
import type { Session } from "./session.ts";

type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
type Counter = keyof InboxStats["counters"];

const GAUGES = ["pending", "dead", "held", "held_bytes", "blocked"] as const satisfies readonly Gauge[];

const COLUMNS = [...GAUGES, ...Object.values(COUNTERS)];

/** One row per instance, so that processes do not wait for each other; parameters follow `offset`. */
export const TALLY = (offset: number): string =>
  `update {}.tally set ${COLUMNS.map((name, index) => `${name} = ${name} + $${offset + 3 + index + 1}::bigint`).join(", ")},
    newest_signed = greatest(newest_signed, $${offset + 2}::bigint), resigned = resigned or $${offset + 3}::boolean
   where instance = $${offset + 1}::int returning 1`;

export class TallySheet implements Tally {
  readonly #instance: number;
  readonly #changes = new Map<string, number>();
  #newestSigned: number | null = null;
  #resigned = false;

  constructor(instance: number) {
    this.#instance = instance;
  }

  get isBlank(): boolean {
    return this.#newestSigned === null && !this.#resigned && [...this.#changes.values()].every((by) => by === 0);
  }

  count(name: Counter, by = 1): void {
    this.#add(COUNTERS[name], by);
  }

  gauge(name: Gauge, by: number): void {
    this.#add(name, by);
  }

  signed(at: number): void {
    this.#newestSigned = Math.max(this.#newestSigned ?? at, at);
  }

  resigned(): void {
    this.#resigned = true;
  }

  /** For a transaction that writes nothing of lanes. */
  async write(session: Session): Promise<void> {
    if (!this.isBlank) await session.rows("tally", TALLY(0), this.values());
  }

  /** As the parameters of `TALLY`. */
  values(): unknown[] {
    return [this.#instance, this.#newestSigned, this.#resigned, ...COLUMNS.map((name) => this.#changes.get(name) ?? 0)];
  }

  #add(name: string, by: number): void {
    if (by !== 0) this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }
}

/** The sums of all instances. */
export const STATS = `select ${COLUMNS.map((name) => `sum(${name})::bigint as ${name}`).join(", ")},
  max(newest_signed) as newest_signed, bool_or(resigned) as resigned from {}.tally`;

export type StatsRow = Readonly<Record<Gauge | (typeof COUNTERS)[Counter], number>> & {
  readonly newest_signed: number | null;
  readonly resigned: boolean;
};

export function countersOf(row: StatsRow): InboxStats["counters"] {
  const entries = Object.entries(COUNTERS).map(([name, column]) => [name, row[column]]);
  return Object.fromEntries(entries) as InboxStats["counters"];
}

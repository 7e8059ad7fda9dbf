/** What a transaction counted, for this instance's rows of counters and gauges. */
import type { Tally } from "../../inbox/lanes/state.ts";
import type { InboxStats } from "../../inbox/store.ts";
import { COUNTERS } from "../codes.ts";
import type { Session } from "./session.ts";

type Gauge = "pending" | "dead" | "held" | "held_bytes" | "blocked";
type Counter = keyof InboxStats["counters"];

const GAUGES = ["pending", "dead", "held", "held_bytes", "blocked"] as const satisfies readonly Gauge[];

const COLUMNS = [...GAUGES, ...Object.values(COUNTERS)];

/** The row for what runs in no slot, such as an operator's act or pruning; turns add to it too. */
export const SHARED = 0;

const NAMED = ["instance", "slot", "newest_signed", "resigned", ...COLUMNS];
/** How many parameters `TALLY` takes. */
export const TALLY_WIDTH = NAMED.length;
const TYPES = ["int", "smallint", "bigint", "boolean", ...COLUMNS.map(() => "bigint")];

/**
 * A row is locked from here to its transaction's commit. So instances have rows of their own, and within one those transactions that
 * commit at the same time, each in its slot; a row is made when it is first added to. Parameters follow `offset`.
 */
export const TALLY = (offset: number): string =>
  `insert into {}.tally as t (${NAMED.join(", ")}) values (${TYPES.map((type, index) => `$${offset + index + 1}::${type}`).join(", ")})
   on conflict (instance, slot) do update set ${COLUMNS.map((name) => `${name} = t.${name} + excluded.${name}`).join(", ")},
    newest_signed = greatest(t.newest_signed, excluded.newest_signed), resigned = t.resigned or excluded.resigned returning 1`;

export class TallySheet implements Tally {
  readonly #instance: number;
  readonly #slot: number;
  readonly #changes = new Map<string, number>();
  #newestSigned: number | null = null;
  #resigned = false;

  constructor(instance: number, slot: number = SHARED) {
    this.#instance = instance;
    this.#slot = slot;
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
    const counts = COLUMNS.map((name) => this.#changes.get(name) ?? 0);
    return [this.#instance, this.#slot, this.#newestSigned, this.#resigned, ...counts];
  }

  #add(name: string, by: number): void {
    if (by !== 0) this.#changes.set(name, (this.#changes.get(name) ?? 0) + by);
  }
}

const SUMS = `${COLUMNS.map((name) => `sum(${name})::bigint as ${name}`).join(", ")},
  max(newest_signed) as newest_signed, bool_or(resigned) as resigned`;

/** The sums of all instances. */
export const STATS = `select ${SUMS} from {}.tally`;

/** What instances that are gone had counted goes to instance 0. Who lives all the same makes itself another row when it counts next. */
export const FOLD = `with gone as (
    delete from {}.tally where instance <> 0 and instance not in (select id from {}.instance) returning *)
  update {}.tally t set ${COLUMNS.map((name) => `${name} = t.${name} + g.${name}`).join(", ")},
    newest_signed = greatest(t.newest_signed, g.newest_signed), resigned = t.resigned or g.resigned
  from (select ${SUMS} from gone having count(*) > 0) g where t.instance = 0`;

export type StatsRow = Readonly<Record<Gauge | (typeof COUNTERS)[Counter], number>> & {
  readonly newest_signed: number | null;
  readonly resigned: boolean;
};

export function countersOf(row: StatsRow): InboxStats["counters"] {
  const entries = Object.entries(COUNTERS).map(([name, column]) => [name, row[column]]);
  return Object.fromEntries(entries) as InboxStats["counters"];
}

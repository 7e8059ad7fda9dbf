/** What the databases of the inbox share: numbers for words, the schema, and the rules that an inbox has. */
import { SetupError } from "../errors.ts";
import type { LaneOrder } from "../inbox/lane-key.ts";
import type { EventState, InboxStats, LaneStatus, Outcome, QuarantineRecord } from "../inbox/record.ts";
import type { InboxRules, OpenContext } from "../inbox/store.ts";

// The numbers that stand for words in the databases of the inbox. They are stored: none ever changes its meaning.

/** `none`: the lane has one event. */
export const ORDER = { none: 0, sequence: 1, position: 2, arrival: 3 } as const satisfies Record<
  LaneOrder | "none",
  number
>;

/** From `ready` on, a lane waits to be claimed (index `oncehook_lane_due`): one comparison, which a list of codes is not. */
export const STATUS = {
  idle: 0,
  blocked: 1,
  leased: 2,
  ready: 3,
  gap: 4,
  backoff: 5,
} as const satisfies Record<LaneStatus, number>;

export const STATE = { pending: 0, done: 1, dead: 2, late: 3, discarded: 4 } as const satisfies Record<
  EventState,
  number
>;

export const OUTCOME = { handled: 1, unhandled: 2, filtered: 3 } as const satisfies Record<Outcome, number>;

/** What pruning has still to do with a finished event. Null while it is pending. */
export const KEEP = {
  /** Body and identity; it was handled. */
  handled: 1,
  /** Body and identity; it was late, unhandled or discarded. */
  other: 2,
  /** The identity alone. */
  identity: 3,
  /** All of it, as a dead letter. */
  dead: 4,
} as const;

/** What pruning has still to do with an event. */
export function keepOf(event: {
  readonly state: EventState;
  readonly outcome: Outcome | null;
  readonly hasBody: boolean;
}) {
  if (event.state === "pending") return null;
  if (event.state === "dead") return KEEP.dead;
  if (!event.hasBody) return KEEP.identity;
  return event.outcome === "handled" ? KEEP.handled : KEEP.other;
}

/** The names of the counters, as columns and rows hold them. */
export const COUNTERS = {
  accepted: "accepted",
  duplicates: "duplicates",
  conflicts: "conflicts",
  late: "late",
  handled: "handled",
  unhandled: "unhandled",
  filtered: "filtered",
  retried: "retried",
  deadLettered: "dead_lettered",
  discarded: "discarded",
  gapsSkipped: "gaps_skipped",
  quarantined: "quarantined",
} as const satisfies Record<keyof InboxStats["counters"], string>;

export const HELD = { held: 0, replayed: 1, discarded: 2 } as const satisfies Record<QuarantineRecord["state"], number>;

const wordsOf = <T extends string>(codes: Record<T, number>): ReadonlyMap<number, T> =>
  new Map(Object.entries<number>(codes).map(([word, code]) => [code, word as T]));

const orders = wordsOf(ORDER);
const statuses = wordsOf(STATUS);
const states = wordsOf(STATE);
const outcomes = wordsOf(OUTCOME);
const helds = wordsOf(HELD);

function word<T extends string>(words: ReadonlyMap<number, T>, code: number): T {
  const found = words.get(code);
  if (found === undefined) throw new RangeError(`The inbox holds the code ${code}, which this version does not know.`);
  return found;
}

export const orderCode = (order: LaneOrder | null): number => ORDER[order ?? "none"];
export function orderWord(code: number): LaneOrder | null {
  const order = word(orders, code);
  return order === "none" ? null : order;
}

export const statusWord = (code: number): LaneStatus => word(statuses, code);
export const stateWord = (code: number): EventState => word(states, code);
export const outcomeWord = (code: number | null): Outcome | null => (code === null ? null : word(outcomes, code));
export const heldWord = (code: number): QuarantineRecord["state"] => word(helds, code);

/** A tenant as rows have it: null would be unequal to itself in a unique index. */
export const tenantText = (tenant: string | null): string => tenant ?? "";
export const tenantOf = (text: string): string | null => (text === "" ? null : text);

/** Kinds as rows have them: a JSON list. It keeps their order, and a kind may contain any character. */
export const kindsText = (kinds: readonly string[]): string => JSON.stringify(kinds);
export const kindsOf = (text: string): readonly string[] => JSON.parse(text);

/** The id of an event that is a digest is half as long as bytes. */
const DIGEST = /^[0-9a-f]{64}$/;

/** An id as rows have it. */
export function idValue(id: string): string | Buffer {
  return DIGEST.test(id) ? Buffer.from(id, "hex") : id;
}

export function idText(value: string | Buffer | null): string | null {
  return typeof value === "object" && value !== null ? value.toString("hex") : value;
}

// Which schema an inbox has, which one this version has, and what lies between: one rule for all databases.

export interface Migration {
  readonly sql: string;
  /**
   * The oldest schema whose code can still read and write the inbox after it: additions leave it as it is. Never lower than in the migration
   * before.
   */
  readonly minReader: number;
}

/** What an inbox records about itself; both are 0 when there is none yet. */
export interface FoundSchema {
  readonly schema: number;
  readonly minReader: number;
}

/**
 * The migrations that an inbox lacks, in their order.
 *
 * @throws SetupError `inbox_too_new`, or `migration_needed` with `"check"`
 */
export function missingMigrations(
  { schema, minReader }: FoundSchema,
  known: readonly Migration[],
  mode: OpenContext["migrate"],
): readonly Migration[] {
  const newest = known.length;
  const fields = { schema, newest };
  if (schema > newest && minReader > newest) {
    const message = `The inbox has schema ${schema}; this version knows ${newest}: upgrade oncehook.`;
    throw new SetupError("inbox_too_new", message, { fields });
  }
  const missing = known.slice(schema);
  if (missing.length > 0 && mode === "check") {
    const message = `The inbox has schema ${schema} and needs ${newest}: open it once with migrate: "auto".`;
    throw new SetupError("migration_needed", message, { fields });
  }
  return missing;
}

// The receiver's rules as rows of an inbox's `meta`.

/** Values by key. */
type RulesMeta = Readonly<Record<"name" | "tolerance_ms", string>>;

export function rulesToMeta({ name, toleranceMs }: InboxRules): RulesMeta {
  return { name, tolerance_ms: String(toleranceMs) };
}

/** Null when no receiver has opened the inbox yet. */
export function rulesFromMeta(meta: Readonly<Record<keyof RulesMeta, unknown>>): InboxRules | null {
  if (meta.name === undefined) return null;
  return { name: String(meta.name), toleranceMs: Number(meta.tolerance_ms) };
}

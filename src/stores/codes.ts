/** The numbers that stand for words in the databases of the inbox. They are stored: none ever changes its meaning. */
import type { EventState, InboxStats, LaneStatus, LaneTag, Outcome, QuarantineRecord } from "../inbox/record.ts";

export const TAG = { outbound: 0, inbound: 1, unlaned: 2 } as const satisfies Record<LaneTag, number>;

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

export const OUTCOME = { handled: 1, unhandled: 2 } as const satisfies Record<Outcome, number>;

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
  retried: "retried",
  deadLettered: "dead_lettered",
  discarded: "discarded",
  gapsSkipped: "gaps_skipped",
  quarantined: "quarantined",
} as const satisfies Record<keyof InboxStats["counters"], string>;

export const HELD = { held: 0, replayed: 1, discarded: 2 } as const satisfies Record<QuarantineRecord["state"], number>;

const wordsOf = <T extends string>(codes: Record<T, number>): ReadonlyMap<number, T> =>
  new Map(Object.entries<number>(codes).map(([word, code]) => [code, word as T]));

const tags = wordsOf(TAG);
const statuses = wordsOf(STATUS);
const states = wordsOf(STATE);
const outcomes = wordsOf(OUTCOME);
const helds = wordsOf(HELD);

function word<T extends string>(words: ReadonlyMap<number, T>, code: number): T {
  const found = words.get(code);
  if (found === undefined) throw new RangeError(`The inbox holds the code ${code}, which this version does not know.`);
  return found;
}

export const tagWord = (code: number): LaneTag => word(tags, code);
export const statusWord = (code: number): LaneStatus => word(statuses, code);
export const stateWord = (code: number): EventState => word(states, code);
export const outcomeWord = (code: number | null): Outcome | null => (code === null ? null : word(outcomes, code));
export const heldWord = (code: number): QuarantineRecord["state"] => word(helds, code);

/** The history checker of all proof programmes: what was sent, acknowledged, handled and stored, against what the package promises. */
import { createHash } from "node:crypto";
import { PLACES } from "../../src/inbox/gap.ts";
import type { EventRecord, HandlerContext } from "../../src/index.ts";

/** An event, by what names it. */
export interface EventName {
  /** Hex, as `ctx.identity`; for a quarantined body whatever names it. */
  readonly identity: string;
  /** The name of its lane, such as a message's id; of an event by itself, what names that. */
  readonly lane: string;
  /** Its position in a lane by position. 0 for an event that has no place in an order. */
  readonly sequence: number;
}

/** What a handler wrote through `ctx.commit`: a row in the transaction of its event's completion. */
export interface HandledEffect extends EventName {
  readonly attempt: number;
  /** `ctx.outOfOrder`, or handed to `onLate`. */
  readonly late: boolean;
  /** `ctx.replay`. */
  readonly replay: boolean;
  /** What the sender hid in the body, to know it again; the identity if it hid nothing. */
  readonly marker?: string;
  /** What is wrong with the event as the handler received it; null for nothing. */
  readonly wrong?: string | null;
}

/** An event or a quarantined body as the inbox has it. */
export interface StoredEvent extends EventName {
  /** One of `ENDS`, or `pending`. */
  readonly state: string;
  /** How often it was handed out. */
  readonly attempts: number;
  readonly marker?: string;
}

/** All that is known of a run. */
export interface History {
  /** Identities of what was sent with a good signature, acknowledged or not. */
  readonly sent: Iterable<string>;
  /** Markers, or identities, of what was sent without one. */
  readonly forged: Iterable<string>;
  /** Identities that were answered with 2xx. */
  readonly acknowledged: Iterable<string>;
  /** Identities that an operator replayed, once for each act. */
  readonly replayed: Iterable<string>;
  /** Identities past their retention: their rows may be gone. Default none. */
  readonly pruned?: Iterable<string>;
  /** In the order in which they were committed. */
  readonly effects: readonly HandledEffect[];
  /** In the order in which they were accepted. */
  readonly stored: readonly StoredEvent[];
  /** `running` while events may be pending, as after a kill; `ended` when everything had its time. */
  readonly moment: "running" | "ended";
  /** Whether handlers write an effect for each event, so that one which is handled without it is half done. */
  readonly everyHandlerWrites: boolean;
  /** Identities of events whose handlers write none all the same. Default none. */
  readonly withoutEffect?: Iterable<string>;
}

export const BREACHES = {
  lost: "acknowledged and not stored",
  "stored twice": "in two rows",
  stateless: "stored in none of the states",
  unsettled: "neither handled nor visible as anything else at the end",
  double: "in effect more often than once and once for each replay",
  "half done": "handled without its effect, or in effect without being handled",
  stale: "in effect by an attempt that was not its last",
  inversion: "in effect after a later event of its message, flagged neither late nor replay",
  "not late": "in effect or recorded as late, and no later event of its message was accepted before it",
  phantom: "in effect, stored or acknowledged, and never sent",
  forged: "in effect, stored or acknowledged, and signed by nobody",
  wrong: "passed to the handler of another source, or other than it was sent",
} as const;

export type BreachKind = keyof typeof BREACHES;

export interface Breach {
  readonly kind: BreachKind;
  readonly identity: string;
  /** Names the event. */
  readonly event: string;
}

/** The ends that an accepted event is visible in (I10). */
const ENDS: readonly string[] = ["handled", "unhandled", "filtered", "late", "dead", "discarded", "quarantined"];

/** Every breach; none is what is hoped for. Whether there was enough to look at is for the caller to say. */
export function breachesOf(history: History): readonly Breach[] {
  return [
    ...lost(history),
    ...amiss(history),
    ...doubles(history),
    ...halves(history),
    ...inversions(history),
    ...notLate(history),
    ...unsent(history),
    ...history.effects.flatMap((effect) => (effect.wrong ? [breach("wrong", effect, effect.wrong)] : [])),
  ];
}

/** One line for each breach, the first 20 of each kind. */
export function breachLines(breaches: readonly Breach[]): string[] {
  return [...byKind(breaches)].flatMap(([kind, found]) =>
    found.slice(0, 20).map(({ event }) => `${kind}: ${event} (${BREACHES[kind]})`),
  );
}

/** The counts in words: `no breach`, or how many of each kind. */
export function breachCounts(breaches: readonly Breach[]): string {
  if (breaches.length === 0) return "no breach";
  return [...byKind(breaches)].map(([kind, found]) => `${found.length} ${kind}`).join(", ");
}

/** The effect of an event, as its handler writes it. `own`: what the handler knows without the inbox. */
export function effectOf(ctx: HandlerContext<unknown>, own: Partial<HandledEffect> = {}): HandledEffect {
  const { identity, meta, attempt, outOfOrder, replay } = ctx;
  const { lane, id, sequence } = meta;
  return { ...{ identity, lane: lane ?? id ?? identity, sequence, attempt, late: outOfOrder, replay }, ...own };
}

/** What a handler that was registered by `onAny` or `onLate` knows without the inbox: Stripe's event says its position itself. */
export function ownOf(event: object, handler: "on" | "late"): Partial<HandledEffect> {
  return { late: handler === "late", ...("created" in event && { sequence: Number(event.created) }) };
}

export function storedEventOf(
  event: Pick<EventRecord, "lane" | "ownId" | "sequence" | "eventType" | "state" | "outcome" | "attempts">,
): StoredEvent {
  const { lane, sequence, attempts } = event;
  const state = endOf(event);
  const isByPosition = lane.order === "position";
  return {
    identity: documentedIdentity(event),
    lane: laneOf(event),
    sequence: isByPosition ? Math.floor(sequence / PLACES) : sequence,
    // What is late by position goes to `onLate`, and is never only recorded.
    state: isByPosition && state === "late" ? "only recorded" : state,
    attempts,
  };
}

/** As `EventName.lane`. */
export function laneOf({ lane, ownId }: Pick<EventRecord, "lane" | "ownId">): string {
  return lane.name ?? ownId ?? "";
}

/**
 * The identity as docs/architecture.md defines it, and not by the code that computes it for the inbox: a checker that shared the code would
 * share its mistakes.
 */
export function documentedIdentity({
  lane: { source, tenant, name, order },
  ownId,
  sequence,
  eventType,
}: Pick<EventRecord, "lane" | "ownId" | "sequence" | "eventType">): string {
  const own = order === "sequence" ? [name, sequence, eventType] : [ownId];
  return createHash("sha256")
    .update(JSON.stringify([source, tenant, ...own]))
    .digest("hex");
}

/** The state that a record of the inbox is visible in: `handled`, `unhandled` and `filtered` are all `done`. */
export function endOf({ state, outcome }: { readonly state: string; readonly outcome: string | null }): string {
  return state === "done" && outcome !== null ? outcome : state;
}

function* lost({ acknowledged, stored, pruned = [] }: History): Iterable<Breach> {
  const kept = new Set(pruned);
  for (const { identity } of stored) kept.add(identity);
  for (const identity of new Set(acknowledged))
    if (!kept.has(identity)) yield { kind: "lost", identity, event: identity };
}

/** Rows that are wrong by themselves. */
function* amiss({ stored, moment }: History): Iterable<Breach> {
  const seen = new Set<string>();
  for (const row of stored) {
    if (seen.has(row.identity)) yield breach("stored twice", row);
    seen.add(row.identity);
    if (row.state === "pending") {
      if (moment === "ended") yield breach("unsettled", row);
    } else if (!ENDS.includes(row.state)) yield breach("stateless", row, `is ${row.state}`);
  }
}

function* doubles({ effects, replayed }: History): Iterable<Breach> {
  const replaysLeft = counted(replayed);
  const ordinary = new Set<string>();
  for (const effect of effects) {
    const { identity, replay, attempt } = effect;
    const replays = replaysLeft.get(identity) ?? 0;
    if (replay ? replays === 0 : ordinary.has(identity)) {
      yield breach("double", effect, `attempt ${attempt}`);
    }
    if (replay) replaysLeft.set(identity, replays - 1);
    else ordinary.add(identity);
  }
}

/** Effects and completions are one transaction, so neither is without the other; and the attempt is the one that holds the lease. */
function* halves(history: History): Iterable<Breach> {
  const { effects, stored, replayed, everyHandlerWrites, pruned = [], withoutEffect = [] } = history;
  const inEffect = new Set(effects.map(({ identity }) => identity));
  const rows = new Map(stored.map((row) => [row.identity, row]));
  const again = new Set(replayed);
  const gone = new Set(pruned);
  const unwritten = new Set(withoutEffect);
  for (const row of stored) {
    const mustWrite = everyHandlerWrites && row.state === "handled" && !unwritten.has(row.identity);
    if (mustWrite && !inEffect.has(row.identity)) yield breach("half done", row, "has no effect");
  }
  for (const effect of effects) {
    const row = rows.get(effect.identity);
    // A replay counts its attempts anew, and may be under way.
    if (again.has(effect.identity) || (row === undefined && gone.has(effect.identity))) continue;
    if (row?.state !== "handled") {
      yield breach("half done", effect, `is ${row?.state ?? "not stored"}`);
    } else if (row.attempts !== effect.attempt) {
      yield breach("stale", effect, `attempt ${effect.attempt} of ${row.attempts}`);
    }
  }
}

/** Of two at one position the one that was accepted first is the earlier. So the last effect of a lane is that of its highest position. */
function* inversions({ effects, stored }: History): Iterable<Breach> {
  const accepted = acceptedAs(stored);
  const highest = new Map<string, HandledEffect>();
  for (const effect of effects) {
    const { identity, lane, sequence, late, replay } = effect;
    const before = highest.get(lane) ?? effect;
    const tie = sequence === before.sequence;
    const isBefore = tie
      ? Number(accepted.get(identity)) < Number(accepted.get(before.identity))
      : sequence < before.sequence;
    if (isBefore && !late && !replay) yield breach("inversion", effect, `after ${nameOf(before)}`);
    // A replay takes no place in the sequence: what comes after one asked for ahead of its turn is not late.
    if (!replay && !isBefore) highest.set(lane, effect);
  }
}

/** Equal sequences are not late, whichever came first. */
function* notLate({ effects, stored, pruned }: History): Iterable<Breach> {
  // The later event may be past its retention.
  if (pruned !== undefined) return;
  const accepted = acceptedAs(stored);
  const highest = new Map<string, number>();
  const highestBefore = stored.map(({ lane, sequence }) => {
    const before = highest.get(lane) ?? 0;
    highest.set(lane, Math.max(before, sequence));
    return before;
  });
  for (const effect of effects) {
    const before = highestBefore[accepted.get(effect.identity) ?? -1] ?? Number.POSITIVE_INFINITY;
    if (effect.late && !effect.replay && before <= effect.sequence) yield breach("not late", effect);
  }
  for (const [index, row] of stored.entries()) {
    if (row.state === "late" && (highestBefore[index] ?? 0) <= row.sequence) yield breach("not late", row);
  }
}

/** When each was accepted, by identity. */
function acceptedAs(stored: readonly StoredEvent[]): ReadonlyMap<string, number> {
  return new Map(stored.map(({ identity }, index) => [identity, index]));
}

function* unsent({ sent, forged, acknowledged, effects, stored }: History): Iterable<Breach> {
  const known = new Set(sent);
  const nobodys = new Set(forged);
  const seen = [
    ...stored.map((row) => ({ ...row, event: `${nameOf(row)} is stored` })),
    ...effects.map((effect) => ({ ...effect, event: `${nameOf(effect)} is in effect` })),
    ...[...new Set(acknowledged)].map((identity) => ({ identity, event: `${identity} is acknowledged` })),
  ] as readonly { readonly identity: string; readonly marker?: string; readonly event: string }[];
  for (const { identity, marker, event } of seen) {
    if (nobodys.has(identity) || (marker !== undefined && nobodys.has(marker)))
      yield { kind: "forged", identity, event };
    else if (!known.has(identity)) yield { kind: "phantom", identity, event };
  }
}

function counted(names: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function byKind(breaches: readonly Breach[]): Map<BreachKind, Breach[]> {
  const kinds = new Map<BreachKind, Breach[]>();
  for (const breach of breaches) {
    const found = kinds.get(breach.kind);
    if (found === undefined) kinds.set(breach.kind, [breach]);
    else found.push(breach);
  }
  return kinds;
}

function breach(kind: BreachKind, row: EventName, detail = ""): Breach {
  return { kind, identity: row.identity, event: `${nameOf(row)} ${detail}`.trimEnd() };
}

const nameOf = ({ identity, lane, sequence }: EventName) => `${lane} ${sequence} (${identity.slice(0, 12)})`;

/** What a seed decides before its world begins: the messages, how the receiver is set up, and all that goes wrong when. */
import type { GapWait } from "../../../src/index.ts";
import type { SourceName } from "../sources.ts";
import { Dice } from "./dice.ts";
import { backlogOf, othersOf, type Sending, sendingsOf } from "./sendings.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const YEAR = 365 * 24 * HOUR;

/** What befalls the process that reaches the `at`-th await of the world. */
export interface Mishap {
  readonly at: number;
  /** `dies` without a word, `stands still` and goes on as if nothing had been, or `restarts` as in a deployment. */
  readonly kind: "dies" | "stands still" | "restarts";
  /** Until it is there again, or goes on. */
  readonly forMs: number;
}

const TROUBLES = ["refuses", "does not commit", "answers are lost", "leases are not renewed", "is slow"] as const;

/** A while in which the store is not itself. */
export interface Trouble {
  readonly at: number;
  readonly forMs: number;
  /** It refuses, cannot commit, does what it is asked and fails to say so, cannot renew leases, or takes its time. */
  readonly kind: (typeof TROUBLES)[number];
}

/** The wall clock of the receivers' machine is wrong, for a while or from then on. */
export interface Jump {
  readonly at: number;
  readonly byMs: number;
  readonly forMs: number | null;
}

export interface OperatorsAct {
  readonly at: number;
  readonly kind: "replay" | "discard" | "unblock" | "release_gap";
  /** Which of those that it fits, 0 to 1. */
  readonly which: number;
}

export interface Course {
  readonly seed: number;
  readonly place: "memory" | "sqlite" | "postgres";
  readonly processes: 1 | 2;
  /** Whose events the inbox has. A process may lack any of them except the messaging service. */
  readonly sources: readonly SourceName[];
  /** How long events by position are held back. */
  readonly holdBackMs: number;
  readonly receiver: {
    readonly gapWait: GapWait;
    readonly concurrency: number;
    readonly leaseMs: number;
    readonly maxAttempts: number;
    readonly onDead: "continue" | "block";
    readonly ack: "stored" | "handled";
    readonly firstSequence: 1 | "any";
    readonly handlerTimeoutMs: number;
  };
  /** A rate of all processes together. */
  readonly rate: { readonly perSecond: number; readonly per: "inbox" | "source" | "message" } | null;
  /** How many handlers run at once in a process for each source. */
  readonly each: number | null;
  readonly takesLate: boolean;
  /** The share of events that the filter refuses, 0 to 1; null without a filter. */
  readonly filters: number | null;
  /** The share of attempts that go wrong in a handler, 0 to 1. */
  readonly handlersFail: number;
  /** The marker of an event whose handler always fails. */
  readonly poisoned: string | null;
  /** Most handlers take long or fail at once, so that a lease that was lost is often still at work when its event is claimed again. */
  readonly handlersAre: "mixed" | "slow or failing";
  /** The share of events whose handlers write an effect, 0 to 1. */
  readonly handlersWrite: number;
  /** The share of answers that the service does not hear, 0 to 1. */
  readonly answersLost: number;
  readonly sendings: readonly Sending[];
  readonly mishaps: readonly Mishap[];
  readonly troubles: readonly Trouble[];
  readonly jumps: readonly Jump[];
  readonly acts: readonly OperatorsAct[];
}

const FILTERS = [null, null, null, 0.1, 0.4];

/**
 * Whether the filter lets an event in. All deliveries of an event are decided alike, also one with other content. An event without an order is
 * always wanted: a filtered one would leave nothing to look at.
 */
export function isWanted({ seed, filters }: Course, source: SourceName, event: Filterable): boolean {
  if (filters === null || source === "code" || event.direction === "inbound") return true;
  const { messageId, sequence, eventType, id } = event;
  const name = id ?? (messageId === undefined ? JSON.stringify(event) : `${messageId} ${sequence} ${eventType}`);
  return !new Dice(seed, `filter of ${name}`).chance(filters);
}

/** What names an event of the messaging service, of Stripe, or of GitHub, whose body does. */
type Filterable = Partial<Readonly<Record<"id" | "messageId" | "sequence" | "eventType" | "direction", unknown>>>;

export function courseOf(seed: number, place: Course["place"]): Course {
  const dice = new Dice(seed, "course");
  // Some worlds are nearly calm, so that what goes wrong alone is seen too.
  const temper = dice.pick([0.2, 1, 1, 1.6]);
  const some = (most: number) => dice.whole(0, Math.round(most * temper));
  const list = <T>(length: number, make: () => T) => Array.from({ length }, make);
  const course: Course = {
    ...{ seed, place, sources: ["messages"], holdBackMs: 0, rate: null, each: null },
    filters: new Dice(seed, "filters").pick(FILTERS),
    processes: dice.chance(0.4) ? 2 : 1,
    receiver: receiverOf(dice),
    takesLate: dice.chance(0.7),
    ...{ handlersFail: dice.pick([0, 0.1, 0.3, 0.6]), handlersAre: "mixed", poisoned: null, handlersWrite: 1 },
    answersLost: dice.pick([0, 0.1, 0.3]) * temper,
    sendings: sendingsOf(new Dice(seed, "sendings"), temper),
    mishaps: list(some(2), () => mishapOf(dice)).toSorted((a, b) => a.at - b.at),
    troubles: list(some(1.5), () => ({
      at: dice.between(0, 10 * MINUTE),
      forMs: dice.spread(100, 2 * MINUTE),
      kind: dice.pick(TROUBLES),
    })),
    jumps: list(some(0.8), () => jumpOf(dice)),
    acts: list(some(2.5), () => ({
      at: dice.between(0, 20 * MINUTE),
      kind: dice.pick(["replay", "discard", "unblock", "release_gap"] as const),
      which: dice.next(),
    })),
  };
  return withLimits(withOthers(withPoison(withLostLeases(course)), temper));
}

/** In some worlds handlers may not start as they like. */
function withLimits(course: Course): Course {
  const dice = new Dice(course.seed, "limits");
  const per = dice.pick(["inbox", "source", "message"] as const);
  const perSecond = dice.pick([0.2, 1, 3, 20]);
  const each = dice.pick([1, 2]);
  return {
    ...course,
    rate: dice.chance(0.2) ? { perSecond, per } : null,
    each: dice.chance(0.15) ? each : null,
  };
}

/** A backlog of messages that come at once, under a rate, in which nothing goes wrong: how well it is kept can be measured. */
export function courseOfRate(place: Course["place"], per: "inbox" | "message"): Course {
  const dice = new Dice(RATED.messages, "a rate");
  return {
    ...{ seed: 0, place, processes: 2, sources: ["messages"], holdBackMs: 0, each: null, takesLate: true },
    ...{ rate: { perSecond: RATED.perSecond / (per === "inbox" ? 1 : RATED.keys), per } },
    ...{ handlersAre: "mixed", handlersFail: 0, poisoned: null, handlersWrite: 1, answersLost: 0, filters: null },
    receiver: { ...receiverOf(dice), concurrency: 1_000, leaseMs: 5 * SECOND, maxAttempts: 12, ack: "stored" },
    sendings: backlogOf(dice, RATED.messages),
    ...{ mishaps: [], troubles: [], jumps: [], acts: [] },
  };
}

/** Of one that can be measured. A key is the last digit of a message's id. */
export const RATED = { messages: 800, perSecond: 20, keys: 10 } as const;

/** In some worlds leases are short and get lost while their handlers run, and what is sent about them comes late or twice. */
function withLostLeases(course: Course): Course {
  const dice = new Dice(course.seed, "lost leases");
  if (!dice.chance(0.3)) return course;
  const troubles = course.sendings.slice(0, 4).map(({ at }): Trouble => {
    const kind = dice.pick(["answers are lost", "leases are not renewed"] as const);
    return { at: at + dice.spread(1, 2 * SECOND), forMs: dice.spread(2 * SECOND, MINUTE), kind };
  });
  const receiver = { ...course.receiver, concurrency: 8, leaseMs: 5 * SECOND, maxAttempts: 12 };
  return {
    ...{ ...course, receiver, processes: dice.pick([1, 2]), handlersAre: "slow or failing", handlersFail: 0.5 },
    troubles: [...course.troubles, ...troubles],
  };
}

/** Handlers of a kind: some write nothing, and in some worlds one event fails until its attempts are used up. */
function withPoison(course: Course): Course {
  const dice = new Dice(course.seed, "handlers");
  const handlersWrite = dice.pick([1, 1, 0.7]);
  if (!dice.chance(0.2)) return { ...course, handlersWrite };
  const maxAttempts = dice.pick([course.receiver.maxAttempts, 12]);
  const poisoned = dice.pick(course.sendings.filter(({ signed }) => signed === "well")).marker;
  return { ...course, handlersWrite, poisoned, receiver: { ...course.receiver, maxAttempts } };
}

function withOthers(course: Course, temper: number): Course {
  const others = new Dice(course.seed, "other sources");
  if (!others.chance(0.4)) return course;
  // A push has no signed time: one that a clock dates years back is pruned early, as docs/reliability.md says.
  const isDated = course.jumps.every(({ byMs }) => Math.abs(byMs) < YEAR);
  const sources: readonly SourceName[] = isDated ? ["messages", "code", "builds", "billing"] : ["messages", "billing"];
  // `ack: "handled"` excludes a hold-back: the answer would wait for the event.
  const holdBackMs = course.receiver.ack === "handled" ? 0 : others.pick([0, 2 * SECOND, 20 * SECOND, MINUTE]);
  const sendings = [...course.sendings, ...othersOf(others, sources, temper)];
  return { ...course, sources, holdBackMs, processes: 2, sendings };
}

/** One of many lanes by position, in which nothing goes wrong except that processes die, handlers fail and answers are lost. */
export function courseOfLanes(place: Course["place"], lanes: number, holdBackMs: number): Course {
  const dice = new Dice(lanes, "many lanes");
  const mishaps = Array.from({ length: 10 + Math.ceil(lanes / 25) }, (): Mishap => {
    return { at: dice.whole(1, 20 * lanes), kind: "dies", forMs: dice.spread(10, 10 * SECOND) };
  });
  return {
    ...{ seed: 0, place, processes: 2, sources: ["messages", "billing"], holdBackMs, takesLate: true },
    ...{ handlersAre: "mixed", poisoned: null, handlersWrite: 1, rate: null, each: null, filters: null },
    receiver: { ...receiverOf(dice), concurrency: 8, leaseMs: 5 * SECOND, maxAttempts: 100, ack: "stored" },
    ...{ handlersFail: 0.1, answersLost: 0.1, sendings: othersOf(dice, ["billing"], 1, lanes) },
    ...{ mishaps: mishaps.toSorted((a, b) => a.at - b.at), troubles: [], jumps: [], acts: [] },
  };
}

function receiverOf(dice: Dice): Course["receiver"] {
  return {
    gapWait: dice.pick<GapWait>(["eager", "balanced", "strict", () => 10 * SECOND, () => 2 * MINUTE]),
    concurrency: dice.pick([1, 2, 8]),
    leaseMs: dice.pick([5 * SECOND, 30 * SECOND]),
    maxAttempts: dice.pick([2, 3, 5]),
    onDead: dice.chance(0.6) ? "continue" : "block",
    ack: dice.chance(0.75) ? "stored" : "handled",
    firstSequence: dice.chance(0.85) ? 1 : "any",
    handlerTimeoutMs: dice.pick([10 * SECOND, 10 * SECOND, MINUTE]),
  };
}

function mishapOf(dice: Dice): Mishap {
  const kind = dice.pick(["dies", "dies", "stands still", "stands still", "restarts"] as const);
  // Who stands still for less than its lease is only slow.
  const shortest = kind === "stands still" ? SECOND : 10;
  return { at: dice.spread(1, 200), kind, forMs: dice.spread(shortest, 2 * MINUTE) };
}

function jumpOf(dice: Dice): Jump {
  const byMs = dice.pick([-MINUTE, MINUTE, -HOUR, HOUR, 2 * HOUR, -10 * YEAR, 10 * YEAR]);
  // One that stays must be small, or all would wait for as long.
  const stays = Math.abs(byMs) <= MINUTE;
  return { at: dice.between(0, 15 * MINUTE), byMs, forMs: stays ? null : dice.spread(SECOND, 10 * MINUTE) };
}

/** What will happen to a message, and when: decided in full when it is accepted. */
import type { Lifecycle } from "../options.ts";
import type { Step } from "../state/records.ts";

interface PlanInput {
  /** When the message was accepted, epoch ms. */
  readonly at: number;
  readonly lifecycle: Lifecycle;
  readonly behaviour: Behaviour | null;
  /** Whether message.delivery is sent twice with one sequence (EVT-12). */
  readonly sameSequence: boolean;
  /** A number in [0, 1) for a purpose within this message. */
  chance(purpose: string): number;
}

type Stage = Pick<Step, "eventType" | "sequence">;

const QUEUED: Stage = { eventType: "message.queued", sequence: 1 };
const SENT: Stage = { eventType: "message.sent", sequence: 2 };
const DELIVERY: Stage = { eventType: "message.delivery", sequence: 3 };
const ANSWER: Stage = { eventType: "message.inbound", sequence: null };

const SENT_EARLIEST_MS = 200;
const SENT_LATEST_MS = 2_000;
/** The least time from sent to the end. */
const END_AFTER_SENT_MS = 500;
/** Whatever happens to a message in the realistic lifecycle has happened by then. */
export const END_LATEST_MS = 10_000;
const ANSWER_EARLIEST_MS = 1_000;
const ANSWER_LATEST_MS = 3_000;
const LATE_MS = 90 * 60_000;
/** Between the first attempts of events in reversed order. */
const REVERSED_SPACING_MS = 1_000;

/** The steps of a message in the order in which they happen; the first is its queued event, at once. */
export function planSteps(input: PlanInput): readonly Step[] {
  const stages = stagesOf(input);
  const times = timesOf(input, stages);
  const { attemptDelayMs, copies } = handoverOf(input.behaviour);
  const steps = stages.map(({ eventType, sequence }, i) => ({
    at: times[i] ?? null,
    eventType,
    sequence,
    attemptDelayMs,
    copies,
  }));
  return input.behaviour === "reversed" ? reversed(steps, input.at) : steps;
}

/** How every event of such a message is handed over, those that nobody planned as well. */
export function handoverOf(behaviour: Behaviour | null): Pick<Step, "attemptDelayMs" | "copies"> {
  return { attemptDelayMs: behaviour === "late" ? LATE_MS : 0, copies: behaviour === "twice" ? 2 : 1 };
}

/** Sequences 1, 2 and 3 are the usual ones (EVT-8); a failure ends the lifecycle, with or without a gap before it (EVT-9). */
function stagesOf({ behaviour, sameSequence }: PlanInput): readonly Stage[] {
  switch (behaviour) {
    case "failAfterQueued":
      return [QUEUED, failed(2)];
    case "failAfterSent":
      return [QUEUED, SENT, failed(3)];
    case "failWithGap":
      return [QUEUED, SENT, failed(4)];
    case "stayQueued":
      return [QUEUED];
    default: {
      const delivery = sameSequence ? [DELIVERY, DELIVERY] : [DELIVERY];
      return [QUEUED, SENT, ...delivery, ...(behaviour === "answer" ? [ANSWER] : [])];
    }
  }
}

function failed(sequence: number): Stage {
  return { eventType: "message.failed", sequence };
}

function timesOf({ at, lifecycle, chance }: PlanInput, stages: readonly Stage[]): readonly (number | null)[] {
  switch (lifecycle) {
    case "instant":
      return stages.map(() => at);
    case "manual":
      return stages.map((_, i) => (i === 0 ? at : null));
    case "realistic":
      return realisticTimes(at, chance, stages);
    default:
      return lifecycle satisfies never;
  }
}

/** Sent, or failed instead, within 2 s; ended within 10 s; a customer's answer 1 to 3 s after that. */
function realisticTimes(at: number, chance: PlanInput["chance"], stages: readonly Stage[]): readonly number[] {
  const sentAfter = between(SENT_EARLIEST_MS, SENT_LATEST_MS, chance("sent"));
  const endAfter = between(sentAfter + END_AFTER_SENT_MS, END_LATEST_MS, chance("end"));
  const answerAfter = endAfter + between(ANSWER_EARLIEST_MS, ANSWER_LATEST_MS, chance("answer"));
  return stages.map((stage, i) => {
    if (i === 0) return at;
    if (i === 1) return at + sentAfter;
    if (stage === ANSWER) return at + answerAfter;
    // Of two message.delivery events the first comes between sent and the end.
    return stages[i + 1] === DELIVERY ? at + Math.floor((sentAfter + endAfter) / 2) : at + endAfter;
  });
}

/** A whole number from `least` to `most`, both included. */
function between(least: number, most: number, fraction: number): number {
  return least + Math.floor(fraction * (most - least + 1));
}

/** The last event is tried first, when it happens, and the others after it one by one. */
function reversed(steps: readonly Step[], acceptedAt: number): readonly Step[] {
  const happens = (step: Step | undefined) => step?.at ?? acceptedAt;
  const end = happens(steps.at(-1));
  return steps.map((step, i) => ({
    ...step,
    attemptDelayMs: end - happens(step) + (steps.length - 1 - i) * REVERSED_SPACING_MS,
  }));
}

// Magic recipients: numbers to send to for what a test needs to see. Off with `magic: false`.

/** What a magic recipient does to its message, or to the answer of the call that sends to it. */
export type Behaviour =
  | "failAfterQueued"
  | "failAfterSent"
  | "failWithGap"
  | "stayQueued"
  | "twice"
  | "reversed"
  | "late"
  | "answer"
  | "rejected"
  | "errorOnce"
  | "resetOnce"
  | "slow";

interface MagicRecipient {
  readonly behaviour: Behaviour;
  /** For the documentation. */
  readonly does: string;
}

/** All of them, by their number. */
export const MAGIC_RECIPIENTS: Readonly<Record<string, MagicRecipient>> = {
  "+15005550001": { behaviour: "failAfterQueued", does: "fails after queued: `message.failed` with sequence 2" },
  "+15005550002": { behaviour: "failAfterSent", does: "fails after sent: `message.failed` with sequence 3" },
  "+15005550003": { behaviour: "failWithGap", does: "fails after sent with sequence 4: sequence 3 never comes" },
  "+15005550004": { behaviour: "stayQueued", does: "stays queued: nothing follows `message.queued`" },
  "+15005550005": { behaviour: "twice", does: "every event is handed over twice" },
  "+15005550006": { behaviour: "reversed", does: "the events come in reversed order" },
  "+15005550007": { behaviour: "late", does: "every event comes 90 minutes late" },
  "+15005550008": { behaviour: "answer", does: "answers with a `message.inbound` once it was delivered" },
  "+15005550009": {
    behaviour: "rejected",
    does: "there is none: the recipient is rejected although its number is valid, with the code of the reading `rejectionCode` (`INVALID_RECIPIENT`)",
  },
  "+15005550011": { behaviour: "errorOnce", does: "the send gets 500 once per idempotency key, then 202" },
  "+15005550012": {
    behaviour: "resetOnce",
    does: "the send is accepted, but its connection breaks; a retry with the same key gets the 202",
  },
  "+15005550013": { behaviour: "slow", does: "the answer to the send takes 30 s of real time" },
};

/** What a recipient does out of the ordinary; null for most. */
export function behaviourOf(to: string, settings: { readonly magic: boolean }): Behaviour | null {
  return (settings.magic ? MAGIC_RECIPIENTS[to]?.behaviour : undefined) ?? null;
}

/** What happened in the scene: which events came when, and how the application's handlers took them. */
import { PermanentError } from "../../../../../src/errors.ts";
import type { HandlerContext, WebhookEvent } from "../../../../../src/index.ts";
import { fixtures } from "../../../../../src/tools/testing/index.ts";

/** Minutes since the story began, and what came then: an event, or a body that is none. */
export interface Arrival {
  readonly atMinute: number;
  readonly content: object | string;
  readonly trace?: string;
}

/** The story lasts an hour; what it says is "now" is its end. */
export const STORY_MINUTES = 60;
const MINUTE_MS = 60_000;

/** Messages that tests ask for, by what happened to them. */
export const MESSAGES = {
  plain: "msg_7Q2plain0001",
  reordered: "msg_7Q2reorder02",
  late: "msg_7Q2givenup03",
  repeated: "msg_7Q2repeated4",
  retried: "msg_7Q2retried05",
  dead: "msg_7Q2dead00006",
  blocked: "msg_7Q2blocked07",
  failed: "msg_7Q2failed008",
  waiting: "msg_7Q2waiting09",
  backoff: "msg_7Q2backoff10",
  discarded: "msg_7Q2aside0011",
  inbound: "msg_7Q2inbound12",
  eventful: "msg_7Q2eventful3",
} as const;

/** Of the message in `MESSAGES.plain`. */
export const REFERENCE = "order-2207";
export const NUMBER = "+14155550187";
const SOMEBODY = "+14155550101";
const TEXT = "Could you bring it on Thursday after six?";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

interface Options {
  readonly reference?: string;
  readonly number?: string;
  /** When it happened, in minutes of the story. */
  readonly minute?: number;
}

/** An event's fields as this scene wants them; it occurred at a time since the story began. */
function told(
  messageId: string,
  { minute = 0, reference = `order-${messageId.slice(-4)}`, number = SOMEBODY }: Options,
) {
  return { messageId, occurredAt: Math.round(minute * MINUTE_MS), data: { externalReference: reference, to: number } };
}

/** A message's, in their order. */
const EVENTS = [fixtures.queued, fixtures.sent, fixtures.delivery];

/** With `onDead: "block"`: what comes after the dead letter waits. */
export const BLOCKING: readonly Arrival[] = arrivals(MESSAGES.blocked, [1, 1.1, 1.4]);

export const STORY: readonly Arrival[] = [
  ...inOrder(MESSAGES.plain, 4, { reference: REFERENCE, number: NUMBER, trace: TRACE }),
  ...reordered(),
  ...givenUp(),
  ...repeated(),
  ...arrivals(MESSAGES.retried, [20, 20.1, 20.3]),
  ...eventful(),
  ...dead(),
  ...failed(),
  ...inbound(),
  ...odd(),
  { atMinute: 50, content: fixtures.queued(told(MESSAGES.waiting, { minute: 49.99 })) },
  { atMinute: 52, content: fixtures.delivery(told(MESSAGES.waiting, { minute: 51.99 })) },
  ...arrivals(MESSAGES.backoff, [59.6, 59.7]),
  ...Array.from({ length: 24 }, (_, index) =>
    inOrder(`msg_7Q3order${String(index + 1).padStart(4, "0")}`, 3 + index * 2.3, {
      reference: `order-${2300 + index}`,
      number: `+141555501${10 + index}`,
    }),
  ).flat(),
].sort((a, b) => a.atMinute - b.atMinute);

/** The events of a message, each at its minute. */
function arrivals(messageId: string, minutes: readonly number[], options: Options = {}): Arrival[] {
  const began = Math.min(...minutes) - 0.02;
  return minutes.map((atMinute, index) => {
    const minute = began + index / 60;
    return { atMinute, content: EVENTS[index]?.(told(messageId, { ...options, minute })) ?? "" };
  });
}

function inOrder(messageId: string, minute: number, { trace, ...options }: Options & { trace?: string }): Arrival[] {
  const traced = trace === undefined ? {} : { trace };
  return arrivals(messageId, [minute, minute + 0.04, minute + 0.15], options).map((one) => ({ ...one, ...traced }));
}

/** `queued` failed on the way twice; the service's retries brought it after the others. */
function reordered(): Arrival[] {
  return arrivals(MESSAGES.reordered, [12, 10, 10.3]);
}

/** 22 minutes are waited for `sent`, which comes four minutes too late. */
function givenUp(): Arrival[] {
  return arrivals(MESSAGES.late, [14, 40.4, 14.2]);
}

function repeated(): Arrival[] {
  const [queued, sent, delivery] = arrivals(MESSAGES.repeated, [18, 18.6, 19]);
  const other = fixtures.delivery({
    ...told(MESSAGES.repeated, { minute: 18 }),
    data: { externalReference: "order-9999" },
  });
  const contents = [queued, queued, queued, sent, sent, delivery].map((arrival) => arrival?.content ?? "");
  return [...contents, other].map((content, index) => ({ atMinute: 18 + index / 5, content }));
}

/** For the picture at the top of the README: `sent` comes after `delivery`, twice, and its handler fails once. */
function eventful(): Arrival[] {
  const [queued, sent, delivery] = arrivals(MESSAGES.eventful, [47, 47.9, 47.2]);
  return [queued, delivery, sent, sent].flatMap((arrival) => arrival ?? []);
}

function dead(): Arrival[] {
  const others = [1, 2, 3, 4].map((number) => `msg_7Q2dead1000${number}`);
  return [
    ...arrivals(MESSAGES.dead, [22, 22.1, 22.3]),
    ...arrivals(MESSAGES.discarded, [23]),
    ...others.flatMap((messageId, index) => arrivals(messageId, [24 + index / 3, 24.1 + index / 3, 24.3 + index / 3])),
  ];
}

/** Sequence 3 never existed: `message.failed` is the fourth and last. */
function failed(): Arrival[] {
  const last = fixtures.failed(told(MESSAGES.failed, { minute: 28.3 }));
  return [...arrivals(MESSAGES.failed, [28, 28.2]), { atMinute: 28.4, content: last }];
}

function inbound(): Arrival[] {
  const texts = [TEXT, "Yes please", "STOP", "What does delivery cost? 😀", "Merci, à bientôt", "شكرا جزيلا"];
  return texts.map((body, index) => ({
    atMinute: 31 + index,
    content: fixtures.inbound({
      messageId: index === 0 ? MESSAGES.inbound : `msg_7Q2inbound2${index}`,
      occurredAt: Math.round((30.98 + index) * MINUTE_MS),
      data: { body, from: index === 0 ? NUMBER : `+1415555015${index}` },
    }),
  }));
}

/** Types without a handler, and signed bodies that are no events. */
function odd(): Arrival[] {
  return [
    { atMinute: 41, content: fixtures.unknown({ occurredAt: 41 * MINUTE_MS, data: { messageId: MESSAGES.plain } }) },
    { atMinute: 42, content: fixtures.unknown({ occurredAt: 42 * MINUTE_MS, eventType: "number.released" }) },
    { atMinute: 43, content: `{"eventType":"message.sent","messageId":` },
    { atMinute: 44, content: `to be or not to be, said ${NUMBER}` },
    { atMinute: 45, content: { ...fixtures.sent(), sequence: -1 } },
  ];
}

const failures = new Map<string, (attempt: number) => Error | null>([
  [MESSAGES.retried, (attempt) => (attempt < 3 ? refused() : null)],
  [MESSAGES.eventful, (attempt) => (attempt < 2 ? refused() : null)],
  [MESSAGES.dead, refused],
  [MESSAGES.backoff, refused],
  [MESSAGES.blocked, () => new PermanentError("No order with this reference.")],
  [MESSAGES.discarded, () => new PermanentError("No order with this reference.")],
  ["msg_7Q2dead10001", refused],
  ["msg_7Q2dead10002", refused],
  ["msg_7Q2dead10003", () => new PermanentError("No order with this reference.")],
  ["msg_7Q2dead10004", () => new TypeError("Cannot read properties of undefined (reading 'total')")],
]);

function refused(): Error {
  return Object.assign(new Error("connect ECONNREFUSED 10.0.0.7:5432"), { code: "ECONNREFUSED" });
}

/** The handlers of messages whose id begins so always fail for `sent`. */
export const UNREACHABLE = "msg_7Q5";

/** Fails for `sent` (for `queued` where a message has no other event) as the story wants it; `work` is what a handler does. */
export function storyHandler(work: () => Promise<void>) {
  return async (event: WebhookEvent, ctx: HandlerContext): Promise<void> => {
    await work();
    const messageId = ctx.meta.lane ?? ctx.meta.id ?? "";
    const fails = event.eventType === "message.sent" || messageId === MESSAGES.discarded;
    const failing = messageId.startsWith(UNREACHABLE) ? refused : failures.get(messageId);
    const error = fails ? failing?.(ctx.attempt) : null;
    if (error) throw error;
  };
}

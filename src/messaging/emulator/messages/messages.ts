/** Messages and their lifecycles: what happens to a message, when, and the event that tells it. */

import { seededHex } from "../clock.ts";
import type { Faults } from "../faults.ts";
import type { Cancel } from "../scheduler.ts";
import type { Deliveries, EmulatorParts, InboundInput, Messages, SendInput, TriggerInput } from "../service.ts";
import type { Delivery, InboundMessage, Message, Step } from "../state/records.ts";
import {
  createTell,
  type EventError,
  type Happening,
  inboundBody,
  outboundBody,
  type Tell,
  triggeredBody,
} from "./event.ts";
import { behaviourOf, handoverOf, planSteps } from "./plan.ts";

export function createMessages(ground: EmulatorParts, deliveries: Deliveries, faults: Faults): Messages {
  const { state, time } = ground;
  const tell = createTell(ground, deliveries, faults);
  const receive = createReceive(ground, tell);
  const lifecycle = createLifecycle(ground, tell, receive);
  const held = createHeldAnswers(deliveries);
  return {
    accept(input) {
      const at = time.now();
      const { message, awaited } = lifecycle.begin(accepted(ground, input, at), at);
      held.hold(message.messageId, awaited);
      return message;
    },
    answerable: (messageId) => held.answerable(messageId),
    receive: (input) => receive(input, time.now()),
    advance(messageId) {
      const message = state.messages.get(messageId);
      if (message === undefined || message.steps.length === 0) return undefined;
      return lifecycle.playFirst(message, time.now()).message;
    },
    fail(messageId, error) {
      const message = state.messages.get(messageId);
      if (message === undefined || hasEnded(message)) return undefined;
      const at = time.now();
      return lifecycle.playFirst(failing(ground, message, at), at, error).message;
    },
    trigger: (event) => tell(triggered(event, time.now())).event,
    resume() {
      for (const message of state.messages.values()) lifecycle.arm(message);
    },
  };
}

function accepted({ state, settings, chance }: EmulatorParts, input: SendInput, at: number): Message {
  const { client, number, to, messageType, text, externalReference } = input;
  const messageId = state.nextId("msg");
  return {
    messageId,
    direction: "outbound",
    apiClientId: client.apiClientId,
    numberId: number.numberId,
    from: number.e164,
    to,
    messageType,
    text,
    externalReference,
    status: "QUEUED",
    sequence: 1,
    createdAt: at,
    steps: planSteps({
      at,
      lifecycle: settings.lifecycle,
      behaviour: behaviourOf(to, settings),
      sameSequence: settings.readings.sameSequence,
      chance: (purpose) => chance(`${purpose} of ${messageId}`),
    }),
  };
}

function hasEnded({ status }: Message): boolean {
  return status === "delivered" || status === "failed";
}

/** The message with a failure in the place of all that was planned; its events are handed over as its recipient's always are. */
function failing({ settings }: EmulatorParts, message: Message, at: number): Message {
  const handover = handoverOf(behaviourOf(message.to, settings));
  return { ...message, steps: [{ at, eventType: "message.failed", sequence: message.sequence + 1, ...handover }] };
}

function triggered(event: TriggerInput, at: number) {
  const { data, ...names } = event;
  return { ...names, at, body: triggeredBody(event, at), attemptDelayMs: 0, copies: 1 };
}

/** Answers to sends that wait for a first attempt (DLV-20); each until that attempt ended. */
function createHeldAnswers(deliveries: Deliveries) {
  const waits = new Map<string, Promise<void>>();
  return {
    hold(messageId: string, awaited: readonly Delivery[]): void {
      if (awaited.length === 0) return;
      const wait = Promise.all(awaited.map(({ deliveryId }) => deliveries.nextAttempt(deliveryId)));
      const held = wait.then(() => {
        // After an import, another message may have its id.
        if (waits.get(messageId) === held) waits.delete(messageId);
      });
      waits.set(messageId, held);
    },
    answerable: (messageId: string): Promise<void> => waits.get(messageId) ?? Promise.resolve(),
  };
}

// Plays a message's steps: each changes the message and tells its event, when its time comes or when it is asked for.

/** A message after a step, and what the answer to its send has to wait for. */
interface Played {
  readonly message: Message;
  readonly awaited: readonly Delivery[];
}

interface Lifecycle {
  /** Plays the steps that are due when the message is accepted, and schedules the rest. */
  begin(message: Message, at: number): Played;
  /** Plays the message's first step now, whenever it is due, and arms the next one. */
  playFirst(message: Message, at: number, error?: EventError): Played;
  /** Plays the first step when its time comes; of a message that is no longer the current one, nothing. */
  arm(message: Message): void;
}

function createLifecycle(ground: EmulatorParts, tell: Tell, receive: Receive): Lifecycle {
  const { state, scheduler } = ground;
  /** By message. */
  const armed = new Map<string, Cancel>();

  const play = (
    message: Message,
    step: Step,
    { at, error }: { at: number; error?: EventError | undefined },
  ): Played => {
    if (isOutbound(step)) {
      const next = progressed(ground, message, step);
      state.messages.put(next.messageId, next);
      return { message: next, awaited: tell(happeningOf(ground, next, { step, at, error })).awaited };
    }
    const next = { ...message, steps: message.steps.slice(1) };
    state.messages.put(next.messageId, next);
    const answer = answerTo(next, ground);
    if (answer !== undefined) receive(answer, at);
    return { message: next, awaited: [] };
  };

  /** Not when a watcher of a step's event has gone on with the message, or put another state in the place of this one. */
  const isCurrent = (message: Message) => state.messages.get(message.messageId) === message;

  // Only one step of a message is armed at a time: so they happen in order whatever else is due.
  const arm = (message: Message): void => {
    if (!isCurrent(message)) return;
    const { messageId, steps } = message;
    const [step] = steps;
    armed.get(messageId)?.();
    armed.delete(messageId);
    if (step === undefined || step.at === null) return;
    const cancel = scheduler.add({
      dueAt: step.at,
      run(at) {
        armed.delete(messageId);
        // Reset or imported in the meantime: then it is nothing.
        const current = state.messages.get(messageId);
        if (current?.steps[0] === step) arm(play(current, step, { at }).message);
      },
      dropped: () => armed.delete(messageId),
    });
    // What was due at once has run already, and may have armed the next one.
    if (state.messages.get(messageId)?.steps[0] === step) armed.set(messageId, cancel);
  };

  return {
    arm,
    begin(message, at) {
      const awaited: Delivery[] = [];
      let current = message;
      // Not by the scheduler, which may be busy: a send's events are there when it is answered.
      for (let [step] = current.steps; step?.at === at; [step] = current.steps) {
        const played = play(current, step, { at });
        current = played.message;
        awaited.push(...played.awaited);
        if (!isCurrent(current)) return { message: current, awaited };
      }
      arm(current);
      return { message: current, awaited };
    },
    playFirst(message, at, error) {
      const [step] = message.steps;
      if (step === undefined) return { message, awaited: [] };
      const played = play(message, step, { at, error });
      arm(played.message);
      return played;
    },
  };
}

// What a step makes of its message, and the event that tells it.

/** A step of the outbound message itself, not its recipient's answer. */
interface OutboundStep extends Step {
  readonly sequence: number;
}

const isOutbound = (step: Step): step is OutboundStep => step.sequence !== null;

const SEND_FAILED: EventError = { code: "PROVIDER_SEND_FAILED", message: "The provider did not take the message." };
/** What the first of two message.delivery events with one sequence says (EVT-12, EVT-13). */
const FIRST_OF_TWO_STATUS = "buffered";

/** The message once `step`, the first of its steps, was played. */
function progressed({ state }: EmulatorParts, message: Message, step: OutboundStep): Message {
  const next = { ...message, sequence: step.sequence, steps: message.steps.slice(1) };
  switch (step.eventType) {
    case "message.queued":
      return { ...next, status: "QUEUED" };
    case "message.sent":
      return { ...next, status: "sent" };
    case "message.delivery":
      return {
        ...next,
        status: isFirstOfTwo(next) ? next.status : "delivered",
        // Both of two events name the same one.
        providerMessageRef: next.providerMessageRef ?? state.nextId("provider"),
      };
    case "message.failed":
      return { ...next, status: "failed" };
    case "message.inbound":
      return next;
    default:
      return step.eventType satisfies never;
  }
}

/** The event of a step, told by the message as it is after that. */
function happeningOf(
  { settings }: EmulatorParts,
  message: Message,
  { step, at, error = SEND_FAILED }: { step: OutboundStep; at: number; error?: EventError | undefined },
): Happening {
  const { eventType, sequence, attemptDelayMs, copies } = step;
  const { apiClientId, numberId, messageId } = message;
  const delivery = isFirstOfTwo(message) ? FIRST_OF_TWO_STATUS : settings.readings.deliveryStatus;
  const body = outboundBody(message, {
    eventType,
    sequence,
    status: eventType === "message.delivery" ? delivery : message.status,
    occurredAt: at,
    error: eventType === "message.failed" ? error : null,
  });
  return { kind: "delivery", eventType, apiClientId, numberId, messageId, sequence, at, body, attemptDelayMs, copies };
}

/** Whether the message.delivery that was just played is followed by another one with its sequence. */
function isFirstOfTwo({ steps, sequence }: Message): boolean {
  return steps[0]?.eventType === "message.delivery" && steps[0].sequence === sequence;
}

// Customers' messages to our numbers.

/** Takes a customer's message up at a moment and tells its number's owner. */
type Receive = (input: InboundInput, at: number) => InboundMessage;

const ANSWER_TEXT = "Thank you, we received your message.";

function createReceive({ state, settings }: EmulatorParts, tell: Tell): Receive {
  return ({ number, from, body, media }, at) => {
    const { apiClientId, numberId, e164: to } = number;
    const messageId = state.nextId("msg");
    // Of the two numbers alone, so that it outlives the messages that are kept.
    const conversationId = `conv_${seededHex(settings.seed, `conversation: ${to} ${from}`, 6)}`;
    const message: InboundMessage = {
      messageId,
      direction: "inbound",
      apiClientId,
      numberId,
      conversationId,
      from,
      to,
      text: body,
      media,
      createdAt: at,
    };
    state.inboundMessages.put(messageId, message);
    tell({
      kind: "inbound",
      eventType: "message.inbound",
      apiClientId,
      numberId,
      messageId,
      sequence: null,
      at,
      body: inboundBody(message),
      attemptDelayMs: 0,
      copies: 1,
    });
    return message;
  };
}

/** What the recipient of a message answers, to the number it came from; undefined when that number is gone. */
function answerTo(message: Message, { state }: Pick<EmulatorParts, "state">): InboundInput | undefined {
  const number = state.numbers.get(message.numberId);
  return number === undefined ? undefined : { number, from: message.to, body: ANSWER_TEXT, media: [] };
}

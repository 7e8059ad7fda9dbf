/** Messages and their lifecycles: what happens to a message, when, and the event that tells it. */
import type { Deliveries, Faults, Ground, Messages, SendInput, TriggerInput } from "../service.ts";
import type { Delivery, Message } from "../state/records.ts";
import { triggeredBody } from "./event-body.ts";
import { createReceive } from "./inbound.ts";
import { createLifecycle } from "./lifecycle.ts";
import { behaviourOf } from "./magic.ts";
import { handoverOf, planSteps } from "./plan.ts";
import { createTell } from "./tell.ts";

export function createMessages(ground: Ground, deliveries: Deliveries, faults: Faults): Messages {
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

function accepted({ state, settings, chance }: Ground, input: SendInput, at: number): Message {
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
function failing({ settings }: Ground, message: Message, at: number): Message {
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

/** Plays a message's steps: each changes the message and tells its event, when its time comes or when it is asked for. */
import type { Cancel } from "../agenda.ts";
import type { Ground } from "../service.ts";
import type { Delivery, Message, Step } from "../state/records.ts";
import type { EventError } from "./event-body.ts";
import { answerTo, type Receive } from "./inbound.ts";
import { happeningOf, isOutbound, progressed } from "./progress.ts";
import type { Tell } from "./tell.ts";

/** A message after a step, and what the answer to its send has to wait for. */
export interface Played {
  readonly message: Message;
  readonly awaited: readonly Delivery[];
}

export interface Lifecycle {
  /** Plays what is due when the message is accepted, and arms the rest. */
  begin(message: Message, at: number): Played;
  /** Plays the message's first step now, whenever it is due, and arms the next one. */
  playFirst(message: Message, at: number, error?: EventError): Played;
  /** Plays the first step when its time comes; of a message that is no longer the current one, nothing. */
  arm(message: Message): void;
}

export function createLifecycle(ground: Ground, tell: Tell, receive: Receive): Lifecycle {
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

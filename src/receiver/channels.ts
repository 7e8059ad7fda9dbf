/**
 * Deliveries and attempts on `node:diagnostics_channel`, as tracing channels: `tracing:oncehook.delivery:start` and so on. Without
 * a subscriber nothing is made for them.
 */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import type {
  AttemptInfo,
  AttemptReport,
  DeliveryReport,
  Instrumentation,
  Observer,
} from "../inbox/instrumentation.ts";

/** The message of `tracing:oncehook.delivery`: empty until the delivery is answered, which is told by `asyncStart` and `asyncEnd`. */
export interface DeliveryMessage extends Partial<DeliveryReport> {}

/** The message of `tracing:oncehook.handler`: how the attempt ended is there with `error`, `asyncStart` and `asyncEnd`. */
export interface HandlerMessage extends AttemptInfo, Partial<AttemptReport> {}

type Channel<Message extends object> = TracingChannel<unknown, Message>;

const deliveries: Channel<DeliveryMessage> = tracingChannel("oncehook.delivery");
const handlers: Channel<HandlerMessage> = tracingChannel("oncehook.handler");

export const channelInstrumentation: Instrumentation = {
  isListening: () => deliveries.hasSubscribers || handlers.hasSubscribers,
  delivery: () =>
    deliveries.hasSubscribers ? new Traced(deliveries, {}, ({ outcome }) => outcome === "failed") : undefined,
  attempt: (info) => (handlers.hasSubscribers ? new Traced(handlers, { ...info }, isFailedAttempt) : undefined),
};

function isFailedAttempt({ ending, errorCode }: AttemptReport): boolean {
  return errorCode !== null || ending === "lost";
}

/** One message on its way through the five channels of a tracing channel. */
class Traced<Report extends object, Message extends Partial<Report>> implements Observer<Report> {
  readonly #channel: Channel<Message>;
  readonly #message: Message;
  readonly #isFailure: (report: Report) => boolean;
  #hasStarted = false;

  constructor(channel: Channel<Message>, message: Message, isFailure: (report: Report) => boolean) {
    this.#channel = channel;
    this.#message = message;
    this.#isFailure = isFailure;
  }

  run(work: () => void): void {
    this.#hasStarted = true;
    this.#channel.start.runStores(this.#message, () => {
      work();
      this.#channel.end.publish(this.#message);
    });
  }

  /** An attempt without a handler to call did not start. */
  ended(report: Report): void {
    if (!this.#hasStarted) return;
    Object.assign(this.#message, report);
    if (this.#isFailure(report)) this.#channel.error.publish(this.#message);
    this.#channel.asyncStart.publish(this.#message);
    this.#channel.asyncEnd.publish(this.#message);
  }
}

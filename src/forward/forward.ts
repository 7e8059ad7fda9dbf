/** The handler that hands events to a distributed engine, once each by their id and in the order of their message. */
import type { WebhookEvent } from "../events/types.ts";
import type { HandlerContext } from "../inbox/handlers.ts";
import { messageOf } from "./message.ts";
import { CheckedPublisher, type Publish, type Publisher, publisherOption } from "./publisher.ts";

/** What forwarding needs of a handler's context. */
export type ForwardContext = Pick<
  HandlerContext,
  "attempt" | "missing" | "replay" | "outOfOrder" | "signal" | "log" | "meta" | "rawBody"
>;

/**
 * Makes a handler for `receiver.onAny` and `receiver.onLate` that publishes each event as it was received. It succeeds when
 * the engine has acknowledged; an error of the engine, and an answer that has not come when `ctx.signal` aborts
 * (`handlerTimeoutMs`), make the inbox try again, with the same id. A message's next event waits until then, so the engine
 * gets them in ascending sequence (RCV-7). An attempt whose acknowledgement was lost is made twice: the engine must know the
 * id again, or its consumers must.
 *
 * @param publisher - `jetstreamPublisher(…)`, `bullmqPublisher(…)`, or a function of your own
 * @throws SetupError `invalid_option` for anything else
 * @example
 * const handler = forward(async ({ key, id, body, headers }) => {
 *   await producer.send({ topic: "sms", acks: -1, messages: [{ key, value: Buffer.from(body), headers: { ...headers, id } }] });
 * });
 * receiver.onAny(handler).onLate(handler);
 */
export function forward(publisher: Publish | Publisher): (event: WebhookEvent, ctx: ForwardContext) => Promise<void> {
  const engine = new CheckedPublisher(publisherOption("forward()", publisher));
  return (event, ctx) => {
    const { attempt, missing, replay, signal } = ctx;
    const circumstances = {
      ...{ attempt, missing, replay, signal },
      late: ctx.outOfOrder,
      traceparent: ctx.meta.traceparent,
    };
    return engine.publish(messageOf(event, ctx.rawBody, circumstances), ctx.log);
  };
}

/** Hands events to a distributed engine: as a handler behind the inbox, or instead of it (`passthrough`). */
import { createVerifier, type VerifiedWebhook, type VerifierOptions } from "../../create.ts";
import { OncehookError, SetupError } from "../../errors.ts";
import type { HandlerContext } from "../../inbox/handlers.ts";
import { errorFields, explained, maskingOf } from "../../inbox/masking.ts";
import { systemClock } from "../../internal/clock.ts";
import { type Logger, loggerOption, SampledLog } from "../../internal/logger.ts";
import { choiceOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { refuseMethod } from "../../receiver/body-limits.ts";
import type { Answer, IncomingWebhook } from "../../receiver/incoming.ts";
import * as answers from "../../receiver/incoming.ts";
import { readTrace } from "../../sources/headers.ts";
import { SERVICE_SHOWS } from "../../sources/messaging/source.ts";
import type { WebhookEvent } from "../../sources/messaging/types.ts";
import { type Tolerance, toleranceOption } from "../../sources/messaging/verify.ts";
import { CheckedPublisher, messageOf, type Publish, type Publisher, publisherOption } from "./publisher.ts";

// The handler that hands events to a distributed engine, once each by their id and in the order of their lane.

/** What forwarding needs of a handler's context. */
export type ForwardContext = Pick<
  HandlerContext,
  "identity" | "attempt" | "missing" | "replay" | "outOfOrder" | "signal" | "log" | "meta" | "rawBody"
>;

/**
 * Makes a handler for `receiver.onAny` and `receiver.onLate` that publishes each event as it was received. It succeeds when
 * the engine has acknowledged; an error of the engine, and an answer that has not come when `ctx.signal` aborts
 * (`handlerTimeoutMs`), make the inbox try again, with the same id. A lane's next event waits until then, so the engine
 * gets a message's in ascending sequence (RCV-7). An attempt whose acknowledgement was lost is made twice: the engine must know the
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
export function forward(publisher: Publish | Publisher): (event: object, ctx: ForwardContext) => Promise<void> {
  const engine = new CheckedPublisher(publisherOption("forward()", publisher));
  return (event, ctx) => {
    const { attempt, missing, replay, signal, identity } = ctx;
    const circumstances = {
      ...{ attempt, missing, replay, signal },
      late: ctx.outOfOrder,
      traceparent: ctx.meta.traceparent,
    };
    // The message is of the source whose handler this is.
    return engine.publish(
      messageOf(event as WebhookEvent, ctx.rawBody, circumstances, { ...ctx.meta, identity }),
      ctx.log,
    );
  };
}

// The way without an inbox: verify, publish, and answer 2xx on the engine's acknowledgement.

export interface PassthroughOptions extends VerifierOptions {
  /** `jetstreamPublisher(…)`, `bullmqPublisher(…)`, or a function of your own. */
  readonly publisher: Publish | Publisher;
  /**
   * Who takes out repeats. `"engine"` (default): refused for an engine that forgets ids while a delivery with them still
   * counts. `"consumers"`: they do it themselves, by the message's id.
   */
  readonly duplicates?: "engine" | "consumers";
  /** When an answer is given whatever the engine does, from the request's beginning. Milliseconds, 10 to 9,500. Default 8,000. */
  readonly deadlineMs?: number;
  /** How old or how far ahead a timestamp may be. Default 90 minutes past, 5 minutes ahead, as a receiver's. */
  readonly toleranceMs?: number | Partial<Tolerance>;
}

/** What adapters mount in the place of a receiver. */
export interface Passthrough {
  readonly logger: Logger;
  /** Answers one request. For adapters; never rejects. */
  handle(incoming: IncomingWebhook): Promise<Answer>;
  /** Looks at the engine's set-up now, for the start of an application. @throws SetupError, or the engine's error when it is down */
  check(): Promise<void>;
}

const OPTIONS = [
  "publisher",
  "duplicates",
  "deadlineMs",
  "secrets",
  "maxBodyBytes",
  "logger",
  "toleranceMs",
  "timestampFormat",
  "encoding",
] as const satisfies readonly (keyof PassthroughOptions)[];

/** A service that does not sign its retries anew makes the last one 81 minutes after the first. */
const DEFAULT_TOLERANCE: Tolerance = { pastMs: 90 * 60_000, futureMs: 5 * 60_000 };
/** Below the 10 s that the service waits for an answer (DLV-19). */
const LONGEST_DEADLINE_MS = 9_500;
/** Verified events that wait for the engine at once, and publications that it has left open; more are answered with 503. */
const MOST_IN_WORK = 256;

/**
 * Receives without an inbox: each delivery is verified, published with its identity as the engine's deduplication id, and
 * answered with 200 when the engine has acknowledged. Anything else is answered with 503, and the service's five attempts are
 * all there is. Nothing is put in order, no gap is waited for, and nothing is known to be late. A signed body that is not an
 * event is answered with 400. Only the engine's own memory of ids removes repeats. Use a receiver with
 * `forward` wherever one of these matters.
 *
 * @throws SetupError for a wrong option, and for an engine whose memory of ids is shorter than the tolerance
 * @example
 * const intake = passthrough({ secrets, publisher: jetstreamPublisher({ js, stream: "SMS", subject: "sms.events" }) });
 * await intake.check();
 * app.all("/webhooks", expressWebhook(intake));
 */
export function passthrough(options: PassthroughOptions): Passthrough {
  refuseUnknownOptions("passthrough()", options, OPTIONS);
  const { publisher: given, duplicates, deadlineMs: wished, toleranceMs: wishedTolerance, ...verifying } = options;
  const publisher = publisherOption("passthrough()", given);
  const toleranceMs = toleranceOption("toleranceMs", wishedTolerance, DEFAULT_TOLERANCE);
  const bounds = { min: 10, max: LONGEST_DEADLINE_MS, unit: "ms" };
  const deadlineMs = numberOption("deadlineMs", wished, 8_000, bounds);
  if (choiceOption("duplicates", duplicates, "engine", ["engine", "consumers"]) === "engine") {
    refuseForgetful(publisher, toleranceMs);
  }
  const logger = loggerOption(options.logger);
  const verify = createVerifier({ ...verifying, toleranceMs, logger });
  return new EngineIntake({ publisher, verify, logger, deadlineMs });
}

interface Parts {
  readonly publisher: Publisher;
  readonly verify: ReturnType<typeof createVerifier>;
  readonly logger: Logger;
  readonly deadlineMs: number;
}

class EngineIntake implements Passthrough {
  readonly logger: Logger;
  readonly #engine: CheckedPublisher;
  readonly #verify: Parts["verify"];
  readonly #deadlineMs: number;
  readonly #refusals: SampledLog;
  /** Apart, so that a flood of refused requests hides no failure of the engine. */
  readonly #failures: SampledLog;
  #inWork = 0;

  constructor({ publisher, verify, logger, deadlineMs }: Parts) {
    this.logger = logger;
    this.#engine = new CheckedPublisher(publisher);
    this.#verify = verify;
    this.#deadlineMs = deadlineMs;
    this.#refusals = new SampledLog(logger, systemClock);
    this.#failures = new SampledLog(logger, systemClock);
  }

  check(): Promise<void> {
    return this.#engine.check(this.logger);
  }

  async handle(incoming: IncomingWebhook): Promise<Answer> {
    const refused = refuseMethod(incoming.method);
    if (refused !== null) return this.#refuse(refused.answer);
    const abort = new AbortController();
    const deadline = systemClock.setTimeout(() => abort.abort(silent(this.#deadlineMs)), this.#deadlineMs);
    try {
      const verified = await this.#verify(incoming);
      if (!verified.ok) return this.#refuse(verified.answer);
      // Taken after the body is read, so that slow senders hold none.
      if (Math.max(this.#inWork, this.#engine.open) >= MOST_IN_WORK) return this.#answerCrowd();
      return await this.#publish(verified, readTrace(incoming.headers), abort.signal);
    } finally {
      deadline.cancel();
    }
  }

  async #publish(
    { event, bytes }: Extract<VerifiedWebhook, { ok: true }>,
    traceparent: string | null,
    signal: AbortSignal,
  ): Promise<Answer> {
    this.#inWork += 1;
    try {
      const unknown = { attempt: null, replay: false, late: false, missing: null };
      await this.#engine.publish(messageOf(event, bytes, { ...unknown, traceparent, signal }), this.logger);
      return answers.accepted("accepted");
    } catch (error) {
      return this.#answerFailure(error, event, bytes.length);
    } finally {
      this.#inWork -= 1;
    }
  }

  #refuse(answer: Answer): Answer {
    this.#refusals.warn({ code: "refused", status: answer.status }, "A delivery was refused.");
    return answer;
  }

  /** An engine's failure too: it may be one that never ends what nobody waits for any more. */
  #answerCrowd(): Answer {
    const sentence = `${MOST_IN_WORK} events wait for the engine, or were left open by it; a delivery was answered with 503.`;
    this.#failures.error({ code: "engine_busy", open: this.#engine.open }, sentence);
    return answers.UNAVAILABLE;
  }

  #answerFailure(error: unknown, event: WebhookEvent, bytes: number): Answer {
    const answer = error instanceof SetupError ? answers.MISCONFIGURED : answers.UNAVAILABLE;
    const sentence = `An event was not acknowledged by the engine; its delivery was answered with ${answer.status}.`;
    const masking = maskingOf({ event, bytes, head: null, shows: SERVICE_SHOWS, named: [event.eventType] });
    this.#failures.error(errorFields(error, masking), explained(sentence, error));
    return answer;
  }
}

function silent(deadlineMs: number): OncehookError {
  return new OncehookError("wait_timeout", `The engine did not acknowledge within ${deadlineMs} ms.`);
}

/** A captured delivery can be sent again for as long as its timestamp counts. */
function refuseForgetful({ remembersIdsMs = 0 }: Publisher, { pastMs, futureMs }: Tolerance): void {
  if (remembersIdsMs >= pastMs + futureMs) return;
  throw new SetupError(
    "invalid_option",
    `A delivery counts for ${pastMs + futureMs} ms (toleranceMs), but the engine remembers ids for ${remembersIdsMs} ms: a repeat ` +
      `would be published again. Let it remember longer, or write duplicates: "consumers" if they know a message's id again.`,
    { fields: { option: "duplicates" } },
  );
}

/** The way of a delivery from its headers to its answer; the order of the checks is the order of their cost. */
import { KeyringError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import { explained, failureCode } from "../inbox/failure.ts";
import type { DeliveryReport } from "../inbox/instrumentation.ts";
import type { Observation } from "../inbox/instruments.ts";
import type { NewQuarantine } from "../inbox/record.ts";
import type { LogFields } from "../internal/logger.ts";
import { SampledLog } from "../internal/sampled-log.ts";
import type { HeaderSource } from "../signature/headers.ts";
import type { CompiledKeyring } from "../signature/keyring.ts";
import {
  type CheckedHeaders,
  carriesNeitherHeader,
  checkHeaders,
  type Match,
  matchSignature,
  matchUnsigned,
  type VerifyFailureCode,
  vouchingMatch,
} from "../signature/match.ts";
import { type KeyringSource, keyringContext } from "../signature/provider.ts";
import * as answers from "./answers.ts";
import { Delivery } from "./delivery.ts";
import type { Engine } from "./engine.ts";
import { whenHandled } from "./handled.ts";
import { declaredLength, type HeadRefusal, refuseBody, refuseMethod } from "./head.ts";
import { type Answer, type BodyResult, bodyParsedMessage, type IncomingWebhook } from "./incoming.ts";
import { newEvent, newQuarantine, readTrace, type Verified } from "./intake.ts";
import { ReadingBudget } from "./reading.ts";

/** Verified bodies in work at once; taken after the body is read, so that slow senders hold none. */
const MOST_IN_WORK = 256;

/** Why a request was refused, for logs and counters. */
type Refusal =
  | VerifyFailureCode
  | HeadRefusal["reason"]
  | "out_of_scope"
  | "truncated"
  | "cut"
  | "busy"
  | "invalid_event";

interface Refused {
  readonly reason: Refusal;
  readonly answer: Answer;
  /** For the log. */
  readonly more?: LogFields;
}

export class HttpIntake<Tx> {
  readonly #engine: () => Engine<Tx>;
  readonly #keyrings: KeyringSource;
  readonly #readings: ReadingBudget;
  readonly #log: SampledLog;
  /** Apart, so that a flood of refused requests hides no failure of ours. */
  readonly #alerts: SampledLog;
  #inWork = 0;

  constructor(engine: () => Engine<Tx>, keyrings: KeyringSource) {
    const { clock, logger } = engine().options;
    this.#engine = engine;
    this.#keyrings = keyrings;
    this.#readings = new ReadingBudget(clock);
    this.#log = new SampledLog(logger, clock);
    this.#alerts = new SampledLog(logger, clock);
  }

  /** Never rejects: whatever goes wrong has its answer. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    const delivery = new Delivery(incoming);
    const observed = this.#engine().instruments.delivery();
    return observed === null ? this.#answer(delivery) : this.#watched(delivery, observed);
  }

  #watched(delivery: Delivery, observed: Observation<DeliveryReport>): Promise<Answer> {
    const { clock } = this.#engine().options;
    const startedAt = clock.monotonic();
    return observed
      .run(() => this.#answer(delivery))
      .then((answer) => {
        observed.ended(delivery.report(answer, clock.monotonic() - startedAt));
        return answer;
      });
  }

  async #answer(delivery: Delivery): Promise<Answer> {
    try {
      return await this.#handle(delivery);
    } catch (error) {
      const answer = this.#answerFailure(delivery, error);
      return delivery.isRead ? answer : answers.unread(answer);
    }
  }

  async #handle(delivery: Delivery): Promise<Answer> {
    const { incoming } = delivery;
    const { maxBodyBytes } = this.#engine().options;
    const refused = refuseMethod(incoming.method) ?? refuseBody(incoming.headers, maxBodyBytes);
    if (refused !== null) return this.#refuse(delivery, refused);
    const checked = this.#checkHeaders(incoming.headers);
    if (!checked.ok && !(await this.#mayBeUnsigned(incoming))) {
      return this.#refuse(delivery, { reason: checked.code, answer: answers.UNAUTHORIZED_UNREAD });
    }
    const reading = this.#readings.begin(maxBodyBytes, declaredLength(incoming.headers));
    try {
      const body = await incoming.readBody(reading);
      reading.finish();
      delivery.isRead = true;
      if (!body.ok) return this.#refuseBody(delivery, body);
      return await this.#inSlot(delivery, () => this.#receive(delivery, checked.ok ? checked : null, body.bytes));
    } finally {
      reading.release();
    }
  }

  #checkHeaders(headers: HeaderSource): ReturnType<typeof checkHeaders> {
    const { tolerance, timestampFormat, signatureEncoding, clock } = this.#engine().options;
    const policy = { tolerance, timestampFormat, encoding: signatureEncoding };
    return checkHeaders(headers, policy, clock.now());
  }

  /** Asks the provider only when nothing in the request speaks against it. */
  async #mayBeUnsigned(incoming: IncomingWebhook): Promise<boolean> {
    if (!carriesNeitherHeader(incoming.headers)) return false;
    return matchUnsigned(incoming.headers, await this.#keyrings.read(keyringContext(incoming))) !== null;
  }

  /** Verify, parse, accept: from here on the bytes are complete. */
  async #receive(delivery: Delivery, checked: CheckedHeaders | null, bytes: Uint8Array): Promise<Answer> {
    const match = await this.#match(delivery.incoming, checked, bytes);
    if (match === null) return this.#refuse(delivery, { reason: "signature_mismatch", answer: answers.UNAUTHORIZED });
    const engine = this.#engine();
    const signedAt = checked?.timestamp ?? engine.options.clock.now();
    const parsed = parseEvent(bytes);
    const vouching = vouchingMatch(match, parsed.ok ? parsed.event : {});
    if (vouching === null) return this.#refuse(delivery, { reason: "out_of_scope", answer: answers.UNAUTHORIZED });
    delivery.slot = vouching.slot;
    this.#count(`slot:${vouching.slot}`);
    const verified: Verified = { match: vouching, signedAt, trace: readTrace(delivery.incoming.headers) };
    await engine.open();
    if (!parsed.ok) return this.#quarantine(delivery, parsed.code, newQuarantine(parsed.code, bytes, verified));
    const acceptance = await engine.accept(
      newEvent(parsed.event, bytes, verified, engine.options.gapWaitMs),
      parsed.event,
    );
    delivery.late = acceptance.outcome === "late";
    delivery.conflict = acceptance.outcome === "duplicate" && acceptance.conflict;
    if (engine.options.ack === "stored") return answers.accepted(acceptance.outcome);
    const answer = await whenHandled(engine, acceptance);
    if (answer.status === 503) delivery.reason = "not_handled";
    return answer;
  }

  async #match(incoming: IncomingWebhook, checked: CheckedHeaders | null, bytes: Uint8Array): Promise<Match | null> {
    const context = keyringContext(incoming);
    const read = this.#keyrings.read(context);
    const keyring = read instanceof Promise ? await read : read;
    if (checked === null) return matchUnsigned(incoming.headers, keyring);
    const matchWith = (tried: CompiledKeyring) =>
      matchSignature(checked, bytes, tried, this.#engine().options.clock.now());
    const match = matchWith(keyring);
    if (match !== null) return match;
    const fresh = await this.#keyrings.reread(context, keyring);
    return fresh === null ? null : matchWith(fresh);
  }

  async #quarantine(delivery: Delivery, reason: string, quarantine: NewQuarantine): Promise<Answer> {
    const { slot } = quarantine;
    if (this.#engine().options.quarantine === "reject") {
      return this.#refuse(delivery, { reason: "invalid_event", answer: answers.UNPROCESSABLE, more: { reason } });
    }
    const answer = await this.#engine().quarantine(quarantine);
    if (answer === "full") {
      delivery.reason = "quarantine_full";
      this.#alerts.error(
        { code: "quarantine_full", slot },
        "The quarantine is full: a signed body that is no event was answered with 503.",
      );
      return answers.UNAVAILABLE;
    }
    delivery.reason = reason;
    this.#log.warn({ code: "quarantined", reason, slot }, "A signed body is no event; it was kept in the quarantine.");
    return answers.accepted("quarantined");
  }

  async #inSlot(delivery: Delivery, work: () => Promise<Answer>): Promise<Answer> {
    if (this.#inWork >= MOST_IN_WORK) return this.#refuse(delivery, { reason: "busy", answer: answers.UNAVAILABLE });
    this.#inWork += 1;
    try {
      return await work();
    } finally {
      this.#inWork -= 1;
    }
  }

  #refuseBody(delivery: Delivery, failure: Exclude<BodyResult, { ok: true }>): Answer {
    const { reason } = failure;
    switch (reason) {
      case "too_large":
        return this.#refuse(delivery, { reason, answer: answers.TOO_LARGE });
      case "truncated":
        return this.#refuse(delivery, { reason, answer: answers.BODY_TRUNCATED });
      case "cut":
        return this.#refuse(delivery, { reason, answer: answers.UNAVAILABLE_UNREAD });
      case "already_parsed":
        delivery.reason = reason;
        this.#count("refused:already_parsed");
        this.#alerts.error({ code: "raw_body_unavailable" }, bodyParsedMessage(failure));
        return answers.RAW_BODY_UNAVAILABLE;
      default:
        return reason satisfies never;
    }
  }

  #refuse(delivery: Delivery, { reason, answer, more = {} }: Refused): Answer {
    delivery.reason = reason;
    this.#count(`refused:${reason}`);
    this.#log.warn({ code: reason, status: answer.status, ...more }, "A delivery was refused.");
    return answer;
  }

  #count(counter: string): void {
    const { counters } = this.#engine();
    counters[counter] = (counters[counter] ?? 0) + 1;
  }

  #answerFailure(delivery: Delivery, error: unknown): Answer {
    delivery.reason = failureCode(error);
    // A delivery that failed later has been counted by its secret's slot.
    if (error instanceof KeyringError) this.#count("refused:keyring_unavailable");
    const misconfigured = error instanceof SetupError;
    const sentence = misconfigured
      ? "A delivery was answered with 500."
      : "A delivery was answered with 503; the service retries.";
    const fields = { code: delivery.reason, keyring: error instanceof KeyringError };
    this.#alerts.warn(fields, explained(sentence, error));
    return misconfigured ? answers.MISCONFIGURED : answers.UNAVAILABLE;
  }
}

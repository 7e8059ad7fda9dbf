/** From a delivery to its answer: verify, parse, store, and with `ack: "handled"` wait for its handlers. The cheapest check comes first. */
import { KeyringError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { ClaimEnding } from "../inbox/completion.ts";
import type { DeliveryOutcome, DeliveryReport, Observation } from "../inbox/instrumentation.ts";
import { explained, failureCode, placeFields } from "../inbox/masking.ts";
import type { EventId, LaneId, NewQuarantine } from "../inbox/record.ts";
import { type LogFields, SampledLog } from "../internal/logger.ts";
import { type KeyringSource, LookUpsCrowded } from "../signature/keyring-provider.ts";
import { vouchingMatch } from "../signature/verify.ts";
import {
  type HeaderRefusal,
  type RefusedRequest,
  type RequestRules,
  RequestVerifier,
  refuseMethod,
  type VerifiedRequest,
} from "./body-limits.ts";
import type { Engine, StoredAcceptance } from "./engine.ts";
import * as answers from "./incoming.ts";
import { type Answer, bodyParsedMessage, type IncomingWebhook } from "./incoming.ts";
import { newEvent, newQuarantine, readTrace, type Verified } from "./to-inbox-event.ts";

/** Verified deliveries in progress. A slot is taken after the signature has matched, so neither slow nor forged requests hold one. */
const MOST_IN_PROGRESS = 256;

/** Why a request was refused, for logs and counters. */
type Refusal = RefusedRequest["reason"] | HeaderRefusal["reason"] | "out_of_scope" | "busy" | "invalid_event";

interface Refused {
  readonly reason: Refusal;
  readonly answer: Answer;
  /** For the log. */
  readonly more?: LogFields;
  /** Its message is logged if it is one of our own errors. */
  readonly cause?: unknown;
}

export class HttpHandler<Tx> {
  readonly #engine: () => Engine<Tx>;
  readonly #verifier: RequestVerifier;
  readonly #log: SampledLog;
  /** Separate, so that a flood of refused requests does not hide our own failures. */
  readonly #alerts: SampledLog;
  #inProgress = 0;

  /** @param engine - called at each use: `takeOver()` replaces it */
  constructor(engine: () => Engine<Tx>, keyrings: KeyringSource) {
    const { clock, logger } = engine().options;
    this.#engine = engine;
    this.#verifier = new RequestVerifier(keyrings, clock);
    this.#log = new SampledLog(logger, clock);
    this.#alerts = new SampledLog(logger, clock);
  }

  /** Never rejects: every failure has an answer. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    const delivery = new Delivery(incoming);
    const observed = this.#engine().inUse.instruments.delivery();
    return observed === null ? this.#answer(delivery) : this.#observed(delivery, observed);
  }

  #observed(delivery: Delivery, observed: Observation<DeliveryReport>): Promise<Answer> {
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
    const refused = refuseMethod(incoming.method);
    if (refused !== null) return this.#refuse(delivery, refused);
    const request = await this.#verifier.verify(incoming, this.#rules(), delivery);
    if (!request.ok) return this.#refuseRequest(delivery, request);
    this.#inProgress += 1;
    try {
      if (this.#inProgress > MOST_IN_PROGRESS)
        return this.#refuse(delivery, { reason: "busy", answer: answers.UNAVAILABLE });
      return await this.#receive(delivery, request);
    } finally {
      this.#inProgress -= 1;
      request.release();
    }
  }

  #rules(): RequestRules {
    const { tolerance, timestampFormat, signatureEncoding, maxBodyBytes } = this.#engine().options;
    return { tolerance, timestampFormat, encoding: signatureEncoding, maxBodyBytes, mayBeUnsigned: true };
  }

  /** The bytes are complete and signed: parses and accepts them. */
  async #receive(delivery: Delivery, { match, checked, bytes }: VerifiedRequest): Promise<Answer> {
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
        "The quarantine is full: a signed body that is not a valid event was answered with 503. Discard or replay quarantined bodies.",
      );
      return answers.UNAVAILABLE;
    }
    delivery.reason = reason;
    this.#log.warn({ code: "quarantined", reason, slot }, "Signed body is not a valid event; quarantined.");
    return answers.accepted("quarantined");
  }

  #refuseRequest(delivery: Delivery, refused: RefusedRequest): Answer {
    const { reason, answer } = refused;
    if (reason !== "already_parsed") return this.#refuse(delivery, { reason, answer });
    delivery.reason = reason;
    this.#count("refused:already_parsed");
    this.#alerts.error({ code: "raw_body_unavailable" }, bodyParsedMessage(refused));
    return answer;
  }

  #refuse(delivery: Delivery, { reason, answer, more = {}, cause }: Refused): Answer {
    delivery.reason = reason;
    this.#count(`refused:${reason}`);
    const sentence = explained("A delivery was refused.", cause);
    this.#log.warn({ code: reason, status: answer.status, ...more }, sentence);
    return answer;
  }

  #count(counter: string): void {
    const { counters } = this.#engine().upkeep;
    counters[counter] = (counters[counter] ?? 0) + 1;
  }

  #answerFailure(delivery: Delivery, error: unknown): Answer {
    // A flood of forged requests is not our own failure.
    if (error instanceof LookUpsCrowded) {
      return this.#refuse(delivery, { reason: "busy", answer: answers.UNAVAILABLE, cause: error });
    }
    delivery.reason = failureCode(error);
    // A delivery that failed after this was counted by its secret's slot.
    if (error instanceof KeyringError) this.#count("refused:keyring_unavailable");
    const misconfigured = error instanceof SetupError;
    const sentence = misconfigured
      ? "A delivery was answered with 500."
      : "A delivery was answered with 503; the service retries.";
    const fields = { ...placeFields(error), keyring: error instanceof KeyringError };
    this.#alerts.warn(fields, explained(sentence, error));
    return misconfigured ? answers.MISCONFIGURED : answers.UNAVAILABLE;
  }
}

/** One delivery in progress, and what is reported about it once it is answered. */
class Delivery {
  readonly incoming: IncomingWebhook;
  /** Why it was not accepted as an event. */
  reason: string | null = null;
  /** The slot of the secret that signed it. */
  slot: string | null = null;
  /** A duplicate with different content. */
  conflict = false;
  /** Below its message's cursor. */
  late = false;
  /** Its body was read to its end. Otherwise the connection must be closed. */
  isRead = false;

  constructor(incoming: IncomingWebhook) {
    this.incoming = incoming;
  }

  report(answer: Answer, durationMs: number): DeliveryReport {
    const { reason, slot, late } = this;
    return { outcome: this.#outcome(answer), status: answer.status, reason, slot, late, durationMs };
  }

  #outcome(answer: Answer): DeliveryOutcome {
    if (this.conflict && answer.status === 200) return "conflict";
    return answers.acceptedOutcome(answer) ?? (answer.status < 500 ? "refused" : "failed");
  }
}

/** Two seconds less than the service's own time-out (DLV-19). */
const DEADLINE_MS = 8_000;
/** Deliveries that may wait for one event: the first and four duplicates. Others get 503, and the service retries. */
const MOST_WAITING = 5;

/** The answer with `ack: "handled"`: the request claims the lane of its event and waits for the handlers, within bounds. */
async function whenHandled<Tx>(engine: Engine<Tx>, acceptance: StoredAcceptance): Promise<Answer> {
  const durable = engine.options.store.capabilities.durable;
  if (acceptance.outcome === "duplicate" && acceptance.state !== "pending") {
    return acceptance.state === "dead" && !durable ? answers.UNAVAILABLE : answers.accepted("duplicate");
  }
  if (acceptance.outcome === "late" && engine.lateEvents === "record") return answers.accepted("late");
  if (engine.waiters.count(acceptance.event) >= MOST_WAITING) return answers.UNAVAILABLE;
  const ending = await untilEnded(engine, acceptance.lane, acceptance.event);
  if (ending === "done") return answers.accepted("handled");
  return ending === "dead" && durable ? answers.accepted("dead") : answers.UNAVAILABLE;
}

/** A gap, a backoff or the deadline end the wait as `put_back`: the event is kept, and the service's retry claims it again. */
function untilEnded<Tx>(engine: Engine<Tx>, lane: LaneId, event: EventId): Promise<ClaimEnding> {
  return new Promise((resolve) => {
    const finish = (ending: ClaimEnding) => {
      stopWaiting();
      timer.cancel();
      resolve(ending);
    };
    const stopWaiting = engine.waiters.add(event, finish);
    const timer = engine.options.clock.setTimeout(() => finish("put_back"), DEADLINE_MS);
    engine.worker.claimOnDemand(lane, event, () => finish("put_back"));
  });
}

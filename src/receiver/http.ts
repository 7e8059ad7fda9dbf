/** From a delivery to its answer: verify, parse, store, and with `ack: "handled"` wait for its handlers. The cheapest check comes first. */
import { KeyringError, SetupError } from "../errors.ts";
import type { ClaimEnding } from "../inbox/completion.ts";
import type { DeliveryOutcome, DeliveryReport, Observation } from "../inbox/instrumentation.ts";
import { keepsRow } from "../inbox/lane.ts";
import { explained, failureCode, placeFields } from "../inbox/masking.ts";
import type { NewEvent, NewQuarantine } from "../inbox/record.ts";
import type { Acceptance } from "../inbox/store.ts";
import { type LogFields, maskNumbers, SampledLog } from "../internal/logger.ts";
import { readTrace } from "../sources/headers.ts";
import { LookUpsCrowded } from "../sources/keyring-provider.ts";
import type { ConnectedSource, SourceAnswer } from "../sources/source.ts";
import {
  type BodyBudget,
  type RefusedRequest,
  RequestVerifier,
  refuseMethod,
  type VerifiedRequest,
} from "./body-limits.ts";
import type { Engine, StoredAcceptance } from "./engine.ts";
import * as answers from "./incoming.ts";
import { type AcceptedOutcome, type Answer, bodyParsedMessage, type IncomingWebhook } from "./incoming.ts";

/** Verified deliveries in progress. A slot is taken after the signature has matched, so neither slow nor forged requests hold one. */
const MOST_IN_PROGRESS = 256;

interface Refused {
  /** For logs and counters: a code of the source, or why the request was refused without it. */
  readonly reason: string;
  readonly answer: Answer;
  /** For the log. */
  readonly more?: LogFields;
  /** Its message is logged if it is one of our own errors. */
  readonly cause?: unknown;
}

type Duplicate = Extract<Acceptance, { outcome: "duplicate" }>;

interface Named {
  readonly name: string;
  readonly source: ConnectedSource;
}

export class HttpHandler<Tx> {
  readonly #engine: () => Engine<Tx>;
  readonly #source: ConnectedSource;
  readonly #name: string;
  /** The source's own answer to what was accepted. */
  readonly #accepted: Answer | null;
  readonly #verifier: RequestVerifier;
  readonly #log: SampledLog;
  /** Separate, so that a flood of refused requests does not hide our own failures. */
  readonly #alerts: SampledLog;
  #inProgress = 0;
  /** Whether a key named a tenant in this process. */
  #hasTenant = false;
  /** When a log line last said that bodies gave way. */
  #droppedAt = Number.NEGATIVE_INFINITY;

  /** @param engine - called at each use: `takeOver()` replaces it */
  constructor(engine: () => Engine<Tx>, { name, source }: Named, budget?: BodyBudget) {
    const { clock, logger } = engine().options;
    this.#engine = engine;
    this.#source = source;
    this.#name = name;
    this.#accepted = source.accepted === null ? null : answers.ofSource(source.accepted);
    this.#verifier = new RequestVerifier(source, clock, budget);
    this.#log = new SampledLog(logger, clock);
    this.#alerts = new SampledLog(logger, clock);
  }

  /** Never rejects: every failure has an answer. */
  handle(incoming: IncomingWebhook): Promise<Answer> {
    const delivery = new Delivery(incoming, this.#name);
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
    if (incoming.method === "GET" && this.#source.challenge !== undefined) return this.#greet(delivery);
    const refused = refuseMethod(incoming.method, this.#source);
    if (refused !== null) return this.#refuse(delivery, refused);
    const request = await this.#verifier.verify(incoming, delivery);
    if (!request.ok) return this.#refuseRequest(delivery, request);
    this.#inProgress += 1;
    try {
      if (this.#inProgress > MOST_IN_PROGRESS)
        return this.#refuse(delivery, { reason: "busy", answer: answers.UNAVAILABLE });
      return await this.#receive(delivery, request);
    } finally {
      this.#inProgress -= 1;
      request.reading.release();
    }
  }

  /** The bytes are complete and signed: parses and accepts them. */
  async #receive(delivery: Delivery, { head, match, bytes }: VerifiedRequest): Promise<Answer> {
    const engine = this.#engine();
    const circumstances = { trace: readTrace(delivery.incoming.headers), now: engine.options.clock.now() };
    const reading = this.#source.read(head, match, bytes, circumstances);
    if (reading === null) return this.#refuse(delivery, { reason: "out_of_scope", answer: answers.UNAUTHORIZED });
    delivery.slot = reading.kind === "no_event" ? reading.quarantine.slot : reading.slot;
    this.#count(`slot:${this.#name}:${delivery.slot}`);
    if (reading.kind === "handshake") return this.#shakeHands(delivery, reading.answer);
    await engine.open();
    await engine.admitted();
    if (reading.kind === "no_event") return this.#quarantine(delivery, reading.quarantine);
    const event = reading.toStore();
    if (!keepsRow(event)) {
      engine.drop(event);
      return this.#accept(delivery, "filtered");
    }
    if (reading.isOfKey && event.lane.tenant !== null) this.#noteTenant(event.lane.tenant);
    const acceptance = await engine.accept(event, reading.event);
    delivery.late = acceptance.outcome === "late";
    delivery.conflict = acceptance.outcome === "duplicate" && acceptance.conflict;
    if (acceptance.outcome === "duplicate" && !acceptance.conflict) this.#noteSameBody(event, acceptance);
    if (engine.options.ack === "stored" || acceptance.outcome === "filtered")
      return this.#accept(delivery, acceptance.outcome);
    const outcome = await whenHandled(engine, acceptance, this.#source.answerMs);
    if (outcome !== null) return this.#accept(delivery, outcome);
    delivery.reason = "not_handled";
    return answers.UNAVAILABLE;
  }

  #accept(delivery: Delivery, outcome: AcceptedOutcome): Answer {
    delivery.outcome = outcome;
    if (outcome === "filtered") this.#count(`filtered:${this.#name}`);
    return this.#accepted ?? answers.accepted(outcome);
  }

  /** A GET, which has no signature: its query proves who asks. */
  async #greet(delivery: Delivery): Promise<Answer> {
    const answer = await this.#verifier.greet(delivery.incoming);
    if (answer !== null) return this.#shakeHands(delivery, answer);
    return this.#refuse(delivery, { reason: "challenge_failed", answer: answers.UNAUTHORIZED_UNREAD });
  }

  #shakeHands(delivery: Delivery, answer: SourceAnswer): Answer {
    delivery.outcome = "handshake";
    this.#count("handshakes");
    return answers.ofSource(answer);
  }

  async #quarantine(delivery: Delivery, quarantine: NewQuarantine): Promise<Answer> {
    const { slot, reason } = quarantine;
    // Where the source's own code failed, the sender is not to blame: the body is kept all the same.
    if (this.#engine().options.quarantine === "reject" && reason !== "source_failed") {
      return this.#refuse(delivery, { reason: "invalid_event", answer: answers.UNPROCESSABLE, more: { reason } });
    }
    const engine = this.#engine();
    const answer = await engine.quarantine(quarantine);
    if (answer === "full") {
      engine.quarantineWasFull();
      delivery.reason = "quarantine_full";
      this.#alerts.error(
        { code: "quarantine_full", slot },
        "The quarantine is full: a signed body that is not a valid event was answered with 503. Discard or replay quarantined bodies.",
      );
      return answers.UNAVAILABLE;
    }
    if (typeof answer === "object") this.#dropped(answer.dropped, slot);
    delivery.reason = reason;
    this.#log.warn({ code: "quarantined", reason, slot }, "Signed body is not a valid event; quarantined.");
    return this.#accept(delivery, "quarantined");
  }

  /** Held bodies gave way to a new one. Logged once an hour, because a flood of them would be a line each. */
  #dropped(count: number, slot: string): void {
    const engine = this.#engine();
    engine.quarantineWasFull();
    this.#count("quarantine_dropped", count);
    const now = engine.options.clock.monotonic();
    if (now - this.#droppedAt < HOUR_MS) return;
    this.#droppedAt = now;
    this.#alerts.error({ code: "quarantine_dropped", slot }, DROPPED);
  }

  /** A tenant is part of the identity, so the first secret that names one makes all earlier events new. Nothing waits for the look-up. */
  #noteTenant(tenant: string): void {
    if (this.#hasTenant) return;
    this.#hasTenant = true;
    const source = this.#name;
    const { store } = this.#engine().options;
    const warn = ({ items }: { readonly items: readonly unknown[] }) => {
      if (items.length === 0) return;
      const message = `A secret of the source "${source}" names a tenant now, and the inbox has events of that source without one: if they are sent again, they are handled again, as the tenant's. Leave the tenant out to keep them known.`;
      this.#alerts.warn({ code: "first_tenant", source, tenant: maskNumbers(tenant) }, message);
    };
    // A store that fails now also fails the delivery.
    store.find({ source, tenant: null, limit: 1 }).then(warn, () => {});
  }

  /** Of a source whose sender signs no id: a body came again under another one. A captured delivery looks like this. */
  #noteSameBody({ externalReference: reference }: NewEvent, { event: eventId, reference: first }: Duplicate): void {
    if (reference === null || first === undefined || first === null || reference === first) return;
    this.#count("same_body");
    const ids = { reference: maskNumbers(reference), first: maskNumbers(first) };
    this.#log.warn(
      { code: "same_body", source: this.#name, eventId, ...ids },
      "A body that was accepted before came again under another id. It is not handled again.",
    );
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

  #count(counter: string, by = 1): void {
    const { counters } = this.#engine().upkeep;
    counters[counter] = (counters[counter] ?? 0) + by;
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

const HOUR_MS = 3_600_000;
const DROPPED =
  "The quarantine is full: the oldest bodies that a provider's user can cause were discarded to hold new ones. Discard or replay the held bodies.";

/** One delivery in progress, and what is reported about it once it is answered. */
class Delivery {
  readonly incoming: IncomingWebhook;
  /** Why it was not accepted as an event. */
  reason: string | null = null;
  /** The slot of the secret that signed it. */
  slot: string | null = null;
  /** Null for one that was refused or failed. */
  outcome: AcceptedOutcome | "handshake" | null = null;
  /** A duplicate with different content. */
  conflict = false;
  /** Below its message's cursor. */
  late = false;
  /** Its body was read to its end. Otherwise the connection must be closed. */
  isRead = false;
  /** The name of the entry that it came through. */
  readonly #source: string;

  constructor(incoming: IncomingWebhook, source: string) {
    this.incoming = incoming;
    this.#source = source;
  }

  report(answer: Answer, durationMs: number): DeliveryReport {
    const { reason, slot, late } = this;
    return {
      ...{ outcome: this.#outcome(answer), status: answer.status, reason, slot, late, durationMs },
      source: this.#source,
    };
  }

  #outcome(answer: Answer): DeliveryOutcome {
    if (this.outcome !== null) return this.conflict ? "conflict" : this.outcome;
    return answer.status < 500 ? "refused" : "failed";
  }
}

/** The wait for handlers ends so long before the sender would give up (DLV-19: 10 s). */
const MARGIN_MS = 2_000;
/** Deliveries that may wait for one event: the first and four duplicates. Others get 503, and the service retries. */
const MOST_WAITING = 5;

/** With `ack: "handled"` the request claims the lane of its event and waits for the handlers, within bounds. Null for an answer of 503. */
async function whenHandled<Tx>(
  engine: Engine<Tx>,
  acceptance: StoredAcceptance,
  answerMs: number,
): Promise<AcceptedOutcome | null> {
  const durable = engine.options.store.capabilities.durable;
  if (acceptance.outcome === "duplicate" && acceptance.state !== "pending") {
    return acceptance.state === "dead" && !durable ? null : "duplicate";
  }
  if (engine.waiters.count(acceptance.event) >= MOST_WAITING) return null;
  const waitMs = Math.max(answerMs / 2, answerMs - MARGIN_MS);
  const ending = await untilEnded(engine, acceptance, waitMs);
  if (ending === "done") return "handled";
  if (ending === "late") return "late";
  return ending === "dead" && durable ? "dead" : null;
}

/** A gap, a backoff or the deadline end the wait as `put_back`: the event is kept, and the service's retry claims it again. */
function untilEnded<Tx>(engine: Engine<Tx>, { lane, event }: StoredAcceptance, waitMs: number): Promise<ClaimEnding> {
  return new Promise((resolve) => {
    const finish = (ending: ClaimEnding) => {
      stopWaiting();
      timer.cancel();
      resolve(ending);
    };
    const stopWaiting = engine.waiters.add(event, finish);
    const timer = engine.options.clock.setTimeout(() => finish("put_back"), waitMs);
    engine.worker.claimOnDemand(lane, event, () => finish("put_back"));
  });
}

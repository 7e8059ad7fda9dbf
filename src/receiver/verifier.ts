/** Verifies and parses whole requests, without an inbox: the core of every adapter's `…Verify`. */
import { KeyringError } from "../errors.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import { systemClock } from "../internal/clock.ts";
import { type Logger, SampledLog } from "../internal/logger.ts";
import { LookUpsCrowded } from "../sources/keyring-provider.ts";
import type { ConnectedSource } from "../sources/source.ts";
import { type RefusedRequest, RequestVerifier, type UnverifiedWebhook, type VerifiedRequest } from "./body-limits.ts";
import * as answers from "./incoming.ts";
import { type Answer, bodyParsedMessage } from "./incoming.ts";

export type { UnverifiedWebhook };

/** A delivery whose signature matches, or the answer to a refused one or to a handshake. */
export type VerifiedRequestOf<Event> =
  | { readonly ok: true; readonly event: Event; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly answer: Answer };

/**
 * Makes a function that verifies and parses one request, and stores nothing. The function never rejects: every failure has an answer.
 *
 * @typeParam Event - what the source reads
 */
export function verifierOf<Event extends object>(
  source: ConnectedSource,
  logger: Logger,
): (incoming: UnverifiedWebhook) => Promise<VerifiedRequestOf<Event>> {
  const log = new SampledLog(logger, systemClock);
  const verifier = new RequestVerifier(source, systemClock);
  const parse = ({ head, bytes, match }: VerifiedRequest): VerifiedRequestOf<Event> => {
    const reading = source.read(head, match, bytes, { trace: null, now: systemClock.now() });
    if (reading === null) return refuse(answers.UNAUTHORIZED);
    if (reading.kind === "handshake") return refuse(answers.ofSource(reading.answer));
    return reading.kind === "event"
      ? { ok: true, event: reading.event as Event, bytes }
      : refuse(answers.UNPROCESSABLE);
  };
  return async (incoming) => {
    const progress = { isRead: false };
    try {
      if (incoming.method === "GET" && source.challenge !== undefined) {
        const answer = await verifier.greet(incoming);
        return refuse(answer === null ? answers.UNAUTHORIZED_UNREAD : answers.ofSource(answer));
      }
      const request = await verifier.verify(incoming, progress);
      if (!request.ok) return refuse(answerTo(request, log));
      request.reading.release();
      return parse(request);
    } catch (error) {
      const answer = answerToFailure(error, log);
      return refuse(progress.isRead ? answer : answers.unread(answer));
    }
  };
}

function answerTo(refused: RefusedRequest, log: SampledLog): Answer {
  if (refused.reason === "already_parsed") log.error({ code: "raw_body_unavailable" }, bodyParsedMessage(refused));
  return refused.answer;
}

function answerToFailure(error: unknown, log: SampledLog): Answer {
  // A flood of forged requests is not our own failure.
  if (error instanceof LookUpsCrowded) return answers.UNAVAILABLE;
  const fields = placeFields(error);
  if (error instanceof KeyringError) {
    log.warn(fields, explained("A delivery could not be verified; it was answered with 503.", error));
    return answers.UNAVAILABLE;
  }
  log.error(fields, explained("A delivery could not be verified; it was answered with 500.", error));
  return answers.MISCONFIGURED;
}

function refuse(answer: Answer): { readonly ok: false; readonly answer: Answer } {
  return { ok: false, answer };
}

/** One delivery as the service makes it, over HTTP, and what became of it. */

import { type Clock, sleep, systemClock } from "../../internal/clock.ts";
import { BAD_PORT, isBadPort } from "../../internal/network.ts";
import { isRecord } from "../../internal/type-guards.ts";
import { signedRequest } from "../../testing/signed-request.ts";
import { CommandError, FAILURE, isSystemError } from "../failure.ts";

export interface Delivered {
  readonly eventType: string;
  readonly messageId: string | null;
  readonly sequence: number | null;
  /** HTTP status. */
  readonly status: number;
  readonly durationMs: number;
  /** `accepted`, `duplicate`, …, or `unauthorized`: the one word of a receiver's answer; null where there is none. */
  readonly outcome: string | null;
}

/** Where to, and signed with what. */
export interface Target {
  readonly url: string;
  readonly secret: string;
}

/** As long as the service waits. */
const TIMEOUT_MS = 10_000;
/** Of an answer nothing more is read. */
const MOST_BYTES = 16_384;

/** @throws CommandError when no answer comes */
export async function deliverTo(
  { url, secret }: Target,
  event: object,
  clock: Clock = systemClock,
): Promise<Delivered> {
  const startedAt = clock.monotonic();
  const ending = new AbortController();
  const waited = new AbortController();
  void sleep(clock, TIMEOUT_MS, waited.signal).then(() => ending.abort());
  try {
    const request = signedRequest(event, { secret });
    const response = await fetch(url, { ...request, redirect: "manual", signal: ending.signal });
    const outcome = outcomeOf(await beginningOf(response));
    const durationMs = Math.round(clock.monotonic() - startedAt);
    return { ...namesOf(event), status: response.status, durationMs, outcome };
  } catch (error) {
    throw unanswered(error, ending.signal.aborted);
  } finally {
    waited.abort();
  }
}

async function beginningOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    parts.push(part);
    size += part.length;
    if (size > MOST_BYTES) break;
  }
  return Buffer.concat(parts).toString("utf8", 0, MOST_BYTES);
}

/** A receiver of oncehook says it in one word; other texts are whoever's. */
function outcomeOf(text: string): string | null {
  try {
    const answer: unknown = JSON.parse(text);
    const word = isRecord(answer) ? (answer.outcome ?? answer.error) : undefined;
    return typeof word === "string" && /^[a-z_]{1,40}$/.test(word) ? word : null;
  } catch {
    return null;
  }
}

function namesOf(event: object): Pick<Delivered, "eventType" | "messageId" | "sequence"> {
  const { eventType, messageId, sequence, data }: { [name: string]: unknown } = { ...event };
  const id = messageId ?? (isRecord(data) ? data.messageId : undefined);
  return {
    eventType: String(eventType),
    messageId: typeof id === "string" ? id : null,
    sequence: typeof sequence === "number" ? sequence : null,
  };
}

function unanswered(error: unknown, isLate: boolean): CommandError {
  if (isLate) return new CommandError(`No answer came within ${TIMEOUT_MS / 1000} s.`, FAILURE, { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  const code = isSystemError(cause) ? cause.code : undefined;
  const otherwise = isBadPort(error) ? BAD_PORT : "the connection failed";
  const why = code === "ECONNREFUSED" ? "nothing listens there; is the receiver running?" : (code ?? otherwise);
  return new CommandError(`No answer came: ${why}`.replace(/(?<![.?])$/, "."), FAILURE, { cause: error });
}

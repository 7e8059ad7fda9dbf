/**
 * The way of a request from its headers to verified bytes, for receivers and for `…Verify`. The order of the checks is the order of
 * their cost. An unverified request takes no place of a verified one: it waits in places of its own.
 */
import type { Clock } from "../internal/clock.ts";
import type { CompiledKeyring } from "../signature/keyring.ts";
import {
  type KeyringContext,
  type KeyringSource,
  keyringContext,
  LookUpsCrowded,
} from "../signature/keyring-provider.ts";
import {
  type CheckedHeaders,
  carriesNeitherHeader,
  checkHeaders,
  type HeaderPolicy,
  type Match,
  matchSignature,
  matchUnsigned,
  type VerifyFailureCode,
} from "../signature/verify.ts";
import * as answers from "./answers.ts";
import { declaredLength, type HeadRefusal, refuseBody } from "./head.ts";
import type { Answer, BodyResult, IncomingWebhook } from "./incoming.ts";
import { type Reading, ReadingBudget } from "./reading.ts";

/** Any method will do: the caller checks it. */
export type UnverifiedWebhook = Pick<IncomingWebhook, "headers" | "readBody" | "tenant" | "route">;

export interface AdmissionRules extends HeaderPolicy {
  /** Bytes. */
  readonly maxBodyBytes: number;
  /** A request without a signature may be of an unsigned kind. Otherwise it is refused before the keyring is read. */
  readonly mayBeUnsigned: boolean;
}

/** A request whose signature fits. Its bytes count against the reading budget until `release` is called. */
export interface Admitted {
  readonly ok: true;
  readonly bytes: Uint8Array;
  readonly match: Match;
  /** Null for a delivery of an unsigned kind. */
  readonly checked: CheckedHeaders | null;
  release(): void;
}

export interface NotAdmitted {
  readonly ok: false;
  readonly reason: VerifyFailureCode | HeadRefusal["reason"] | Exclude<BodyResult, { ok: true }>["reason"];
  readonly answer: Answer;
  /** With `already_parsed`: how this host leaves the bytes, for the log. */
  readonly fix?: string;
}

/** How far a request has come, for the answer to an error. */
export interface Progress {
  /** The body was read to its end. Otherwise the connection cannot be kept. */
  isRead: boolean;
}

interface SignedBody {
  readonly checked: CheckedHeaders;
  readonly bytes: Uint8Array;
  readonly keyring: CompiledKeyring;
  readonly context: KeyringContext;
}

const BODY_ANSWERS = {
  too_large: answers.TOO_LARGE,
  truncated: answers.BODY_TRUNCATED,
  cut: answers.UNAVAILABLE_UNREAD,
  already_parsed: answers.RAW_BODY_UNAVAILABLE,
} as const;

export class Admissions {
  readonly #keyrings: Pick<KeyringSource, "read" | "reread">;
  readonly #clock: Clock;
  readonly #readings: ReadingBudget;

  constructor(keyrings: Pick<KeyringSource, "read" | "reread">, clock: Clock) {
    this.#keyrings = keyrings;
    this.#clock = clock;
    this.#readings = new ReadingBudget(clock);
  }

  /**
   * Reads and verifies one request. The keyring is read before the body, so that a request that waits for a look-up holds no body.
   *
   * @throws LookUpsCrowded when too many wait for look-ups, KeyringError when there is no keyring now, and what `readBody` throws
   */
  async admit(incoming: UnverifiedWebhook, rules: AdmissionRules, progress: Progress): Promise<Admitted | NotAdmitted> {
    const { headers } = incoming;
    const refused = refuseBody(headers, rules.maxBodyBytes);
    if (refused !== null) return notAdmitted(refused.reason, refused.answer);
    const checked = checkHeaders(headers, rules, this.#clock.now());
    if (!checked.ok && !(rules.mayBeUnsigned && carriesNeitherHeader(headers))) {
      return notAdmitted(checked.code, answers.UNAUTHORIZED_UNREAD);
    }
    const context = keyringContext(incoming);
    const read = this.#keyrings.read(context);
    const keyring = read instanceof Promise ? await read : read;
    const unsigned = checked.ok ? null : matchUnsigned(headers, keyring);
    if (!checked.ok && unsigned === null) return notAdmitted(checked.code, answers.UNAUTHORIZED_UNREAD);
    const reading = this.#readings.begin(rules.maxBodyBytes, declaredLength(headers));
    let admitted: Admitted | null = null;
    try {
      const body = await incoming.readBody(reading);
      reading.finish();
      progress.isRead = true;
      if (!body.ok) return { ...body, answer: BODY_ANSWERS[body.reason] };
      const { bytes } = body;
      const match = checked.ok ? await this.#match(reading, { checked, bytes, keyring, context }) : unsigned;
      if (match === null) return notAdmitted("signature_mismatch", answers.UNAUTHORIZED);
      admitted = { ok: true, bytes, match, checked: checked.ok ? checked : null, release: reading.release };
      return admitted;
    } finally {
      if (admitted === null) reading.release();
    }
  }

  /** Tries the keyring at hand, and once more a fresher one. */
  #match(reading: Reading, { checked, bytes, keyring, context }: SignedBody): Match | null | Promise<Match | null> {
    const matchWith = (tried: CompiledKeyring) => matchSignature(checked, bytes, tried, this.#clock.now());
    const match = matchWith(keyring);
    if (match !== null) return match;
    if (!reading.wait()) throw new LookUpsCrowded();
    const fresher = this.#keyrings.reread(context, keyring).finally(() => reading.waited());
    return fresher.then((fresh) => (fresh === null ? null : matchWith(fresh)));
  }
}

function notAdmitted(reason: NotAdmitted["reason"], answer: Answer): NotAdmitted {
  return { ok: false, reason, answer };
}

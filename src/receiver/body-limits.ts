/** From a request's headers to its verified bytes, for receivers and for `…Verify`: header checks, limits on bodies, then the signature. */
import type { Clock, Timer } from "../internal/clock.ts";
import { type HeaderSource, readHeader } from "../signature/headers.ts";
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
import type { Answer, BodyReading, BodyResult, IncomingWebhook } from "./incoming.ts";

// The way of a request from its headers to verified bytes, for receivers and for `…Verify`. The order of the checks is the order of
// their cost. An unverified request takes no place of a verified one: it waits in places of its own.

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
interface Progress {
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

// What a request's head alone can be refused for, before anything of its body is read.

export interface HeadRefusal {
  readonly reason: "method" | "encoding" | "too_large";
  readonly answer: Answer;
}

const METHOD: HeadRefusal = { reason: "method", answer: answers.METHOD_NOT_ALLOWED };
const ENCODING: HeadRefusal = { reason: "encoding", answer: answers.UNSUPPORTED_ENCODING };
const TOO_LARGE: HeadRefusal = { reason: "too_large", answer: answers.TOO_LARGE };

/** The service's method is not shown (DLV-11): POST and PUT carry a body, others are refused. */
export function refuseMethod(method: string): HeadRefusal | null {
  return method === "POST" || method === "PUT" ? null : METHOD;
}

/** A compressed body has other bytes than the ones that were signed, and a declared length says what is coming. */
function refuseBody(headers: HeaderSource, maxBodyBytes: number): HeadRefusal | null {
  const encoding = readHeader(headers, "content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") return ENCODING;
  const declared = declaredLength(headers);
  return declared !== null && declared > maxBodyBytes ? TOO_LARGE : null;
}

/** Null for an absent or meaningless `Content-Length`: the body is then bounded as it is read. */
function declaredLength(headers: HeaderSource): number | null {
  const text = readHeader(headers, "content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

// Keeps the reading of bodies within memory and time: a byte budget for all of them, a deadline and a minimum rate for each.

/** Bytes that unfinished and unprocessed bodies may hold together. */
const BUDGET_BYTES = 64 * 1024 * 1024;
/** Of these, what complete bodies may hold while they wait for a fresher keyring: they cannot be cut to make room. */
const WAITING_BYTES = BUDGET_BYTES / 4;
/** What a chunk takes beside its bytes, as measured on Node: a body that comes byte by byte takes hundreds of times what it is. */
const CHUNK_BYTES = 1024;
/** A body that is not complete by then is cut. */
const DEADLINE_MS = 10_000;
/** After the first seconds a body must have come at this rate on average. */
const RATE_AFTER_MS = 3_000;
const LEAST_BYTES_PER_MS = 1;
const SWEEP_MS = 500;

/** One body from its first byte to the end of its processing. */
interface Reading extends BodyReading {
  /** The body is complete, or given up: it can no longer be cut. */
  finish(): void;
  /** The complete body waits for a fresher keyring. False, and nothing changes, when such bodies hold as much as they may. */
  wait(): boolean;
  /** It waits no longer. */
  waited(): void;
  /** Its bytes are no longer held. */
  release(): void;
}

interface Unfinished {
  readonly startedAt: number;
  bytes: number;
  chunks: number;
  isReleased: boolean;
  isCut: boolean;
  cut: () => void;
}

export class ReadingBudget {
  readonly #clock: Clock;
  readonly #unfinished = new Set<Unfinished>();
  #held = 0;
  #waiting = 0;
  #sweep: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(maxBytes: number, declaredBytes: number | null): Reading {
    const one: Unfinished = {
      startedAt: this.#clock.monotonic(),
      bytes: 0,
      chunks: 0,
      isReleased: false,
      isCut: false,
      cut: () => {},
    };
    this.#unfinished.add(one);
    this.#sweep ??= this.#clock.setTimeout(() => this.#cutSlow(), SWEEP_MS);
    return {
      maxBytes,
      declaredBytes,
      received: (bytes) => {
        // A chunk that still comes after the body was given up is no longer held by anyone.
        if (one.isReleased) return;
        one.bytes += bytes;
        one.chunks += 1;
        this.#held += bytes + CHUNK_BYTES;
        if (this.#held > BUDGET_BYTES) this.#makeRoom();
      },
      onCut: (cut) => {
        one.cut = cut;
        // It may come to that before the adapter can be told.
        if (one.isCut) cut();
      },
      finish: () => this.#finish(one),
      wait: () => {
        if (this.#waiting + one.bytes > WAITING_BYTES) return false;
        this.#waiting += one.bytes;
        return true;
      },
      waited: () => {
        this.#waiting -= one.bytes;
      },
      release: () => this.#release(one),
    };
  }

  /** Its chunks were joined, and take no more than their bytes. */
  #finish(one: Unfinished): void {
    this.#unfinished.delete(one);
    if (!one.isReleased) this.#held -= one.chunks * CHUNK_BYTES;
    one.chunks = 0;
  }

  #release(one: Unfinished): void {
    this.#unfinished.delete(one);
    if (!one.isReleased) this.#held -= heldBy(one);
    one.isReleased = true;
  }

  #cutSlow(): void {
    const now = this.#clock.monotonic();
    for (const one of this.#unfinished) {
      const age = now - one.startedAt;
      const tooSlow = age > RATE_AFTER_MS && one.bytes < age * LEAST_BYTES_PER_MS;
      if (age > DEADLINE_MS || tooSlow) this.#cut(one);
    }
    this.#sweep = this.#unfinished.size > 0 ? this.#clock.setTimeout(() => this.#cutSlow(), SWEEP_MS) : null;
  }

  /**
   * Cuts who has held most for longest, bytes by time: an attacker who holds many bodies open harms only itself. By the rate
   * alone a small body in the midst of its pieces would make room for large ones that came quickly and then stalled.
   */
  #makeRoom(): void {
    const now = this.#clock.monotonic();
    let heaviest: Unfinished | null = null;
    let heaviestWeight = 0;
    for (const one of this.#unfinished) {
      const weight = heldBy(one) * Math.max(1, now - one.startedAt);
      if (weight > heaviestWeight) {
        heaviest = one;
        heaviestWeight = weight;
      }
    }
    if (heaviest !== null) this.#cut(heaviest);
  }

  #cut(one: Unfinished): void {
    // At once, not when it is settled: what comes until then would cut others too.
    this.#release(one);
    one.isCut = true;
    one.cut();
  }
}

const heldBy = ({ bytes, chunks }: Unfinished) => bytes + chunks * CHUNK_BYTES;

/**
 * From a request's headers to its verified bytes, for receivers and for `…Verify`: header checks, limits on bodies, then the signature. The
 * cheapest check comes first. An unverified request takes no slot of a verified one.
 */
import type { Clock, Timer } from "../internal/clock.ts";
import { type HeaderSource, readHeader } from "../sources/headers.ts";
import { type CompiledKeys, type KeyringContext, keyringContext, LookUpsCrowded } from "../sources/keyring-provider.ts";
import type { Claim, ConnectedSource, Refusal, SourceAnswer } from "../sources/source.ts";
import type { Answer, BodyReading, IncomingWebhook } from "./incoming.ts";
import * as answers from "./incoming.ts";

/** A request of any method: the caller checks that. With `method`, a GET that a source can answer is answered. */
export type UnverifiedWebhook = Omit<IncomingWebhook, "method"> & Partial<Pick<IncomingWebhook, "method">>;

/** A request whose signature matches. Its bytes count against the body budget until `reading` is released. */
export interface VerifiedRequest {
  readonly ok: true;
  readonly bytes: Uint8Array;
  /** What the source found in the headers, and about the key that signed the body. */
  readonly claimed: Claim;
  readonly match: object;
  readonly reading: Pick<BodyRead, "release">;
}

export interface RefusedRequest {
  readonly ok: false;
  /** A code of the source, such as `signature_mismatch`, or why the method, the headers or the body were refused. */
  readonly reason: string;
  readonly answer: Answer;
  /** With `already_parsed`: how this host keeps the bytes, for the log. */
  readonly fix?: string;
}

/** How far a request has come, for the answer to an error. */
export interface DeliveryProgress {
  /** The body was read to its end. Otherwise the connection must be closed. */
  isRead: boolean;
}

/** The keyring that a request met. */
interface KeyringOfRequest {
  readonly context: KeyringContext;
  readonly keyring: CompiledKeys;
  /** Monotonic milliseconds. */
  readonly cameAt: number;
}

const BODY_ANSWERS = {
  too_large: answers.TOO_LARGE,
  truncated: answers.BODY_TRUNCATED,
  cut: answers.UNAVAILABLE_UNREAD,
  already_parsed: answers.RAW_BODY_UNAVAILABLE,
} as const;

export class RequestVerifier {
  readonly #source: ConnectedSource;
  readonly #clock: Clock;
  readonly #budget: BodyBudget;

  constructor(source: ConnectedSource, clock: Clock, budget = new BodyBudget(clock)) {
    this.#source = source;
    this.#clock = clock;
    this.#budget = budget;
  }

  /**
   * Reads and verifies one request. The keyring is read before the body, so that a request that waits for a look-up holds no body.
   *
   * @throws LookUpsCrowded if too many requests wait for look-ups, KeyringError without a usable keyring, and any error of `readBody`
   */
  async verify(incoming: UnverifiedWebhook, progress: DeliveryProgress): Promise<VerifiedRequest | RefusedRequest> {
    const { headers } = incoming;
    const source = this.#source;
    const cameAt = this.#clock.monotonic();
    const { maxBodyBytes } = source;
    const declared = declaredLength(headers);
    const refusal = refuseHeaders(headers, declared, maxBodyBytes);
    if (refusal !== null) return refused(refusal.reason, refusal.answer);
    const claimed = source.check(incoming, this.#clock.now());
    if (!claimed.ok) return refused(claimed.code, answers.UNAUTHORIZED_UNREAD);
    const context = keyringContext(incoming);
    const read = source.keyrings.read(context);
    const keyring = read instanceof Promise ? await read : read;
    const unusable = source.refuse(claimed, keyring);
    if (unusable !== null) return refused(unusable.code, answers.UNAUTHORIZED_UNREAD);
    const reading = this.#budget.begin(maxBodyBytes, declared);
    let isVerified = false;
    try {
      const body = await incoming.readBody(reading);
      reading.finish();
      progress.isRead = true;
      if (!body.ok) return { ...body, answer: BODY_ANSWERS[body.reason] };
      const { bytes } = body;
      const matchWith = (keys: typeof keyring) => source.match(claimed, bytes, keys, this.#clock.now());
      const match = await this.#matched(reading, { context, keyring, cameAt }, matchWith);
      if (match === null) return refused("signature_mismatch", answers.UNAUTHORIZED);
      if (isRefusal(match)) return refused(match.code, answers.UNAUTHORIZED);
      isVerified = true;
      return { ok: true, bytes, claimed, match, reading };
    } finally {
      if (!isVerified) reading.release();
    }
  }

  /** Answers a GET, which no signature covers. Null unless it proves who asks. */
  async greet(incoming: UnverifiedWebhook): Promise<SourceAnswer | null> {
    const { keyrings } = this.#source;
    const context = keyringContext(incoming);
    const cameAt = this.#clock.monotonic();
    for (let keyring = await keyrings.read(context); ; ) {
      const answer = this.#source.challenge?.(incoming, keyring) ?? null;
      const fresher = answer === null ? await keyrings.reread(context, keyring, cameAt) : null;
      if (fresher === null) return answer;
      keyring = fresher;
    }
  }

  /** Tries fresher keyrings too, until one that was read after the request came: only that one can say no. */
  async #matched(
    reading: BodyRead,
    { context, keyring, cameAt }: KeyringOfRequest,
    matchWith: (keys: CompiledKeys) => object | null,
  ): Promise<object | null> {
    for (let keys = keyring; ; ) {
      const match = matchWith(keys);
      if (match !== null) return match;
      const asked = this.#source.keyrings.reread(context, keys, cameAt);
      const fresher = asked instanceof Promise ? await this.#waitedFor(asked, reading) : asked;
      if (fresher === null) return null;
      keys = fresher;
    }
  }

  /** @throws LookUpsCrowded if bodies that wait already hold their maximum. The secrets are read all the same. */
  async #waitedFor<T>(asked: Promise<T>, reading: BodyRead): Promise<T> {
    if (!this.#budget.wait(reading)) {
      asked.catch(() => {});
      throw new LookUpsCrowded();
    }
    return asked.finally(() => this.#budget.waited(reading));
  }
}

function isRefusal(match: object): match is Refusal {
  return "ok" in match && match.ok === false;
}

function refused(reason: RefusedRequest["reason"], answer: Answer): RefusedRequest {
  return { ok: false, reason, answer };
}

/** Why the method or the headers alone refuse a request, before its body is read. */
export interface HeaderRefusal {
  readonly reason: "method" | "encoding" | "too_large";
  readonly answer: Answer;
}

const METHOD: HeaderRefusal = { reason: "method", answer: answers.METHOD_NOT_ALLOWED };
const METHOD_WITH_CHALLENGE: HeaderRefusal = { reason: "method", answer: answers.METHOD_NOT_ALLOWED_WITH_CHALLENGE };
const ENCODING: HeaderRefusal = { reason: "encoding", answer: answers.UNSUPPORTED_ENCODING };
const TOO_LARGE: HeaderRefusal = { reason: "too_large", answer: answers.TOO_LARGE };

/** The specification does not name the service's method (DLV-11). POST and PUT carry a body; others are refused. */
export function refuseMethod(
  method: string,
  { challenge }: Pick<ConnectedSource, "challenge"> = {},
): HeaderRefusal | null {
  if (method === "POST" || method === "PUT") return null;
  return challenge === undefined ? METHOD : METHOD_WITH_CHALLENGE;
}

/** Compressed bytes are not the bytes that were signed. A declared length shows early that a body is too large. */
function refuseHeaders(headers: HeaderSource, declared: number | null, maxBodyBytes: number): HeaderRefusal | null {
  const encoding = readHeader(headers, "content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") return ENCODING;
  return declared !== null && declared > maxBodyBytes ? TOO_LARGE : null;
}

/** Null for an absent or invalid `Content-Length`. Then the body is bounded while it is read. */
function declaredLength(headers: HeaderSource): number | null {
  const text = readHeader(headers, "content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Bytes that unfinished and unprocessed bodies may hold together. */
const BUDGET_BYTES = 64 * 1024 * 1024;
/** The part of it for complete bodies that wait for a fresher keyring: they cannot be cut to make room. */
const WAITING_BYTES = BUDGET_BYTES / 4;
/** What a chunk takes besides its bytes, measured on Node. A body sent byte by byte takes hundreds of times its size. */
const CHUNK_BYTES = 1024;
/** A body that is not complete by then is cut. */
const DEADLINE_MS = 10_000;
/** After the first seconds a body must have arrived at this rate on average. */
const RATE_AFTER_MS = 3_000;
const LEAST_BYTES_PER_MS = 1;
const SWEEP_MS = 500;

/** One body from its first byte to the end of its processing. A class, because one is made for each delivery. */
class BodyRead implements BodyReading {
  readonly maxBytes: number;
  readonly declaredBytes: number | null;
  readonly startedAt: number;
  readonly #budget: BodyBudget;
  #bytes = 0;
  #chunks = 0;
  #isReleased = false;
  #isCut = false;
  #onCut: (() => void) | null = null;

  constructor(budget: BodyBudget, startedAt: number, maxBytes: number, declaredBytes: number | null) {
    this.#budget = budget;
    this.startedAt = startedAt;
    this.maxBytes = maxBytes;
    this.declaredBytes = declaredBytes;
  }

  /** Without what its chunks take. */
  get bytes(): number {
    return this.#bytes;
  }

  get held(): number {
    return this.#bytes + this.#chunks * CHUNK_BYTES;
  }

  received(bytes: number): void {
    // Nothing holds a chunk that arrives after the body was given up.
    if (this.#isReleased) return;
    this.#bytes += bytes;
    this.#chunks += 1;
    this.#budget.hold(bytes + CHUNK_BYTES);
  }

  onCut(cut: () => void): void {
    this.#onCut = cut;
    // It may have been cut before the adapter registered this.
    if (this.#isCut) cut();
  }

  /** The body is complete, or was given up. It can no longer be cut. Its chunks are joined, so they take no more than their bytes. */
  finish(): void {
    this.#budget.ended(this, this.#isReleased ? 0 : this.#chunks * CHUNK_BYTES);
    this.#chunks = 0;
  }

  /** Its bytes are no longer held. */
  release(): void {
    this.#budget.ended(this, this.#isReleased ? 0 : this.held);
    this.#isReleased = true;
  }

  cut(): void {
    // At once, not when the read has ended: chunks that arrive until then would cut other bodies too.
    this.release();
    this.#isCut = true;
    this.#onCut?.();
  }
}

/** Limits the reading of bodies: a byte budget for all of them, a deadline and a minimum rate for each. */
export class BodyBudget {
  readonly #clock: Clock;
  readonly #unfinished = new Set<BodyRead>();
  #held = 0;
  #waiting = 0;
  #sweep: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(maxBytes: number, declaredBytes: number | null): BodyRead {
    const read = new BodyRead(this, this.#clock.monotonic(), maxBytes, declaredBytes);
    this.#unfinished.add(read);
    this.#sweep ??= this.#clock.setTimeout(() => this.#cutSlow(), SWEEP_MS);
    return read;
  }

  hold(bytes: number): void {
    this.#held += bytes;
    if (this.#held > BUDGET_BYTES) this.#makeRoom();
  }

  /** It can no longer be cut, and so many bytes of it are no longer held. */
  ended(read: BodyRead, bytes: number): void {
    this.#unfinished.delete(read);
    this.#held -= bytes;
  }

  /** A complete body waits for a fresher keyring. Returns false, and changes nothing, if such bodies already hold their maximum. */
  wait({ bytes }: BodyRead): boolean {
    if (this.#waiting + bytes > WAITING_BYTES) return false;
    this.#waiting += bytes;
    return true;
  }

  /** It no longer waits. */
  waited({ bytes }: BodyRead): void {
    this.#waiting -= bytes;
  }

  #cutSlow(): void {
    const now = this.#clock.monotonic();
    for (const read of this.#unfinished) {
      const age = now - read.startedAt;
      const tooSlow = age > RATE_AFTER_MS && read.bytes < age * LEAST_BYTES_PER_MS;
      if (age > DEADLINE_MS || tooSlow) read.cut();
    }
    this.#sweep = this.#unfinished.size > 0 ? this.#clock.setTimeout(() => this.#cutSlow(), SWEEP_MS) : null;
  }

  /**
   * Cuts the body with the largest product of bytes and age: an attacker who holds many bodies open harms only itself. By the rate
   * alone, a small body that is still arriving would make room for large ones that came quickly and then stalled.
   */
  #makeRoom(): void {
    const now = this.#clock.monotonic();
    let heaviest: BodyRead | null = null;
    let heaviestWeight = 0;
    for (const read of this.#unfinished) {
      const weight = read.held * Math.max(1, now - read.startedAt);
      if (weight > heaviestWeight) {
        heaviest = read;
        heaviestWeight = weight;
      }
    }
    heaviest?.cut();
  }
}

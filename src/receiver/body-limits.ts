/**
 * From a request's headers to its verified bytes, for receivers and for `…Verify`: header checks, limits on bodies, then the signature. The
 * cheapest check comes first. An unverified request takes no slot of a verified one.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock, Timer } from "../internal/clock.ts";
import { Head, type HeaderSource, type RequestHead, readHeader } from "../sources/headers.ts";
import { keyringContext, LookUpsCrowded } from "../sources/keyring-provider.ts";
import type { KeyringContext, SourceKey, SourceKeys } from "../sources/keys.ts";
import type { ConnectedSource, Match, Refusal, SourceAnswer } from "../sources/source.ts";
import type { Answer, BodyReading, IncomingWebhook } from "./incoming.ts";
import * as answers from "./incoming.ts";

/** A request of any method: the caller checks that. With `method`, a GET that a source can answer is answered. */
export type UnverifiedWebhook = Omit<IncomingWebhook, "method"> & Partial<Pick<IncomingWebhook, "method">>;

/** A request whose signature matches. Its bytes count against the body budget until `reading` is released. */
export interface VerifiedRequest {
  readonly ok: true;
  readonly bytes: Uint8Array;
  readonly head: RequestHead;
  /** What the source found out about the key that signed the body. */
  readonly match: Match;
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

/** A complete body that no key has matched yet. */
interface UnverifiedBody {
  readonly head: RequestHead;
  readonly bytes: Uint8Array;
  readonly reading: BodyRead;
}

/** The keyring that a request met. */
interface KeyringOfRequest {
  readonly context: KeyringContext;
  readonly keyring: SourceKeys;
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
    const head = new Head(incoming);
    const unproven = source.refuse(head, null);
    if (unproven !== null) return refused(unproven.code, answers.UNAUTHORIZED_UNREAD);
    const context = keyringContext(incoming);
    const read = source.keyrings.read(context);
    const keyring = read instanceof Promise ? await read : read;
    const unusable = source.refuse(head, keyring);
    if (unusable !== null) return refused(unusable.code, answers.UNAUTHORIZED_UNREAD);
    const reading = this.#budget.begin(maxBodyBytes, declared);
    let isVerified = false;
    try {
      const body = await incoming.readBody(reading);
      reading.finish();
      progress.isRead = true;
      if (!body.ok) return { ...body, answer: BODY_ANSWERS[body.reason] };
      const { bytes } = body;
      const match = await this.#matched({ head, bytes, reading }, { context, keyring, cameAt });
      if (match === null) return refused("signature_mismatch", answers.UNAUTHORIZED);
      if (!match.ok) return refused(match.code, answers.UNAUTHORIZED);
      isVerified = true;
      return { ok: true, head, bytes, match, reading };
    } finally {
      if (!isVerified) reading.release();
    }
  }

  /** Answers a GET, which no signature covers. Null unless it proves who asks. */
  async greet(incoming: UnverifiedWebhook): Promise<SourceAnswer | null> {
    const { keyrings } = this.#source;
    const head = new Head(incoming);
    const context = keyringContext(incoming);
    const cameAt = this.#clock.monotonic();
    for (let keyring = await keyrings.read(context); ; ) {
      const answer = this.#source.challenge?.(head, keyring.keys) ?? null;
      const fresher = answer === null ? await keyrings.reread(context, keyring, cameAt) : null;
      if (fresher === null) return answer;
      keyring = fresher;
    }
  }

  /** Tries the keys in turn. Between those of a large body other requests are served. */
  #match(head: RequestHead, bytes: Uint8Array, { keys }: SourceKeys): Matched | Promise<Matched> {
    const now = this.#clock.now();
    const atOnce = Math.max(1, Math.floor(HASHED_AT_ONCE / bytes.length));
    if (keys.length <= atOnce) return this.#source.match(head, bytes, keys, now);
    return this.#matchInParts(head, bytes, partsOf(keys, atOnce), now);
  }

  async #matchInParts(
    head: RequestHead,
    bytes: Uint8Array,
    parts: readonly (readonly SourceKey[])[],
    now: number,
  ): Promise<Matched> {
    let last: Matched = null;
    for (const part of parts) {
      last = this.#source.match(head, bytes, part, now);
      // A definition may refuse a body in its own words because these keys did not sign it.
      if (last?.ok === true) return last;
      await setImmediate();
    }
    return last;
  }

  /** Tries fresher keyrings too, until one that was read after the request came: only that one can say no. */
  async #matched(
    { head, bytes, reading }: UnverifiedBody,
    { context, keyring, cameAt }: KeyringOfRequest,
  ): Promise<Matched> {
    for (let keys = keyring; ; ) {
      const found = this.#match(head, bytes, keys);
      const match = found instanceof Promise ? await found : found;
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

/** Bytes times keys that are hashed without serving other requests: some milliseconds. */
const HASHED_AT_ONCE = 2 * 1024 * 1024;

type Matched = Match | Refusal | null;

function partsOf(keys: readonly SourceKey[], size: number): readonly (readonly SourceKey[])[] {
  const count = Math.ceil(keys.length / size);
  return Array.from({ length: count }, (_, part) => keys.slice(part * size, (part + 1) * size));
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

/** Unfinished and unprocessed bodies that hold more than this together take turns. Bytes. */
const ROOM_BYTES = 64 * 1024 * 1024;
/** What they hold at most, so that one body of any source can always be completed. */
const MOST_BYTES = ROOM_BYTES + 32 * 1024 * 1024;
/** Once complete bodies that wait for a fresher keyring hold this much, further ones get 503: they cannot be cut to make room. */
const WAITING_BYTES = ROOM_BYTES / 4;
/** What a chunk takes besides its bytes, measured on Node. A body sent byte by byte takes hundreds of times its size. */
const CHUNK_BYTES = 1024;
/** A body that holds no more than this reads on without a turn: it is usually complete with its next chunk. That is what one chunk holds at most. */
const SMALL_BYTES = 64 * 1024;
/**
 * A body has stalled when it has not grown by a sixteenth of what it holds for so long. The slowest body that keeps the deadline grows so in
 * 625 ms, and a body of single bytes soon does not.
 */
const STALLED_MS = 750;
const STEADY_SHARE = 1 / 16;
/** The same once bodies hold as much as they ever may. */
const STALLED_AT_MOST_MS = 250;
/** A body that waited for its turn has more to bring at once: so much shows that it goes on. */
const AFTER_PAUSE_BYTES = 16 * 1024;
const ASK_EVERY_MS = 500;
/** A body that is not complete by then is cut. */
const DEADLINE_MS = 10_000;
/** After the first seconds a body must have arrived at this rate on average. */
const RATE_AFTER_MS = 3_000;
const LEAST_BYTES_PER_MS = 1;
const SWEEP_MS = 100;

/** One body from its first byte to the end of its processing. A class, because one is made for each delivery. */
class BodyRead implements BodyReading {
  readonly maxBytes: number;
  readonly declaredBytes: number | null;
  readonly startedAt: number;
  readonly #budget: BodyBudget;
  #bytes = 0;
  #chunks = 0;
  /** When it had last grown enough, and the bytes beyond which it has again. */
  #grewAt: number;
  #growsBeyond = 0;
  #isFinished = false;
  #isReleased = false;
  #isCut = false;
  #onCut: (() => void) | null = null;
  #turn: { readonly comes: Promise<void>; readonly begin: () => void } | null = null;

  constructor(budget: BodyBudget, startedAt: number, maxBytes: number, declaredBytes: number | null) {
    this.#budget = budget;
    this.startedAt = startedAt;
    this.#grewAt = budget.turnedMs;
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

  /** It was told to wait for its turn. */
  get isPaused(): boolean {
    return this.#turn !== null;
  }

  /**
   * How long it has not grown, milliseconds, and less for one that holds little, because cutting it makes little room. Beyond that the size does
   * not count: a large body that keeps arriving would make room for small ones that stall.
   */
  get stalledMs(): number {
    // It is not to blame for a pause.
    return this.isPaused
      ? 0
      : ((this.#budget.turnedMs - this.#grewAt) * Math.min(this.held, SMALL_BYTES)) / SMALL_BYTES;
  }

  received(bytes: number): Promise<void> | undefined {
    // Nothing holds a chunk that arrives after the body was complete, or given up.
    if (this.#isFinished || this.#isReleased) return undefined;
    this.#bytes += bytes;
    this.#chunks += 1;
    const hasGrown = this.#bytes > this.#growsBeyond;
    if (hasGrown) this.#grew(this.held * STEADY_SHARE);
    return this.#budget.hold(this, bytes + CHUNK_BYTES, hasGrown);
  }

  /** @param next - bytes by which it must grow now */
  #grew(next: number): void {
    this.#growsBeyond = this.#bytes + next;
    this.#grewAt = this.#budget.turnedMs;
  }

  /** Resolves when it may read on. */
  pause(): Promise<void> {
    if (this.#turn === null) {
      let begin = () => {};
      const comes = new Promise<void>((resolve) => {
        begin = resolve;
      });
      this.#turn = { comes, begin };
    }
    return this.#turn.comes;
  }

  resume(): void {
    this.#turn?.begin();
    this.#turn = null;
    this.#grew(Math.min(this.held * STEADY_SHARE, AFTER_PAUSE_BYTES));
  }

  onCut(cut: () => void): void {
    this.#onCut = cut;
    // It may have been cut before the adapter registered this.
    if (this.#isCut) cut();
  }

  /** The body is complete, or was given up. It can no longer be cut. Its chunks are joined, so they take no more than their bytes. */
  finish(): void {
    this.#isFinished = true;
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
    this.resume();
  }
}

/** Limits the reading of bodies: the room for all of them, a deadline and a minimum rate for each. */
export class BodyBudget {
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #unfinished = new Set<BodyRead>();
  /** Those of them that wait for their turn. */
  readonly #paused = new Set<BodyRead>();
  /**
   * Milliseconds that the event loop turned. What keeps it busy for long, such as a large body, must not make others look stalled whose next
   * bytes are there already.
   */
  #turnedMs = 0;
  #sweptAt = 0;
  /** When those that wait for their turn were last asked, in `#turnedMs`. */
  #askedAt = 0;
  #held = 0;
  #waiting = 0;
  #sweep: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get turnedMs(): number {
    return this.#turnedMs;
  }

  begin(maxBytes: number, declaredBytes: number | null): BodyRead {
    const now = this.#clock.monotonic();
    const read = new BodyRead(this, now, maxBytes, declaredBytes);
    this.#unfinished.add(read);
    if (this.#sweep === null) this.#sweepAfter(now);
    return read;
  }

  /** Returns a promise if `read` must wait for its turn. */
  hold(read: BodyRead, bytes: number, hasGrown: boolean): Promise<void> | undefined {
    this.#held += bytes;
    return this.#held > ROOM_BYTES && this.#unfinished.has(read) ? this.#makeRoom(read, hasGrown) : undefined;
  }

  /** It can no longer be cut, and so many bytes of it are no longer held. */
  ended(read: BodyRead, bytes: number): void {
    this.#unfinished.delete(read);
    this.#paused.delete(read);
    this.#held -= bytes;
    for (const paused of this.#paused) if (this.#hasTurn(paused)) this.#resume(paused);
  }

  /** A complete body waits for a fresher keyring. Returns false, and changes nothing, if such bodies already hold their maximum. */
  wait({ bytes }: BodyRead): boolean {
    if (this.#waiting >= WAITING_BYTES) return false;
    this.#waiting += bytes;
    return true;
  }

  /** It no longer waits. */
  waited({ bytes }: BodyRead): void {
    this.#waiting -= bytes;
  }

  #sweepAfter(now: number): void {
    this.#sweptAt = now;
    this.#sweep = this.#clock.setTimeout(() => this.#sweepNow(), SWEEP_MS);
  }

  #sweepNow(): void {
    const now = this.#clock.monotonic();
    this.#turnedMs += Math.min(now - this.#sweptAt, 2 * SWEEP_MS);
    for (const read of this.#unfinished) {
      const age = now - read.startedAt;
      const tooSlow = age > RATE_AFTER_MS && read.bytes < age * LEAST_BYTES_PER_MS;
      if (age > DEADLINE_MS || tooSlow) read.cut();
    }
    if (this.#paused.size > 0 && this.#turnedMs - this.#askedAt >= ASK_EVERY_MS) this.#askPaused();
    this.#sweep = null;
    if (this.#unfinished.size > 0) this.#sweepAfter(now);
  }

  /**
   * Cuts what has stalled. If that makes no room, bodies take turns: the oldest reads on until it is complete. So one that keeps arriving is
   * completed, however large it is.
   */
  #makeRoom(read: BodyRead, hasGrown: boolean): Promise<void> | undefined {
    this.#cutStalled(ROOM_BYTES, STALLED_MS);
    this.#cutStalled(MOST_BYTES, STALLED_AT_MOST_MS);
    if (!this.#unfinished.has(read) || this.#hasTurn(read)) return undefined;
    const isFull = this.#held > MOST_BYTES;
    const isSmall = read.held <= SMALL_BYTES;
    if (isFull && (isSmall || read.isPaused)) {
      // A pause would not bound what many small bodies hold, nor a reader that goes on although it was told to wait.
      this.#cutHeaviest();
      return undefined;
    }
    // Without growth a pause would hide that it stalls.
    if (!isFull && (isSmall || !hasGrown)) return undefined;
    this.#paused.add(read);
    return read.pause();
  }

  #hasTurn(read: BodyRead): boolean {
    if (this.#held <= ROOM_BYTES) return true;
    const [oldest] = this.#unfinished;
    return read === oldest && this.#held <= MOST_BYTES;
  }

  /** Those that wait for their turn may bring one chunk each: only so it shows which have stalled meanwhile. */
  #askPaused(): void {
    this.#askedAt = this.#turnedMs;
    this.#cutStalled(ROOM_BYTES, STALLED_MS);
    let mayCome = MOST_BYTES - this.#held;
    for (const read of this.#paused) {
      mayCome -= SMALL_BYTES;
      if (mayCome < 0) return;
      this.#resume(read);
    }
  }

  /** Of bytes and age. */
  #cutHeaviest(): void {
    const now = this.#clock.monotonic();
    const weight = ({ held, startedAt }: BodyRead) => held * Math.max(1, now - startedAt);
    let heaviest: BodyRead | null = null;
    for (const read of this.#unfinished) if (heaviest === null || weight(read) > weight(heaviest)) heaviest = read;
    heaviest?.cut();
  }

  #resume(read: BodyRead): void {
    this.#paused.delete(read);
    read.resume();
  }

  /** Cuts bodies that have stalled for so long until no more than `bytes` are held, or none is left. */
  #cutStalled(bytes: number, stalledMs: number): void {
    while (this.#held > bytes) {
      const read = this.#mostStalled(stalledMs);
      if (read === null) return;
      read.cut();
    }
  }

  /** The body that has stalled for longest, if any has for so long. */
  #mostStalled(stalledMs: number): BodyRead | null {
    let longest: BodyRead | null = null;
    let longestMs = stalledMs;
    for (const read of this.#unfinished) {
      const ms = read.stalledMs;
      if (ms < longestMs || (longest !== null && ms === longestMs)) continue;
      longest = read;
      longestMs = ms;
    }
    return longest;
  }
}

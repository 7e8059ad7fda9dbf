/** Keeps the reading of bodies within memory and time: a byte budget for all of them, a deadline and a minimum rate for each. */
import type { Clock, Timer } from "../internal/clock.ts";
import type { BodyReading } from "./incoming.ts";

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
export interface Reading extends BodyReading {
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

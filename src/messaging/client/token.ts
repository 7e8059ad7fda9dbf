/** The client's token: one at a time, asked for once whatever the parallelism, renewed before it ends (CLI-1, CLI-2, CLI-4). */
import { Buffer } from "node:buffer";
import type { Clock, Timer } from "../../internal/clock.ts";
import type { Logger } from "../../internal/logger.ts";
import { USER_AGENT } from "../../internal/package.ts";
import { type ApiAnswer, isTransientOAuth, oauthRefusal, recordOf } from "./answers.ts";
import { attempt, type CallSettings, isTransient, type Plan, tokenError } from "./attempts.ts";
import { type CallFacts, OAuthError, type ServiceError } from "./errors.ts";
import type { ResolvedClientOptions } from "./options.ts";

/** A token, or how to tell a caller that there is none: each call has an error of its own, with the facts of the call. */
type TokenOutcome =
  | { readonly kind: "token"; readonly held: HeldToken }
  | {
      readonly kind: "failed";
      readonly isTransient: boolean;
      readonly retryAfterMs: number | null;
      error(facts: CallFacts): ServiceError;
    };

/** The token request under way. */
interface Asking {
  readonly outcome: Promise<TokenOutcome>;
  /**
   * The request's own: a token requested ahead keeps no timer alive until a call waits for it. The connection of a request
   * under way does, for `timeoutMs` at most.
   */
  readonly clock: AttendedClock;
}

/** A token as it was issued once. Compared as an object, because the service may issue the same text again. */
export interface HeldToken {
  readonly value: string;
  /** Monotonic milliseconds. */
  readonly renewAt: number;
  readonly endsAt: number;
}

const OPERATION = "token";
const DEFAULT_LIFE_SECONDS = 3600;
const RENEW_AHEAD_MS = 5 * 60_000;
/** A token that ends while its request is on the way would cost a 401. */
const ENDS_EARLY_MS = 5_000;
const RENEW_AGAIN_MS = 10_000;
const UNUSABLE = " The answer holds no usable token: access_token must be a text that a header can carry.";

export class TokenSource {
  readonly #request: TokenRequest;
  readonly #ground: CallSettings;
  readonly #logger: Logger;
  #held: HeldToken | null = null;
  #pending: Asking | null = null;
  /** Monotonic milliseconds; never again with this token after a refusal that no repetition changes. */
  #renewNotBefore = Number.NEGATIVE_INFINITY;

  constructor(request: TokenRequest, ground: CallSettings, logger: Logger) {
    this.#request = request;
    this.#ground = ground;
    this.#logger = logger;
  }

  /** The token in hand, or null. Near its end a new one is asked for, which nobody waits for. */
  live(): HeldToken | null {
    const held = this.#held;
    if (held === null) return null;
    const now = this.#ground.clock.monotonic();
    if (now >= held.endsAt) return null;
    if (now >= held.renewAt && now >= this.#renewNotBefore && this.#pending === null) this.#renewAhead(now);
    return held;
  }

  /** The outcome of the one request under way, or of a new one. Never rejects. A failure is not kept: the next call asks again. */
  fresh(): Promise<TokenOutcome> {
    const { outcome, clock } = this.#asking();
    clock.attend();
    return outcome;
  }

  /** The service refused this token; one that came since stays. */
  invalidate(refused: HeldToken): void {
    if (this.#held === refused) this.#held = null;
  }

  async #renewAhead(now: number): Promise<void> {
    this.#renewNotBefore = now + RENEW_AGAIN_MS;
    const outcome = await this.#asking().outcome;
    if (outcome.kind === "token") return;
    const { isTransient, retryAfterMs } = outcome;
    const wanted = isTransient ? this.#ground.clock.monotonic() + (retryAfterMs ?? 0) : Number.POSITIVE_INFINITY;
    this.#renewNotBefore = Math.max(this.#renewNotBefore, wanted);
    const { code } = outcome.error({ operation: OPERATION, attempts: 0, idempotencyKey: null });
    this.#logger.warn(
      { operation: OPERATION, code },
      "The token could not be renewed ahead; the one in hand still lives.",
    );
  }

  #asking(): Asking {
    if (this.#pending !== null) return this.#pending;
    const clock = new AttendedClock(this.#ground.clock);
    const outcome = this.#ask({ ...this.#ground, clock }).finally(() => {
      this.#pending = null;
    });
    this.#pending = { outcome, clock };
    return this.#pending;
  }

  async #ask(ground: CallSettings): Promise<TokenOutcome> {
    const { clock, timeoutMs, secrets } = ground;
    // Before the answer came, so that the token ends here no later than there.
    let askedAt = clock.monotonic();
    const onAttempt = () => {
      askedAt = clock.monotonic();
    };
    const ending = await attempt(planOf(this.#request, clock, onAttempt), ground);
    if (ending.kind !== "answer") {
      const retryAfterMs = ending.kind === "refused" ? ending.refusal.retryAfterMs : null;
      const asked = { timeoutMs, sent: () => secrets };
      const error = (facts: CallFacts) => tokenError(ending, facts, asked);
      return { kind: "failed", isTransient: isTransient(ending), retryAfterMs, error };
    }
    const held = heldToken(ending, askedAt);
    if (held === null) {
      const refusal = oauthRefusal(ending, clock.now());
      const error = (facts: CallFacts) => new OAuthError(refusal, facts, `.${UNUSABLE}`);
      return { kind: "failed", isTransient: false, retryAfterMs: null, error };
    }
    this.#renewNotBefore = Number.NEGATIVE_INFINITY;
    this.#held = held;
    return { kind: "token", held };
  }
}

function planOf({ url, headers, body }: TokenRequest, clock: Clock, onAttempt: () => void): Plan {
  return {
    operation: OPERATION,
    method: "POST",
    route: "/api/auth/token",
    url,
    body,
    idempotencyKey: null,
    isRepeatable: true,
    // Callers share it, so none of them can end it.
    signal: undefined,
    headers() {
      onAttempt();
      return headers;
    },
    refusal: (answer) => oauthRefusal(answer, clock.now()),
    isTransient: isTransientOAuth,
  };
}

/** Never decoded: what a token holds is the service's business. */
function heldToken(answer: ApiAnswer, askedAt: number): HeldToken | null {
  const { access_token, expires_in } = recordOf(answer.json);
  if (typeof access_token !== "string" || !/^[\x21-\x7e]+$/.test(access_token)) return null;
  const lifeMs = secondsOf(expires_in) * 1000;
  return {
    value: access_token,
    renewAt: askedAt + lifeMs - Math.min(RENEW_AHEAD_MS, lifeMs / 10),
    endsAt: askedAt + lifeMs - Math.min(ENDS_EARLY_MS, lifeMs / 20),
  };
}

/** Some servers write the number as a text. */
function secondsOf(expiresIn: unknown): number {
  const seconds = typeof expiresIn === "string" && /^\d+$/.test(expiresIn) ? Number(expiresIn) : expiresIn;
  return typeof seconds === "number" && seconds >= 0 ? seconds : DEFAULT_LIFE_SECONDS;
}

// The token request, written once: who the client is, in the form body (recommended) or by HTTP Basic (CLI-1).

interface TokenRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** All spellings of the secret in it, which no error may show. */
  readonly secrets: readonly string[];
}

type Credentials = Pick<ResolvedClientOptions, "baseUrl" | "clientId" | "clientSecret" | "authMethod">;

export function tokenRequest({ baseUrl, clientId, clientSecret, authMethod }: Credentials): TokenRequest {
  const url = `${baseUrl}/api/auth/token`;
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
    "user-agent": USER_AGENT,
  };
  const grant = { grant_type: "client_credentials" };
  // Both parts are form-encoded first (RFC 6749, 2.3.1), or a colon in the id would end it.
  const basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString("base64");
  const secrets = [basic, formEncoded(clientSecret), clientSecret];
  if (authMethod === "basic") {
    const body = new URLSearchParams(grant).toString();
    return { url, headers: { ...headers, authorization: `Basic ${basic}` }, body, secrets };
  }
  const body = new URLSearchParams({ ...grant, client_id: clientId, client_secret: clientSecret }).toString();
  return { url, headers, body, secrets };
}

function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

// A clock for work that nobody waits for yet: its timers keep the process only from the moment that somebody does.

class AttendedClock implements Clock {
  readonly #clock: Clock;
  /** Those that are to keep the process once somebody waits. */
  readonly #timers = new Set<Timer>();
  #isAttended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, ms);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
      keepAlive: () => {
        if (this.#isAttended) timer.keepAlive();
        else this.#timers.add(timer);
      },
    };
  }

  /** Somebody waits for the work from now on. */
  attend(): void {
    this.#isAttended = true;
    for (const timer of this.#timers) timer.keepAlive();
    this.#timers.clear();
  }
}

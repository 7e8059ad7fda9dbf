/** A call of a core route, from its arguments to its data: checked, authorized, repeated as the rules say, read. */
import { setMaxListeners } from "node:events";
import { SampledLog } from "../../internal/logger.ts";
import { isRecord } from "../../internal/options.ts";
import { USER_AGENT } from "../../internal/package.ts";
import { type ApiAnswer, coreRefusal, meaningOf, textsIn } from "./answers.ts";
import { attempt, type CallSettings, coreError, type Plan } from "./attempts.ts";
import { type Body, issuesOf, type Operation, RESPONSES } from "./checks.ts";
import {
  AbortedError,
  type CallFacts,
  InvalidArgumentError,
  ResponseValidationError,
  UnauthorizedError,
} from "./errors.ts";
import type { CallOptions, RequestMethod, ResolvedClientOptions } from "./options.ts";
import type { HeldToken, TokenSource } from "./token.ts";

export interface CoreCall<T> {
  /** As in `client.messages.send`. */
  readonly operation: string;
  /** Whose success the answer is. */
  /** Null: any JSON, or nothing; `read` gets it as the field `json`. */
  readonly answers: Operation | null;
  readonly method: RequestMethod;
  readonly route: string;
  /** The route with its parameters, encoded. */
  readonly path: string;
  readonly body: string | undefined;
  readonly idempotencyKey: string | null;
  readonly isRepeatable: boolean;
  readonly options: CallOptions | undefined;
  /** Why the call is not made; empty when it is. */
  readonly issues: readonly string[];
  readonly read: (body: Body, facts: CallFacts) => T;
}

export class CoreCalls {
  readonly #options: ResolvedClientOptions;
  readonly #ground: CallSettings;
  readonly #tokens: TokenSource;
  readonly #log: SampledLog;

  constructor(options: ResolvedClientOptions, ground: CallSettings, tokens: TokenSource) {
    this.#options = options;
    this.#ground = ground;
    this.#tokens = tokens;
    this.#log = new SampledLog(options.logger, options.clock);
  }

  /**
   * Makes the call that `make` describes; what is made of the arguments is made before this returns.
   *
   * @throws ServiceError
   * @throws SetupError in `next build`, without credentials
   */
  async run<T>(operation: string, make: () => CoreCall<T>): Promise<WithResponse<T>> {
    if (this.#options.missing !== null) throw this.#options.missing;
    const { call, plan } = this.#begun(operation, make);
    const { idempotencyKey } = call;
    const ground = this.#groundOf(call.options);
    const ending = await attempt(plan, ground);
    const { attempts } = ending;
    const facts = { operation: plan.operation, attempts, idempotencyKey };
    if (ending.kind !== "answer") {
      const sent = () => [...ground.secrets, ...textsSent(plan, call.options)];
      throw coreError(ending, facts, { timeoutMs: ground.timeoutMs, sent });
    }
    const body = call.answers === null ? anyJson(ending, facts) : this.#checked(ending, call.answers, facts);
    return { data: call.read(body, facts), response: ending.response, attempts };
  }

  /** The client's, with what the call wants otherwise. */
  #groundOf(options: CallOptions | undefined): CallSettings {
    const ground = this.#ground;
    if (options?.timeoutMs === undefined && options?.maxRetries === undefined) return ground;
    const { timeoutMs = ground.timeoutMs, maxRetries = ground.rules.maxRetries } = options;
    return { ...ground, timeoutMs, rules: { ...ground.rules, maxRetries } };
  }

  /** Arguments may have getters, or be proxies: whatever they throw when they are read. */
  #begun<T>(operation: string, make: () => CoreCall<T>): { call: CoreCall<T>; plan: Plan } {
    let made: { call: CoreCall<T>; plan: Plan };
    try {
      const call = make();
      made = { call, plan: this.#planOf(call) };
    } catch {
      throw new InvalidArgumentError(operation, ["arguments: cannot be read"]);
    }
    const { issues, idempotencyKey } = made.call;
    if (issues.length > 0) throw new InvalidArgumentError(operation, issues, idempotencyKey);
    return made;
  }

  #planOf<T>(call: CoreCall<T>): Plan {
    const { clock, baseUrl } = this.#options;
    const { operation, method, route, path, body, idempotencyKey, isRepeatable } = call;
    const signal = call.options?.signal;
    // An application may end thousands of calls by one signal; each takes its listener away at its end, so none leaks.
    if (signal instanceof EventTarget) setMaxListeners(0, signal);
    const fixed: Record<string, string> = { accept: "application/json", "user-agent": USER_AGENT };
    // Before the client's own, so that these win whatever was checked.
    for (const [name, value] of Object.entries(call.options?.headers ?? {})) fixed[name.toLowerCase()] = value;
    if (body !== undefined) fixed["content-type"] = "application/json";
    if (idempotencyKey !== null) fixed["idempotency-key"] = idempotencyKey;
    let token: HeldToken | null = null;
    return {
      operation,
      method,
      route,
      url: `${baseUrl}${path}`,
      body,
      idempotencyKey,
      isRepeatable,
      signal,
      headers: (attempts) => {
        const authorized = (held: HeldToken) => {
          token = held;
          fixed.authorization = `Bearer ${held.value}`;
          return fixed;
        };
        const live = this.#tokens.live();
        if (live !== null) return authorized(live);
        return this.#awaitedToken({ operation, attempts, idempotencyKey }, signal).then(authorized);
      },
      refusal: (answer) => coreRefusal(answer, clock.now()),
      isTransient: (refusal) => meaningOf(refusal).isTransient,
      renews: (refusal) => {
        if (meaningOf(refusal).error !== UnauthorizedError) return false;
        if (token !== null) this.#tokens.invalidate(token);
        return true;
      },
    };
  }

  /** The token request is shared: a caller that aborts leaves it, and does not end it. */
  async #awaitedToken(facts: CallFacts, signal: AbortSignal | undefined): Promise<HeldToken> {
    const outcome = await (signal === undefined ? this.#tokens.fresh() : unlessAborted(this.#tokens.fresh(), signal));
    if (outcome === "aborted") throw new AbortedError(facts, signal?.reason);
    if (outcome.kind === "failed") throw outcome.error(facts);
    return outcome.held;
  }

  /** The service did what was asked, so a body that is not as specified is reported, and the call is not repeated. */
  #checked({ json }: ApiAnswer, operation: Operation, facts: CallFacts): Body {
    if (!isRecord(json)) {
      const found = json === undefined ? "no JSON" : "JSON of another kind";
      throw new ResponseValidationError([`body: expected object, found ${found}`], facts, json);
    }
    const mode = this.#options.validateResponses;
    const issues = mode === "off" ? [] : issuesOf(RESPONSES[operation], json);
    if (issues.length === 0) return json;
    if (mode === "throw") throw new ResponseValidationError(issues, facts, json);
    this.#log.warn({ operation: facts.operation, issues }, "An answer of the service is not as specified.");
    return json;
  }
}

/** What a service could repeat of a request; its token is among the headers. */
function textsSent({ url, body }: Plan, options: CallOptions | undefined): string[] {
  const { pathname, search } = new URL(url);
  const inPath = [...pathname.split("/"), ...new URLSearchParams(search).values()].map(decoded);
  // The parts of the API's own paths are words that a reason may have.
  const given = inPath.filter((part) => !/^[a-z]*$/.test(part));
  return [...given, ...Object.values(options?.headers ?? {}), ...(body === undefined ? [] : textsIn(JSON.parse(body)))];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** An answer whose shape nobody knows, as a record that holds it; one without a body is undefined. */
function anyJson({ json, isEmpty }: ApiAnswer, facts: CallFacts): Body {
  if (json !== undefined || isEmpty) return { json };
  throw new ResponseValidationError(["body: expected JSON, found none"], facts);
}

function unlessAborted<T>(outcome: Promise<T>, signal: AbortSignal): Promise<T | "aborted"> {
  if (signal.aborted) return Promise.resolve("aborted");
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve("aborted");
    signal.addEventListener("abort", onAbort, { once: true });
    outcome.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

// What every method of the client returns: a promise of the answer's data, with a way to the answer itself.

/** The data with the answer it came in. */
export interface WithResponse<T> {
  readonly data: T;
  /** The last answer; its body was read already. */
  readonly response: Response;
  /** Requests that were made for the call, a retry after a 401 included. */
  readonly attempts: number;
}

/** A call under way. It was made whether or not it is awaited. */
export interface Call<T> extends Promise<T> {
  /** Resolves with the answer's status and headers next to the data. */
  withResponse(): Promise<WithResponse<T>>;
}

/** Makes a call of its outcome. A failure that nobody awaits is an unhandled rejection, as that of any promise is. */
export function callOf<T>(outcome: Promise<WithResponse<T>>): Call<T> {
  const data = outcome.then((answer) => answer.data);
  const withResponse = () => {
    // The promise returned here reports its failure. It must be a new one: `outcome` already counts as handled.
    data.catch(() => {});
    return outcome.then((answer) => answer);
  };
  return Object.assign(data, { withResponse });
}

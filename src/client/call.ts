/** What every method of the client returns: a promise of the answer's data that can also tell of the answer itself. */

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
  /** Resolves with the answer's status and headers beside the data. */
  withResponse(): Promise<WithResponse<T>>;
}

/** Makes a call of its outcome. A failure that nobody awaits is an unhandled rejection, as that of any promise is. */
export function callOf<T>(outcome: Promise<WithResponse<T>>): Call<T> {
  const data = outcome.then((answer) => answer.data);
  const withResponse = () => {
    // Its failure is told by the promise given here, which must be one of its own: `outcome` counts as looked at already.
    data.catch(() => {});
    return outcome.then((answer) => answer);
  };
  return Object.assign(data, { withResponse });
}

export interface CallOptions {
  /** Ends the call with an `AbortedError`. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long one attempt of this call may take, answer included. Milliseconds, 1 to 300,000. Default: the client's. A token request
   * keeps the client's, because other calls wait for it too; `signal` ends the whole call.
   */
  readonly timeoutMs?: number | undefined;
  /** Retries of this call. 0 to 10. Default: the client's. */
  readonly maxRetries?: number | undefined;
  /**
   * More headers, such as `traceparent`; values are visible ASCII with spaces. `user-agent` can be replaced. Headers that the client
   * or HTTP sets are refused: `authorization`, `idempotency-key`, `accept`, `content-type`, `host` and the like.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface SendOptions extends CallOptions {
  /** 1 to 255 visible ASCII characters. Default: a random UUID. Give the one of an error to go on with that send. */
  readonly idempotencyKey?: string | undefined;
}

/** Options of `client.request()`. */
export interface RequestOptions extends CallOptions {
  /** Sent as JSON. Not for GET. */
  readonly body?: unknown;
  /** 1 to 255 visible ASCII characters. Default: none. A POST or PATCH is retried only with one. */
  readonly idempotencyKey?: string | undefined;
}

/** What `client.request()` can do. */
export type RequestMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

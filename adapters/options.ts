/** What every adapter takes and does with it: a receiver, or the options of verification alone. */
import {
  type Answer,
  answers,
  createVerifier,
  type IncomingWebhook,
  type Receiver,
  refuseUnknownOptions,
  SetupError,
  type VerifiedWebhook,
  type VerifierOptions,
} from "../src/index.ts";
import { errorPlaceOf } from "../src/internal/foreign-error.ts";

// What every adapter takes: a receiver, and the options that name whose secrets a request is to be checked with.

/** What an adapter needs of a receiver. */
export type WebhookReceiver = Pick<Receiver, "handle" | "logger">;

/** Options of every adapter; `Request` is the framework's own. */
export interface WebhookOptions<Request> {
  /**
   * Whose secrets to use, for an async keyring. Nothing about the request is verified yet when it is called: take the
   * host or the path, never the body. Each secret of a tenant must name its `apiClientId`. Default: none.
   */
  readonly tenant?: (request: Request) => string | undefined;
  /** The name of the route the receiver is mounted on, for an async keyring. Default: none. */
  readonly route?: string;
}

/** What an adapter knows of one request. */
export type Conversion = Pick<IncomingWebhook, "method" | "headers" | "readBody">;

const WEBHOOK_OPTIONS = ["tenant", "route"];

/** What an adapter was mounted with, as JavaScript may have it. */
interface Mounted {
  readonly receiver: Partial<WebhookReceiver> | undefined;
  readonly options: unknown;
}

/**
 * Checks what the adapter `owner` was mounted with; `others` are options that are its own.
 *
 * @throws SetupError `invalid_option` for no receiver, or for any other option, naming the likely one
 */
export function checkWebhookOptions(
  owner: string,
  { receiver, options }: Mounted,
  others: readonly string[] = [],
): void {
  if (typeof receiver?.handle !== "function") {
    throw new SetupError("invalid_option", `${owner} takes the receiver that createReceiver() makes, not its options.`);
  }
  refuseUnknownOptions(owner, options, [...WEBHOOK_OPTIONS, ...others]);
}

/**
 * @throws TypeError for anything but a text or nothing: a promise, as of an `async` function, would be one tenant for everybody; and
 *   what `tenant` throws
 */
function tenantOf<Request>(
  tenant: ((request: Request) => string | undefined) | undefined,
  request: Request,
): string | undefined {
  const name: unknown = tenant?.(request);
  if (name === undefined || typeof name === "string") return name;
  throw new TypeError("The tenant is no text.");
}

/** Gives a request to the receiver. Neither throws nor rejects, whatever the application's `tenant` does. */
export function answerTo<Request>(
  receiver: WebhookReceiver,
  { method, headers, readBody }: Conversion,
  { request, options }: { readonly request: Request; readonly options: WebhookOptions<Request> },
): Promise<Answer> | Answer {
  try {
    const tenant = tenantOf(options.tenant, request);
    return receiver.handle({ method, headers, readBody, tenant, route: options.route });
  } catch (error) {
    const reason = error instanceof Error ? error.name : typeof error;
    const said = "The adapter's tenant option threw, or gave no text: the request was answered with 500.";
    const { at } = errorPlaceOf(error);
    receiver.logger.error({ reason, ...(at && { at }) }, said);
    return answers.unread(answers.MISCONFIGURED);
  }
}

// Verification alone, for applications that keep their own inbox: what is common to each framework's `…Verify`.

/** What the `…Verify` functions take; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /**
   * Whose secrets to use, when `secrets` is a function. Nothing about the request is verified yet when it is called. Each secret of a
   * tenant must name its `apiClientId`.
   */
  readonly tenant?: (request: Request) => string | undefined;
}

/** Typed, so that none is forgotten. */
const VERIFY_OPTIONS: Readonly<Record<keyof WebhookVerifyOptions<never>, true>> = {
  secrets: true,
  toleranceMs: true,
  timestampFormat: true,
  encoding: true,
  maxBodyBytes: true,
  logger: true,
  tenant: true,
};

/**
 * Makes the function behind a `…Verify`. It never rejects, whatever the application's `tenant` does.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createRequestVerifier<Request>(owner: string, options: WebhookVerifyOptions<Request>) {
  refuseUnknownOptions(owner, options, Object.keys(VERIFY_OPTIONS));
  const { tenant: nameOf, ...policy } = options;
  const verify = createVerifier(policy);
  return (incoming: Conversion, request: Request): Promise<VerifiedWebhook> =>
    verify({
      ...incoming,
      // Asked for once the headers are in order; the verifier answers and logs what it throws as any other mistake in the set-up.
      get tenant() {
        try {
          return tenantOf(nameOf, request);
        } catch (error) {
          throw tenantThrew(owner, error);
        }
      },
    });
}

/** Its own message may hold anything of the request. */
function tenantThrew(owner: string, error: unknown): SetupError {
  const kind = error instanceof Error ? error.name : typeof error;
  return new SetupError("invalid_option", `Option "tenant" of ${owner} threw, or gave no text (${kind}).`, {
    cause: error,
  });
}

/** What all adapters share: the receiver and its options, passing a request to it, and verification alone. */
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

/** The part of a receiver that an adapter uses. */
export type WebhookReceiver = Pick<Receiver, "handle" | "logger">;

/** Options of every adapter; `Request` is the framework's own. */
export interface WebhookOptions<Request> {
  /**
   * Names the tenant whose secrets to use, for an async keyring. Nothing in the request is verified yet: derive it from the
   * host or the path, never from the body. Each secret of a tenant must name its `apiClientId`. Default: none.
   */
  readonly tenant?: (request: Request) => string | undefined;
  /** The name of the route the receiver is mounted on, for an async keyring. Default: none. */
  readonly route?: string;
}

/** A request as an adapter passes it to the receiver. */
export type Conversion = Pick<IncomingWebhook, "method" | "headers" | "readBody">;

const WEBHOOK_OPTIONS = ["tenant", "route"];

/**
 * Checks what the adapter `owner` was mounted with; `others` are options of this adapter alone.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option, naming the likely one
 */
export function checkWebhookOptions(
  owner: string,
  receiver: Partial<WebhookReceiver> | undefined,
  options: unknown,
  others: readonly string[] = [],
): void {
  if (typeof receiver?.handle !== "function") {
    throw new SetupError("invalid_option", `${owner} takes the receiver that createReceiver() makes, not its options.`);
  }
  refuseUnknownOptions(owner, options, [...WEBHOOK_OPTIONS, ...others]);
}

/**
 * @throws TypeError for anything but a string or undefined: the promise of an `async` function would be one tenant for everyone. Also
 *   throws what `tenant` throws
 */
function tenantOf<Request>(
  tenant: ((request: Request) => string | undefined) | undefined,
  request: Request,
): string | undefined {
  const name: unknown = tenant?.(request);
  if (name === undefined || typeof name === "string") return name;
  throw new TypeError("tenant must return a string.");
}

/** Passes a request to the receiver. Neither throws nor rejects, whatever the application's `tenant` does. */
export function answerTo<Request>(
  receiver: WebhookReceiver,
  { method, headers, readBody }: Conversion,
  request: Request,
  options: WebhookOptions<Request>,
): Promise<Answer> | Answer {
  try {
    const tenant = tenantOf(options.tenant, request);
    return receiver.handle({ method, headers, readBody, tenant, route: options.route });
  } catch (error) {
    const reason = error instanceof Error ? error.name : typeof error;
    const message = "The adapter's tenant option threw or did not return a string: the request was answered with 500.";
    const { at } = errorPlaceOf(error);
    receiver.logger.error({ reason, ...(at && { at }) }, message);
    return answers.unread(answers.MISCONFIGURED);
  }
}

/** Options of the `…Verify` functions, for applications with their own inbox; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /**
   * Names the tenant whose secrets to use, when `secrets` is a function. Nothing in the request is verified yet. Each secret of a
   * tenant must name its `apiClientId`.
   */
  readonly tenant?: (request: Request) => string | undefined;
}

/** A typed record, so that no option is forgotten. */
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
 * Creates the function behind a `…Verify`. It never rejects, whatever the application's `tenant` does.
 *
 * @throws SetupError for a wrong option or secret, at creation
 */
export function createRequestVerifier<Request>(owner: string, options: WebhookVerifyOptions<Request>) {
  refuseUnknownOptions(owner, options, Object.keys(VERIFY_OPTIONS));
  const { tenant: nameOf, ...policy } = options;
  const verify = createVerifier(policy);
  return (incoming: Conversion, request: Request): Promise<VerifiedWebhook> =>
    verify({
      ...incoming,
      // Read after the headers were checked. The verifier handles an exception as any other set-up mistake.
      get tenant() {
        try {
          return tenantOf(nameOf, request);
        } catch (error) {
          throw tenantThrew(owner, error);
        }
      },
    });
}

/** The error's own message may quote the request. */
function tenantThrew(owner: string, error: unknown): SetupError {
  const kind = error instanceof Error ? error.name : typeof error;
  return new SetupError("invalid_option", `Option "tenant" of ${owner} threw or did not return a string (${kind}).`, {
    cause: error,
  });
}

/** What every adapter takes: a receiver, and the options that name whose secrets a request is to be checked with. */
import {
  type Answer,
  answers,
  type IncomingWebhook,
  type Receiver,
  refuseUnknownOptions,
  SetupError,
} from "../src/index.ts";
import { placeOf } from "../src/internal/foreign-error.ts";

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

const OPTIONS = ["tenant", "route"];

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
  refuseUnknownOptions(owner, options, [...OPTIONS, ...others]);
}

/**
 * @throws TypeError for anything but a text or nothing: a promise, as of an `async` function, would be one tenant for everybody; and
 *   what `tenant` throws
 */
export function tenantOf<Request>(
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
    const { at } = placeOf(error);
    receiver.logger.error({ reason, ...(at && { at }) }, said);
    return answers.unread(answers.MISCONFIGURED);
  }
}

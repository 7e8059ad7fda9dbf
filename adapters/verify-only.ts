/** Verification alone, for applications that keep their own inbox: what is common to each framework's `…Verify`. */
import {
  createVerifier,
  refuseUnknownOptions,
  SetupError,
  type VerifiedWebhook,
  type VerifierOptions,
} from "../src/index.ts";
import { type Conversion, tenantOf } from "./webhook-options.ts";

/** What the `…Verify` functions take; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /**
   * Whose secrets to use, when `secrets` is a function. Nothing about the request is verified yet when it is called. Each secret of a
   * tenant must name its `apiClientId`.
   */
  readonly tenant?: (request: Request) => string | undefined;
}

/** Typed, so that none is forgotten. */
const OPTIONS: Readonly<Record<keyof WebhookVerifyOptions<never>, true>> = {
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
  refuseUnknownOptions(owner, options, Object.keys(OPTIONS));
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

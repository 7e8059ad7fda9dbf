/** Verification alone, for applications that keep their own inbox: what is common to each framework's `…Verify`. */
import { answers, createVerifier, type VerifiedWebhook, type VerifierOptions } from "../src/index.ts";
import type { Conversion } from "./webhook-options.ts";

/** What the `…Verify` functions take; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /** Whose secrets to use, when `secrets` is a function. Nothing about the request is verified yet when it is called. */
  readonly tenant?: (request: Request) => string | undefined;
}

/**
 * Makes the function behind a `…Verify`. It never rejects, whatever the application's `tenant` does.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createRequestVerifier<Request>({ tenant: tenantOf, ...options }: WebhookVerifyOptions<Request>) {
  const verify = createVerifier(options);
  return async (incoming: Conversion, request: Request): Promise<VerifiedWebhook> => {
    try {
      const tenant = tenantOf?.(request);
      return await verify(tenant === undefined ? incoming : { ...incoming, tenant });
    } catch {
      return { ok: false, answer: answers.unread(answers.MISCONFIGURED) };
    }
  };
}

/** Verification alone, for applications that keep their own inbox: what is common to each framework's `…Verify`. */
import {
  answers,
  createVerifier,
  refuseUnknownOptions,
  type VerifiedWebhook,
  type VerifierOptions,
} from "../src/index.ts";
import type { Conversion } from "./webhook-options.ts";

/** What the `…Verify` functions take; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /** Whose secrets to use, when `secrets` is a function. Nothing about the request is verified yet when it is called. */
  readonly tenant?: (request: Request) => string | undefined;
}

/** Typed, so that none is forgotten. */
const OPTIONS: Readonly<Record<keyof WebhookVerifyOptions<never>, true>> = {
  secrets: true,
  toleranceMs: true,
  timestampFormat: true,
  encoding: true,
  maxBodyBytes: true,
  tenant: true,
};

/**
 * Makes the function behind a `…Verify`. It never rejects, whatever the application's `tenant` does.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createRequestVerifier<Request>(owner: string, options: WebhookVerifyOptions<Request>) {
  refuseUnknownOptions(owner, options, Object.keys(OPTIONS));
  const { tenant: tenantOf, ...policy } = options;
  const verify = createVerifier(policy);
  return async (incoming: Conversion, request: Request): Promise<VerifiedWebhook> => {
    try {
      const tenant = tenantOf?.(request);
      return await verify(tenant === undefined ? incoming : { ...incoming, tenant });
    } catch {
      return { ok: false, answer: answers.unread(answers.MISCONFIGURED) };
    }
  };
}

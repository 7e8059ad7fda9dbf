/** Verification and parsing alone, for applications that keep their own inbox; each framework's `…Verify` converts to it. */
import {
  type Answer,
  answers,
  type BodyReading,
  type Keyring,
  KeyringError,
  type KeyringProvider,
  parseEvent,
  verifySignature,
  type WebhookEvent,
} from "../src/index.ts";
import type { Conversion } from "./webhook-options.ts";

/** `VerifyOptions` of the function that it is made of; the overload for a provider is the wider one. */
type SignatureOptions = Parameters<typeof verifySignature>[0];
type Policy = Pick<SignatureOptions, "toleranceMs" | "timestampFormat" | "encoding">;

/** What the `…Verify` functions take; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends Policy {
  /** A keyring, or a function that reads one. */
  readonly secrets: Keyring | KeyringProvider;
  /** Bytes of a body at most. Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
  /** Whose secrets to use, when `secrets` is a function. Nothing about the request is verified yet when it is called. */
  readonly tenant?: (request: Request) => string | undefined;
}

/** A delivery whose signature fits, or the answer to one that is refused. */
export type VerifiedWebhook =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly answer: Answer };

const DEFAULT_MAX_BODY_BYTES = 262_144;
/** Stands in for the secrets while there is no body yet: with it a mismatch says that the headers are in order. */
const PROBE = "no secret, only 16 bytes or more";

/**
 * Makes the function behind every `…Verify`. It never rejects: what goes wrong has its answer.
 *
 * @throws SetupError for a wrong option, when it is made
 */
export function createVerifier<Request>(options: WebhookVerifyOptions<Request>) {
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES, tenant: tenantOf, secrets, ...policy } = options;
  findMistakes(secrets, policy);

  const verify = async (incoming: Conversion, request: Request): Promise<VerifiedWebhook> => {
    const { headers } = incoming;
    const probe = verifySignature({ ...policy, headers, body: "", secrets: PROBE });
    if (!probe.ok && probe.code !== "signature_mismatch") return refuse(answers.UNAUTHORIZED_UNREAD);
    const body = await incoming.readBody(readingOf(maxBodyBytes));
    if (!body.ok) return refuse(BODY_ANSWERS[body.reason]);
    const tenant = tenantOf?.(request);
    const delivery = { ...policy, headers, body: body.bytes, ...(tenant === undefined ? {} : { tenant }) };
    const result = await (typeof secrets === "function"
      ? verifySignature({ ...delivery, secrets })
      : verifySignature({ ...delivery, secrets }));
    if (!result.ok) return refuse(answers.UNAUTHORIZED);
    const parsed = parseEvent(body.bytes);
    return parsed.ok ? { ok: true, event: parsed.event, bytes: body.bytes } : refuse(answers.UNPROCESSABLE);
  };
  return (incoming: Conversion, request: Request): Promise<VerifiedWebhook> =>
    verify(incoming, request).catch((error) =>
      refuse(error instanceof KeyringError ? answers.UNAVAILABLE : answers.MISCONFIGURED),
    );
}

/** One verification without a body, so that a wrong option or secret is found when the middleware is made. */
function findMistakes(secrets: Keyring | KeyringProvider, policy: Policy): void {
  if (typeof secrets === "function") verifySignature({ ...policy, headers: {}, body: "", secrets: PROBE });
  else verifySignature({ ...policy, headers: {}, body: "", secrets });
}

const BODY_ANSWERS = {
  too_large: answers.TOO_LARGE,
  truncated: answers.BODY_TRUNCATED,
  cut: answers.UNAVAILABLE_UNREAD,
  already_parsed: answers.RAW_BODY_UNAVAILABLE,
} as const;

/** No budget is shared here, and nothing cuts a read: the server's own time-outs bound it. */
function readingOf(maxBytes: number): BodyReading {
  // A body that is short of its declared length can not have the signature of the whole.
  return { maxBytes, declaredBytes: null, received: () => {}, onCut: () => {} };
}

function refuse(answer: Answer): VerifiedWebhook {
  return { ok: false, answer };
}

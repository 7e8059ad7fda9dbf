/** Verification and parsing of whole requests without an inbox: what every adapter's `…Verify` is made of. */
import { KeyringError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import { systemClock } from "../internal/clock.ts";
import { numberOption } from "../internal/options.ts";
import type { Keyring } from "../signature/keyring.ts";
import { checkHeaders } from "../signature/match.ts";
import type { KeyringProvider } from "../signature/provider.ts";
import { resolvePolicy, type VerifyOptions, verifySignature } from "../signature/verify.ts";
import * as answers from "./answers.ts";
import { refuseBody } from "./head.ts";
import type { Answer, BodyReading, IncomingWebhook } from "./incoming.ts";

export interface VerifierOptions extends Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding"> {
  /** A keyring, or a function that reads one. */
  readonly secrets: Keyring | KeyringProvider;
  /** Bytes of a body at most. 1,024 to 1,048,576 (1 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
}

/** A delivery whose signature fits, or the answer to one that is refused. */
export type VerifiedWebhook =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly answer: Answer };

/** Any method will do: the application chose its route. */
export type UnverifiedWebhook = Pick<IncomingWebhook, "headers" | "readBody" | "tenant">;

const DEFAULT_MAX_BODY_BYTES = 262_144;

/**
 * Makes a function that verifies and parses one request, and keeps nothing: retries and replays within the tolerance (5
 * minutes by default) pass again, and nothing is ordered. The function never rejects: what goes wrong has its answer.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createVerifier(options: VerifierOptions): (incoming: UnverifiedWebhook) => Promise<VerifiedWebhook> {
  const { secrets, maxBodyBytes: limit, ...policy } = options;
  const maxBodyBytes = numberOption("maxBodyBytes", limit, DEFAULT_MAX_BODY_BYTES, {
    min: 1024,
    max: 1024 * 1024,
    unit: "bytes",
  });
  const headerPolicy = resolvePolicy(policy);
  // One verification of nothing, so that a wrong secret is found now and not by the first delivery.
  if (typeof secrets !== "function") verifySignature({ ...policy, headers: {}, body: "", secrets });

  const verify = async ({ headers, readBody, tenant }: UnverifiedWebhook): Promise<VerifiedWebhook> => {
    const refused = refuseBody(headers, maxBodyBytes);
    if (refused !== null) return refuse(refused.answer);
    if (!checkHeaders(headers, headerPolicy, systemClock.now()).ok) return refuse(answers.UNAUTHORIZED_UNREAD);
    const body = await readBody(readingOf(maxBodyBytes));
    if (!body.ok) return refuse(BODY_ANSWERS[body.reason]);
    const delivery = { ...policy, headers, body: body.bytes, ...(tenant === undefined ? {} : { tenant }) };
    const result = await (typeof secrets === "function"
      ? verifySignature({ ...delivery, secrets })
      : verifySignature({ ...delivery, secrets }));
    if (!result.ok) return refuse(answers.UNAUTHORIZED);
    const parsed = parseEvent(body.bytes);
    return parsed.ok ? { ok: true, event: parsed.event, bytes: body.bytes } : refuse(answers.UNPROCESSABLE);
  };
  return (incoming) =>
    verify(incoming).catch((error: unknown) =>
      refuse(error instanceof KeyringError ? answers.UNAVAILABLE : answers.MISCONFIGURED),
    );
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

/** Verification and parsing of whole requests without an inbox: what every adapter's `…Verify` is made of. */
import { KeyringError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import { explained, failureCode } from "../inbox/failure.ts";
import { systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption } from "../internal/logger.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { SampledLog } from "../internal/sampled-log.ts";
import { type CompiledKeyring, compileKeyring, type Keyring } from "../signature/keyring.ts";
import { checkHeaders } from "../signature/match.ts";
import {
  createKeyringSource,
  isSecretStore,
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  keyringContext,
} from "../signature/provider.ts";
import type { SecretStore } from "../signature/secret-store.ts";
import { resolvePolicy, type VerifyOptions, verifyFrom } from "../signature/verify.ts";
import * as answers from "./answers.ts";
import { refuseBody } from "./head.ts";
import { type Answer, type BodyReading, type BodyResult, bodyParsedMessage, type IncomingWebhook } from "./incoming.ts";

export interface VerifierOptions extends Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding"> {
  /**
   * A keyring, a function that reads one, or a secret store: read again when a delivery comes `refreshMs` later. Each kind needs a secret:
   * with `"dangerouslyUnsigned"` there is nothing to verify.
   */
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  /** Bytes of a body at most. 1,024 to 1,048,576 (1 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
  /** Told of mistakes in the set-up, 10 lines a second at most. Default: standard error, one JSON object per line. */
  readonly logger?: Logger;
}

/** A delivery whose signature fits, or the answer to one that is refused. */
export type VerifiedWebhook =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly answer: Answer };

/** Any method will do: the application chose its route. */
export type UnverifiedWebhook = Pick<IncomingWebhook, "headers" | "readBody" | "tenant" | "route">;

const DEFAULT_MAX_BODY_BYTES = 262_144;
const OPTIONS = [
  "secrets",
  "maxBodyBytes",
  "logger",
  "toleranceMs",
  "timestampFormat",
  "encoding",
] as const satisfies readonly (keyof VerifierOptions)[];

/**
 * Makes a function that verifies and parses one request, and keeps nothing: retries and replays within the tolerance (5
 * minutes by default) pass again, and nothing is ordered. The function never rejects: what goes wrong has its answer.
 *
 * @throws SetupError for a wrong option or secret, when it is made
 */
export function createVerifier(options: VerifierOptions): (incoming: UnverifiedWebhook) => Promise<VerifiedWebhook> {
  refuseUnknownOptions("createVerifier", options, OPTIONS);
  const maxBodyBytes = numberOption("maxBodyBytes", options.maxBodyBytes, DEFAULT_MAX_BODY_BYTES, {
    min: 1024,
    max: 1024 * 1024,
    unit: "bytes",
  });
  const policy = resolvePolicy(options);
  const logger = loggerOption(options.logger);
  const log = new SampledLog(logger, systemClock);
  const source = signedSource(options.secrets, { clock: systemClock, logger });

  const verify = async (incoming: UnverifiedWebhook): Promise<VerifiedWebhook> => {
    const { headers } = incoming;
    const refused = refuseBody(headers, maxBodyBytes);
    if (refused !== null) return refuse(refused.answer);
    if (!checkHeaders(headers, policy, systemClock.now()).ok) return refuse(answers.UNAUTHORIZED_UNREAD);
    const body = await incoming.readBody(readingOf(maxBodyBytes));
    if (!body.ok) return refuse(answerTo(body, log));
    const now = systemClock.now();
    // Once more: a body may come so slowly that its timestamp has become too old.
    const checked = checkHeaders(headers, policy, now);
    if (!checked.ok) return refuse(answers.UNAUTHORIZED);
    const result = await verifyFrom(source, { checked, body: body.bytes, context: keyringContext(incoming), now });
    if (!result.ok) return refuse(answers.UNAUTHORIZED);
    const parsed = parseEvent(body.bytes);
    return parsed.ok ? { ok: true, event: parsed.event, bytes: body.bytes } : refuse(answers.UNPROCESSABLE);
  };
  return (incoming) => verify(incoming).catch((error: unknown) => refuse(answerToFailure(error, log)));
}

/** @throws SetupError where a kind is accepted unsigned, now or when it is read */
function signedSource(
  secrets: VerifierOptions["secrets"],
  deps: KeyringSourceDeps,
): Pick<KeyringSource, "read" | "reread"> {
  if (typeof secrets !== "function" && !isSecretStore(secrets)) signed(compileKeyring(secrets, deps.clock.now()));
  const source = createKeyringSource(secrets, deps);
  return {
    read: async (context) => signed(await source.read(context)),
    async reread(context, seen) {
      const fresher = await source.reread(context, seen);
      return fresher === null ? null : signed(fresher);
    },
  };
}

function signed(keyring: CompiledKeyring): CompiledKeyring {
  if (keyring.unsigned.size === 0) return keyring;
  const message =
    'Option "secrets" holds "dangerouslyUnsigned": of an unsigned kind there is nothing to verify, and only a receiver takes it.';
  throw new SetupError("invalid_secret", message, { fields: { option: "secrets" } });
}

const BODY_ANSWERS = {
  too_large: answers.TOO_LARGE,
  truncated: answers.BODY_TRUNCATED,
  cut: answers.UNAVAILABLE_UNREAD,
  already_parsed: answers.RAW_BODY_UNAVAILABLE,
} as const;

function answerTo(failure: Exclude<BodyResult, { ok: true }>, log: SampledLog): Answer {
  if (failure.reason === "already_parsed") log.error({ code: "raw_body_unavailable" }, bodyParsedMessage(failure));
  return BODY_ANSWERS[failure.reason];
}

function answerToFailure(error: unknown, log: SampledLog): Answer {
  const code = failureCode(error);
  if (error instanceof KeyringError) {
    log.warn({ code }, explained("A delivery could not be verified; it was answered with 503.", error));
    return answers.UNAVAILABLE;
  }
  log.error({ code }, explained("A delivery could not be verified; it was answered with 500.", error));
  return answers.MISCONFIGURED;
}

/** No budget is shared here, and nothing cuts a read: the server's own time-outs bound it. */
function readingOf(maxBytes: number): BodyReading {
  // A body that is short of its declared length can not have the signature of the whole.
  return { maxBytes, declaredBytes: null, received: () => {}, onCut: () => {} };
}

function refuse(answer: Answer): VerifiedWebhook {
  return { ok: false, answer };
}

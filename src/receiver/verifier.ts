/** Verifies and parses whole requests, without an inbox: the core of every adapter's `…Verify`. */
import { KeyringError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import { systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption, SampledLog } from "../internal/logger.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { CompiledKeyring, Keyring } from "../signature/keyring.ts";
import { fixedKeyring, type KeyringProvider } from "../signature/keyring.ts";
import { type KeyringSource, type KeyringSourceDeps, LookUpsCrowded } from "../signature/keyring-provider.ts";
import { createKeyringSource, isSecretStore } from "../signature/keyring-source.ts";
import type { SecretStore } from "../signature/secret-store.ts";
import { checkAge, vouchingMatch } from "../signature/verify.ts";
import { resolvePolicy, type VerifyOptions } from "../signature/verify-signature.ts";
import { type RefusedRequest, RequestVerifier, type UnverifiedWebhook, type VerifiedRequest } from "./body-limits.ts";
import * as answers from "./incoming.ts";
import { type Answer, bodyParsedMessage } from "./incoming.ts";

export type { UnverifiedWebhook };

export interface VerifierOptions extends Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding"> {
  /**
   * A keyring, a function that reads one, or a secret store, which is read again when a delivery arrives `refreshMs` later. Each kind
   * needs a secret: with `"dangerouslyUnsigned"` there is nothing to verify.
   */
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  /** Bytes of a body at most. 1,024 to 1,048,576 (1 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
  /** Receives mistakes in the set-up, 10 lines a second at most. Default: standard error, one JSON object per line. */
  readonly logger?: Logger;
}

/** A delivery whose signature matches, or the answer to a refused one. */
export type VerifiedWebhook =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly answer: Answer };

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
 * Makes a function that verifies and parses one request, and stores nothing: retries and replays within the tolerance (5 minutes by
 * default) pass again, and nothing is ordered. The function never rejects: every failure has an answer.
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
  const rules = { ...resolvePolicy(options), maxBodyBytes, mayBeUnsigned: false };
  const logger = loggerOption(options.logger);
  const log = new SampledLog(logger, systemClock);
  const verifier = new RequestVerifier(signedSource(options.secrets, { clock: systemClock, logger }), systemClock);

  const parse = ({ bytes, match, checked }: VerifiedRequest): VerifiedWebhook => {
    // Again: the body may have arrived so slowly that its timestamp is too old now.
    const expired = checked === null ? null : checkAge(checked.timestamp, systemClock.now(), rules.tolerance);
    const parsed = parseEvent(bytes);
    const vouching = expired === null ? vouchingMatch(match, parsed.ok ? parsed.event : {}) : null;
    if (vouching === null) return refuse(answers.UNAUTHORIZED);
    return parsed.ok ? { ok: true, event: parsed.event, bytes } : refuse(answers.UNPROCESSABLE);
  };
  return async (incoming) => {
    const progress = { isRead: false };
    try {
      const request = await verifier.verify(incoming, rules, progress);
      if (!request.ok) return refuse(answerTo(request, log));
      request.release();
      return parse(request);
    } catch (error) {
      const answer = answerToFailure(error, log);
      return refuse(progress.isRead ? answer : answers.unread(answer));
    }
  };
}

/** @throws SetupError if a kind is accepted unsigned, now or when the keyring is read */
function signedSource(
  secrets: VerifierOptions["secrets"],
  deps: KeyringSourceDeps,
): Pick<KeyringSource, "read" | "reread"> {
  if (typeof secrets !== "function" && !isSecretStore(secrets)) signed(fixedKeyring(secrets, deps.clock.now()).keyring);
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
    'Option "secrets" holds "dangerouslyUnsigned": an unsigned kind has nothing to verify. Use a secret here; only a receiver takes unsigned kinds.';
  throw new SetupError("invalid_secret", message, { fields: { option: "secrets" } });
}

function answerTo(refused: RefusedRequest, log: SampledLog): Answer {
  if (refused.reason === "already_parsed") log.error({ code: "raw_body_unavailable" }, bodyParsedMessage(refused));
  return refused.answer;
}

function answerToFailure(error: unknown, log: SampledLog): Answer {
  // A flood of forged requests is not our own failure.
  if (error instanceof LookUpsCrowded) return answers.UNAVAILABLE;
  const fields = placeFields(error);
  if (error instanceof KeyringError) {
    log.warn(fields, explained("A delivery could not be verified; it was answered with 503.", error));
    return answers.UNAVAILABLE;
  }
  log.error(fields, explained("A delivery could not be verified; it was answered with 500.", error));
  return answers.MISCONFIGURED;
}

function refuse(answer: Answer): VerifiedWebhook {
  return { ok: false, answer };
}

/** Verification and parsing of whole requests without an inbox: what every adapter's `…Verify` is made of. */
import { KeyringError, SetupError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import { explained, placeFields } from "../inbox/masking.ts";
import { systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption, SampledLog } from "../internal/logger.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { CompiledKeyring, Keyring } from "../signature/keyring.ts";
import {
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  LookUpsCrowded,
} from "../signature/keyring-provider.ts";
import { createKeyringSource, fixedKeyring, isSecretStore } from "../signature/keyring-source.ts";
import type { SecretStore } from "../signature/secret-store.ts";
import { checkAge, vouchingMatch } from "../signature/verify.ts";
import { resolvePolicy, type VerifyOptions } from "../signature/verify-signature.ts";
import * as answers from "./answers.ts";
import { Admissions, type Admitted, type NotAdmitted, type UnverifiedWebhook } from "./body-limits.ts";
import { type Answer, bodyParsedMessage } from "./incoming.ts";

export type { UnverifiedWebhook };

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
  const rules = { ...resolvePolicy(options), maxBodyBytes, mayBeUnsigned: false };
  const logger = loggerOption(options.logger);
  const log = new SampledLog(logger, systemClock);
  const admissions = new Admissions(signedSource(options.secrets, { clock: systemClock, logger }), systemClock);

  const parse = ({ bytes, match, checked }: Admitted): VerifiedWebhook => {
    // Once more: the body may have come so slowly that its timestamp has become too old.
    const expired = checked === null ? null : checkAge(checked.timestamp, systemClock.now(), rules.tolerance);
    const parsed = parseEvent(bytes);
    const vouching = expired === null ? vouchingMatch(match, parsed.ok ? parsed.event : {}) : null;
    if (vouching === null) return refuse(answers.UNAUTHORIZED);
    return parsed.ok ? { ok: true, event: parsed.event, bytes } : refuse(answers.UNPROCESSABLE);
  };
  return async (incoming) => {
    const progress = { isRead: false };
    try {
      const admission = await admissions.admit(incoming, rules, progress);
      if (!admission.ok) return refuse(answerTo(admission, log));
      admission.release();
      return parse(admission);
    } catch (error) {
      const answer = answerToFailure(error, log);
      return refuse(progress.isRead ? answer : answers.unread(answer));
    }
  };
}

/** @throws SetupError where a kind is accepted unsigned, now or when it is read */
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
    'Option "secrets" holds "dangerouslyUnsigned": of an unsigned kind there is nothing to verify, and only a receiver takes it.';
  throw new SetupError("invalid_secret", message, { fields: { option: "secrets" } });
}

function answerTo(refused: NotAdmitted, log: SampledLog): Answer {
  if (refused.reason === "already_parsed") log.error({ code: "raw_body_unavailable" }, bodyParsedMessage(refused));
  return refused.answer;
}

function answerToFailure(error: unknown, log: SampledLog): Answer {
  // A flood of forged requests is not our failure.
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

/** What a rotation takes and tells. */

import { OncehookError, type OncehookErrorCode, type OncehookErrorOptions } from "../../errors.ts";
import { type Clock, systemClock } from "../../internal/clock.ts";
import { type Logger, loggerOption } from "../../internal/logger.ts";
import {
  booleanOption,
  invalidOption,
  isAbortSignal,
  numberOption,
  refuseUnknownOptions,
} from "../../internal/options.ts";
import {
  checkKind,
  type ReceiverSighting,
  type SecretStore,
  secretStoreOption,
} from "../../sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";
import type { WebhookConfig, WebhookDefaults, WebhookUpdate } from "../client/types.ts";

/** The part of the client that a rotation uses; `createClient` of `oncehook/client` makes one. */
export interface RotationClient {
  readonly webhooks: {
    get(options?: { readonly signal?: AbortSignal }): Promise<WebhookDefaults>;
    update(
      kind: WebhookKind,
      update: WebhookUpdate,
      options?: { readonly signal?: AbortSignal },
    ): Promise<WebhookConfig & { readonly generatedSecret?: string | null }>;
  };
}

export interface RotateSecretOptions {
  /** The client of the service: what `createClient()` returns. */
  readonly client: RotationClient;
  /** The webhook kind whose secret is replaced. */
  readonly kind: WebhookKind;
  /** Where the receivers read their secrets from. */
  readonly secrets: SecretStore;
  /**
   * Rotate although a previous secret is still valid: the service may drop it at once (WHK-21); although the service shows
   * another rotation than the store's last one; and end it although the service shows none. Default false.
   */
  readonly force?: boolean;
  /**
   * How long to wait until every receiver has the new secret. Milliseconds, 0 to 3,600,000; at least twice the store's
   * `refreshMs` where that does not know its receivers. Default 120,000.
   */
  readonly waitMs?: number;
  /**
   * The receivers' tolerance of old timestamps, their `toleranceMs.past`: so long is a replaced secret kept longer. Milliseconds,
   * 1 to 86,400,000. Default 5,400,000 (90 minutes).
   */
  readonly toleranceMs?: number;
  /** Ends the call between two steps. The next call goes on. */
  readonly signal?: AbortSignal;
  /** Default: warnings and errors to standard error. */
  readonly logger?: Logger;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

/** A rotation that has ended: the service signs with the new secret. */
export interface RotationResult {
  readonly kind: WebhookKind;
  /** It went on with what an earlier call had begun. */
  readonly resumed: boolean;
  /** The service insisted on a secret of its own (WHK-18); deliveries may have been refused until receivers had it, and are retried. */
  readonly generated: boolean;
  /** The service's `rotatedAt`, epoch ms; null when it shows none. */
  readonly rotatedAt: number | null;
  /** Until when receivers accept the replaced secret, epoch ms; null when there was none. */
  readonly previousValidUntil: number | null;
  /** The receivers that had the secret installed before this call gave it to the service; null when the store can not tell. */
  readonly receivers: number | null;
}

export interface RotationStatusOptions {
  /** The webhook kind. */
  readonly kind: WebhookKind;
  /** Where the receivers read their secrets from. */
  readonly secrets: SecretStore;
  /** For tests: `createFakeClock()` of `oncehook/testing`. */
  readonly clock?: Clock;
}

export interface AdoptSecretOptions {
  /** The webhook kind that the service signs with it. */
  readonly kind: WebhookKind;
  /** Where the receivers read their secrets from. */
  readonly secrets: SecretStore;
  /** The secret that the service signs with today. At least 16 bytes. */
  readonly secret: string;
}

/** Where the secrets of a kind stand. */
export interface RotationStatus {
  readonly kind: WebhookKind;
  /** `none`: nothing stored. `installing`: a rotation has begun and not ended. `overlap`: a replaced secret still counts. `settled`: one secret. */
  readonly phase: "none" | "installing" | "overlap" | "settled";
  /** When the last of the replaced secrets ends, epoch ms; null when there is none. */
  readonly previousValidUntil: number | null;
  /**
   * Deliveries that a previous secret of either kind vouched for, over all living receivers since their start. Null when the
   * store can not tell.
   */
  readonly previousUses: number | null;
  /**
   * As many for `next`: while a rotation is `installing`, it grows once the service signs with the new secret. Null when the
   * store can not tell, and while the other kind has a `next`: receivers count both as one.
   */
  readonly nextUses: number | null;
  /** The living receivers; null when the store can not tell. */
  readonly receivers:
    | readonly (ReceiverSighting & { /** It accepts the secrets as they are stored. */ readonly ready: boolean })[]
    | null;
}

// What a rotation that did not end is rejected with.

/**
 * The codes of a `RotationError`. Only `invalid_secret` means that deliveries are refused; where a secret that the service made is
 * lost, that is a `StoreError`, whatever its code.
 */
export type RotationErrorCode = Extract<
  OncehookErrorCode,
  | "rotation_refused" // Now is the wrong time. This call gave the service no secret; an earlier one may have.
  | "rotation_conflict" // Somebody else rotated meanwhile, and not to the same secret.
  | "receivers_not_ready" // The secret is installed, and this call did not give it to the service: run again.
  | "invalid_secret" // The service made a secret of its own that no receiver takes, and signs with it.
  | "not_rotated" // The service took the secret and shows no rotation.
  | "invalid_response" // The service's answer is not the configuration of a webhook kind.
>;

/** A rotation that did not begin, or did not end. What it began stays, and is taken up by the next call. */
export class RotationError extends OncehookError {
  declare readonly code: RotationErrorCode;

  constructor(code: RotationErrorCode, message: string, options: OncehookErrorOptions = {}) {
    super(code, message, options);
  }
}

// The options of a rotation and its companions: validated, then defaulted.

/** Options, checked and complete: what each step of a rotation works with. */
export interface Rotation {
  readonly client: RotationClient;
  readonly kind: WebhookKind;
  readonly secrets: SecretStore;
  readonly force: boolean;
  readonly waitMs: number;
  readonly toleranceMs: number;
  readonly signal: AbortSignal | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
}

const KNOWN = [
  "client",
  "kind",
  "secrets",
  "force",
  "waitMs",
  "toleranceMs",
  "signal",
  "logger",
  "clock",
] as const satisfies readonly (keyof RotateSecretOptions)[];

/** @throws SetupError naming the option and the fix */
export function resolveRotationOptions(options: RotateSecretOptions): Rotation {
  refuseUnknownOptions("rotateSecret", options, KNOWN);
  return {
    client: clientOption(options.client),
    kind: kindOption(options.kind),
    secrets: secretStoreOption("secrets", options.secrets),
    force: booleanOption("force", options.force, false),
    waitMs: numberOption("waitMs", options.waitMs, 120_000, { min: 0, max: 3_600_000, unit: "ms" }),
    toleranceMs: numberOption("toleranceMs", options.toleranceMs, 5_400_000, { min: 1, max: 86_400_000, unit: "ms" }),
    signal: signalOption(options.signal),
    logger: loggerOption(options.logger),
    clock: options.clock ?? systemClock,
  };
}

export function kindOption(value: unknown): WebhookKind {
  checkKind(value);
  return value;
}

function clientOption(value: RotationClient): RotationClient {
  const webhooks: Partial<RotationClient["webhooks"]> | undefined = value?.webhooks;
  if (typeof webhooks?.get === "function" && typeof webhooks.update === "function") return value;
  throw invalidOption("client", "must be a client, as createClient() of oncehook/client makes one", value);
}

function signalOption(value: AbortSignal | undefined): AbortSignal | undefined {
  if (value === undefined || isAbortSignal(value)) return value;
  throw invalidOption("signal", "must be an AbortSignal", value);
}

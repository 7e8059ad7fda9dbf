/** The options of a rotation and its companions: validated, then defaulted. */

import { type Clock, systemClock } from "../internal/clock.ts";
import { type Logger, loggerOption } from "../internal/logger.ts";
import { booleanOption, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { isAbortSignal } from "../internal/type-guards.ts";
import type { WebhookKind } from "../internal/webhook-kind.ts";
import { checkKind, type SecretStore, secretStoreOption } from "../signature/secret-store.ts";
import type { RotateSecretOptions, RotationClient } from "./types.ts";

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
export function resolveOptions(options: RotateSecretOptions): Rotation {
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

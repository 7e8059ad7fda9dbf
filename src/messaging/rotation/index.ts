/** oncehook/rotation: replacing a webhook signing secret without a rejected delivery. */

export type {
  NextSecret,
  ReceiverSighting,
  Sealing,
  SecretSlots,
  SecretStore,
  StoredSecrets,
} from "../../sources/messaging/secret-store.ts";
export type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";
export type { SecretEncoding } from "../../sources/secret.ts";
export { type CallbackSecretsOptions, callbackSecrets, type SavedSecrets } from "./callback-secrets.ts";
export { adoptSecret, rotateSecret } from "./rotate-secret.ts";
export { rotationStatus } from "./slots.ts";
export {
  type AdoptSecretOptions,
  type RotateSecretOptions,
  type RotationClient,
  RotationError,
  type RotationErrorCode,
  type RotationResult,
  type RotationStatus,
  type RotationStatusOptions,
} from "./types.ts";

/** oncehook/rotation: replacing a webhook signing secret without a rejected delivery. */
export type { Sealing } from "../signature/sealing.ts";
export type {
  NextSecret,
  ReceiverSighting,
  SecretSlots,
  SecretStore,
  StoredSecrets,
} from "../signature/secret-store.ts";
export type { RotateSecretOptions, RotationClient, RotationResult, RotationStatus } from "./types.ts";

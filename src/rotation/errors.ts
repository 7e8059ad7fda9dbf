/** What a rotation that did not end is rejected with. */
import { OncehookError, type OncehookErrorCode, type OncehookErrorOptions } from "../errors.ts";

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
  | "invalid_response" // The service's answer is no configuration of a webhook kind.
>;

/** A rotation that did not begin, or did not end. What it began stays, and is taken up by the next call. */
export class RotationError extends OncehookError {
  declare readonly code: RotationErrorCode;

  constructor(code: RotationErrorCode, message: string, options: OncehookErrorOptions = {}) {
    super(code, message, options);
  }
}

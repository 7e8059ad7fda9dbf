/** What a rotation that did not end is rejected with. */
import { OncehookError, type OncehookErrorCode, type OncehookErrorOptions } from "../errors.ts";

/** The codes of a `RotationError`, of which none means that a delivery was refused. */
export type RotationErrorCode = Extract<
  OncehookErrorCode,
  | "rotation_refused" // Nothing was begun: now is the wrong time.
  | "rotation_conflict" // Somebody else rotated meanwhile, and not to the same secret.
  | "receivers_not_ready" // The secret is installed, the service does not have it yet: run again.
  | "not_rotated" // The service took the secret and shows no rotation.
  | "invalid_response" // The service's answer is no configuration of a webhook kind.
>;

/** A rotation that did not begin, or did not end. What it began stays, harms nothing, and is taken up by the next call. */
export class RotationError extends OncehookError {
  declare readonly code: RotationErrorCode;

  constructor(code: RotationErrorCode, message: string, options: OncehookErrorOptions = {}) {
    super(code, message, options);
  }
}

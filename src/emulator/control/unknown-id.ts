/** The error of a call that names something that the emulator does not hold. */
import { OncehookError } from "../../errors.ts";

export function unknownId(thing: "client" | "delivery" | "fault rule" | "message" | "number"): OncehookError {
  return new OncehookError("unknown_id", `There is no such ${thing}.`, { fields: { thing } });
}

/** The matrix: every combination of the four readings that decide how a delivery is signed. */
import { READINGS, type Readings } from "../../../src/messaging/emulator/index.ts";

export type Reading = Pick<Readings, "overlapSigning" | "retrySignature" | "signatureEncoding" | "timestampUnit">;

const { overlapSigning, retrySignature, signatureEncoding, timestampUnit } = READINGS;

/** All of them, 96 as the table of readings stands. */
export const ALL_READINGS: readonly Reading[] = overlapSigning.values.flatMap((overlap) =>
  retrySignature.values.flatMap((retry) =>
    signatureEncoding.values.flatMap((encoding) =>
      timestampUnit.values.map((unit) => ({
        overlapSigning: overlap,
        retrySignature: retry,
        signatureEncoding: encoding,
        timestampUnit: unit,
      })),
    ),
  ),
);

/** Twelve of them, with every value of each, and each way of signing an overlap with each way of signing a retry. */
export const SOME_READINGS: readonly Reading[] = Array.from({ length: 12 }, (_, index) => ({
  overlapSigning: pick(overlapSigning.values, index),
  retrySignature: pick(retrySignature.values, Math.floor(index / overlapSigning.values.length)),
  signatureEncoding: pick(signatureEncoding.values, index),
  timestampUnit: pick(timestampUnit.values, Math.floor(index / signatureEncoding.values.length)),
}));

/** `alternate, frozen, base64, s`. */
export function nameOf(reading: Reading): string {
  return [reading.overlapSigning, reading.retrySignature, reading.signatureEncoding, reading.timestampUnit].join(", ");
}

/** Beyond the last one the first one follows. */
function pick<Value>(values: readonly [Value, ...Value[]], index: number): Value {
  return values[index % values.length] ?? values[0];
}

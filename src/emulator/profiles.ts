/** The profiles: what a receiver must pass before it is ready (`default`, `strict`, `hostile`). */
import type { FaultRule } from "./faults/rule.ts";
import type { Readings } from "./unspecified.ts";

/** The name of a profile. */
export type ProfileName = keyof typeof PROFILES;

/** What a profile sets; options of the emulator go before it. */
export interface Profile {
  readonly unspecified: Partial<Readings>;
  readonly faults: readonly FaultRule[];
}

export const PROFILES = {
  /** The choices of docs/spec/conformance.md, without faults. */
  default: { unspecified: {}, faults: [] },
  /** Rejects unknown request fields; otherwise as `default`. */
  strict: { unspecified: { unknownFields: "reject" }, faults: [] },
  /** All that a receiver may meet at its worst: old signatures, two secrets, other spellings, repeats, any order. */
  hostile: {
    unspecified: {
      retrySignature: "frozen",
      overlapSigning: "alternate",
      signatureEncoding: "base64",
      timestampUnit: "s",
      retryBody: "reserialised",
    },
    faults: [
      { match: { webhook: true }, action: { type: "duplicate" }, probability: 0.2 },
      { match: { webhook: true }, action: { type: "reorder" }, probability: 0.2 },
    ],
  },
} as const satisfies Record<string, Profile>;

export const PROFILE_NAMES = Object.keys(PROFILES) as ProfileName[];

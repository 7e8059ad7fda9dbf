/** The two headers of a signed attempt, in the spelling that the readings choose (DLV-5, DLV-12 to DLV-14, DLV-16). */
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/headers.ts";
import { secretBytes } from "../../signature/secret.ts";
import { signPayload } from "../../signature/sign.ts";
import type { Readings } from "../unspecified.ts";

/** What is signed, when, and with what: a signature of each secret, the first one's first. */
export interface Signing {
  readonly body: Buffer;
  /** Epoch ms. */
  readonly timestamp: number;
  readonly secrets: readonly string[];
}

/** None without secrets (DLV-4). */
export function signatureHeaders(
  { body, timestamp, secrets }: Signing,
  readings: Pick<Readings, "signatureEncoding" | "timestampUnit" | "secretEncoding">,
): Record<string, string> {
  const { signatureEncoding: encoding, timestampUnit: unit, secretEncoding } = readings;
  const signed = secrets.map((secret) =>
    signPayload({ body, timestamp, unit, encoding, secret: keyOf(secret, secretEncoding) }),
  );
  const [first] = signed;
  if (first === undefined) return {};
  return {
    [TIMESTAMP_HEADER]: first[TIMESTAMP_HEADER],
    [SIGNATURE_HEADER]: signed.map((headers) => headers[SIGNATURE_HEADER]).join(", "),
  };
}

/**
 * A text that is none of the encoding counts by its UTF-8 bytes: the routes take any secret (WHK-24), and an attempt that is
 * signed in a way the receiver can reproduce helps more than one that is not made.
 */
function keyOf(secret: string, encoding: Readings["secretEncoding"]): { secret: string; encoding: typeof encoding } {
  try {
    const usable = secretBytes("secret", secret, encoding).length > 0;
    return { secret, encoding: usable ? encoding : "utf8" };
  } catch {
    return { secret, encoding: "utf8" };
  }
}

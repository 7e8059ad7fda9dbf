/** The requests that were really signed: what mutations begin with, and the ledger of all that may be accepted. */
import { createHash } from "node:crypto";
import {
  SIGNATURE_HEADER,
  signPayload,
  TIMESTAMP_HEADER,
  type WrittenEncoding,
} from "../../../src/sources/messaging/sign.ts";
import { fixtures, serviceFixtures } from "../../../src/tools/testing/fixtures.ts";
import type { Case } from "./case.ts";

export const SECRET = "one-secret-of-32-bytes-for-fuzz!";
/** Epoch milliseconds. */
export const NOW = 1_760_000_000_000;
/** The verifier's default, both ways. */
export const TOLERANCE_MS = 300_000;

export interface Signed {
  readonly timestamp: string;
  readonly signature: string;
  readonly bytes: Buffer;
  readonly body: Buffer;
}

const ENCODINGS: readonly WrittenEncoding[] = ["hex", "HEX", "base64", "base64url", "sha256=hex", "v1=hex"];

/** Bodies of all types, as machines and as people write JSON, with dots, digits and what a decoder would replace. */
function bodies(): readonly string[] {
  const events = Object.values(serviceFixtures).map((make) => make());
  const text = "1.2 Grüße \ufffd 😀 e\u0301 \u2028";
  return [
    ...events.map((event) => JSON.stringify(event)),
    ...events.slice(0, 2).map((event) => JSON.stringify(event, null, 2)),
    JSON.stringify(fixtures.inbound({ messageId: "in_2", data: { body: text, score: 1.5 } })),
    '{"eventType":"message.read","n":1.0,"x":1e2,"\\u0061":"\\u00e9","b":"\\/"}',
    JSON.stringify(fixtures.sent({ messageId: "msg_2", data: { note: "x".repeat(2_000) } })),
    ...["1.2.3", "123.{}", "1760000000000.{}", "", "\ufffd", "\ufeff{}", '{"a":"\ufffd\ufffd"}'],
  ];
}

/** Each body in each written form, seconds and milliseconds, somewhere within the tolerance. */
export function signedPool(): readonly Signed[] {
  let age = 0;
  return bodies().flatMap((body) =>
    ENCODINGS.flatMap((encoding) =>
      (["ms", "s"] as const).map((unit) => {
        age = (age + 7_919) % (TOLERANCE_MS - 2_000);
        return signedAt(Buffer.from(body), NOW - age, { encoding, unit });
      }),
    ),
  );
}

export function signedAt(
  body: Buffer,
  timestamp: number,
  { encoding = "hex", unit = "ms" }: { readonly encoding?: WrittenEncoding; readonly unit?: "ms" | "s" } = {},
): Signed {
  const headers = signPayload({ body, secret: SECRET, timestamp, encoding, unit });
  const hex = signPayload({ body, secret: SECRET, timestamp, unit })[SIGNATURE_HEADER];
  return {
    timestamp: headers[TIMESTAMP_HEADER],
    signature: headers[SIGNATURE_HEADER],
    bytes: Buffer.from(hex, "hex"),
    body,
  };
}

export function headersOf({ timestamp, signature }: Pick<Signed, "timestamp" | "signature">): Record<string, string> {
  return { [TIMESTAMP_HEADER]: timestamp, [SIGNATURE_HEADER]: signature };
}

/** Knows what was signed; it reads headers with its own, lenient eyes, and shares no code with the verifier. */
export class Ledger {
  readonly #signatures = new Map<string, string>();

  constructor(pool: readonly Signed[]) {
    for (const { timestamp, body, bytes } of pool) this.#signatures.set(keyOf(timestamp, body), bytes.toString("hex"));
  }

  /** Whether timestamp text, body bytes and one of the signatures are those of one signed request. */
  hasSigned({ headers, body }: Pick<Case, "headers" | "body">): boolean {
    const signature = this.#signatures.get(keyOf(headerIn(headers, TIMESTAMP_HEADER), body));
    return signature !== undefined && readings(headerIn(headers, SIGNATURE_HEADER)).includes(signature);
  }
}

function keyOf(timestamp: string, body: Buffer): string {
  return `${timestamp}\n${createHash("sha256").update(body).digest("hex")}`;
}

function headerIn(headers: Case["headers"], wanted: string): string {
  const values = Object.entries(headers).filter(([name]) => name.toLowerCase() === wanted);
  return values.flatMap(([, value]) => value).join(", ");
}

function readings(text: string): readonly string[] {
  const parts = text.split(/[\s,]+/).map((part) => part.replace(/^(?:sha256|v1)=/, ""));
  return parts.flatMap((part) => [part.toLowerCase(), Buffer.from(part, "base64").toString("hex")]);
}

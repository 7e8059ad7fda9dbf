/** A request as the service sends it, and the ways in which it is broken before somebody looks at it. */
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import type { Capture, Header } from "../../../src/cli/verify/capture.ts";
import type { CauseCode } from "../../../src/cli/verify/causes.ts";
import type { CapturedWith, GivenSecret } from "../../../src/cli/verify/steps.ts";
import { signPayload, type WrittenEncoding } from "../../../src/service/sign.ts";
import { fixtures } from "../../../src/testing/fixtures.ts";

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const AT = 1_760_000_002_000;
const SIGNED_AT = 1_760_000_001_234;

const MINUTE_MS = 60_000;
export const CIRCUMSTANCES: CapturedWith = {
  at: undefined,
  now: AT + 365 * 86_400_000,
  timestampFormat: "auto",
  encoding: "auto",
  tolerance: { pastMs: 90 * MINUTE_MS, futureMs: 5 * MINUTE_MS },
};

export const CONTENT = JSON.stringify(fixtures.inbound({ data: { body: "Grüße 👋, see https://example.com/a" } }));

interface Written {
  readonly secret?: GivenSecret["secret"];
  readonly encoding?: WrittenEncoding;
  readonly timestamp?: number | string;
  readonly unit?: "s" | "ms";
  readonly body?: string | Buffer;
}

/** As the service sends it; `body` is what is signed and sent. */
export function request({ secret = SECRET, timestamp = SIGNED_AT, body = CONTENT, ...how }: Written = {}): Capture {
  const bytes = Buffer.from(body);
  const signature = signPayload({ body: bytes, secret, timestamp, ...how });
  return {
    headers: [
      ["Host", "app.example.com"],
      ["Content-Type", "application/json"],
      ["Content-Length", `${bytes.length}`],
      ["X-Service-Timestamp", signature["x-service-timestamp"]],
      ["X-Service-Signature", signature["x-service-signature"]],
    ],
    body: bytes,
  };
}

/** With another body behind the same headers, as it was captured where its length is no longer told. */
export function withBody(body: string | Buffer, of: Capture = request()): Capture {
  return { headers: of.headers.filter(([name]) => name !== "Content-Length"), body: Buffer.from(body) };
}

function mapHeaders(change: (header: Header) => readonly Header[], of: Capture = request()): Capture {
  return { ...of, headers: of.headers.flatMap(change) };
}

function renamed(names: Readonly<Record<string, string>>): Capture {
  return mapHeaders(([name, value]) => [[names[name] ?? name, value]]);
}

function mapValue(name: string, change: (value: string) => string, of?: Capture): Capture {
  return mapHeaders(([each, value]) => [[each, each === name ? change(value) : value]], of);
}

const TIMESTAMP = "X-Service-Timestamp";
const SIGNATURE = "X-Service-Signature";
const BASE64_SECRET = Buffer.from(SECRET).toString("base64");
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const OTHER_EVENT = JSON.stringify(fixtures.delivery({ occurredAt: SIGNED_AT + 3_600_000 }));

export interface BrokenRequest {
  readonly name: string;
  readonly capture: Capture;
  readonly causes: readonly CauseCode[];
  readonly proven: boolean;
  readonly secret?: Partial<GivenSecret>;
  readonly circumstances?: Partial<CapturedWith>;
}

const proven = (
  name: string,
  cause: CauseCode,
  capture: Capture,
  more: Partial<BrokenRequest> = {},
): BrokenRequest => ({
  ...{ name, capture, causes: [cause], proven: true },
  ...more,
});
const likely = (name: string, cause: CauseCode, capture: Capture, more: Partial<BrokenRequest> = {}): BrokenRequest =>
  proven(name, cause, capture, { proven: false, ...more });
const holding = (secret: string, more: Partial<GivenSecret> = {}) => ({ secret: { secret, ...more } });

export const BROKEN: readonly BrokenRequest[] = [
  likely(
    "both headers stripped",
    "headers_missing",
    mapHeaders((each) => (/^X-/.test(each[0]) ? [] : [each])),
  ),
  likely(
    "timestamp stripped",
    "timestamp_missing",
    mapHeaders((each) => (each[0] === TIMESTAMP ? [] : [each])),
  ),
  likely(
    "signature stripped",
    "signature_missing",
    mapHeaders((each) => (each[0] === SIGNATURE ? [] : [each])),
  ),
  likely(
    "headers renamed by a proxy",
    "header_renamed",
    renamed({ [TIMESTAMP]: "X-Original-Timestamp", [SIGNATURE]: "X-Original-Signature" }),
  ),
  likely("headers with underscores", "header_renamed", renamed({ [SIGNATURE]: "X_Service_Signature" })),
  likely(
    "headers renamed, and another secret",
    "header_renamed",
    renamed({ [SIGNATURE]: "X-Forwarded-Service-Signature" }),
    holding("another-signing-secret-of-32-byt"),
  ),
  likely("headers swapped", "headers_swapped", renamed({ [TIMESTAMP]: SIGNATURE, [SIGNATURE]: TIMESTAMP })),
  proven(
    "timestamp twice",
    "header_duplicated",
    mapHeaders((each) => (each[0] === TIMESTAMP ? [each, each] : [each])),
  ),
  proven(
    "timestamp joined with itself",
    "header_duplicated",
    mapValue(TIMESTAMP, (text) => `${text}, ${text}`),
  ),
  proven(
    "timestamp in quotes",
    "timestamp_form",
    mapValue(TIMESTAMP, (text) => `"${text}"`),
  ),
  likely(
    "timestamp that is none",
    "timestamp_form",
    mapValue(TIMESTAMP, () => "yesterday"),
  ),
  proven(
    "seconds signed, milliseconds sent",
    "timestamp_unit",
    mapValue(TIMESTAMP, () => `${SIGNED_AT}`, request({ unit: "s" })),
  ),
  proven(
    "milliseconds signed, seconds sent",
    "timestamp_unit",
    mapValue(TIMESTAMP, () => "1760000001", request({ timestamp: 1_760_000_001_000 })),
  ),
  proven("seconds where milliseconds are expected", "timestamp_unit", request({ unit: "s" }), {
    circumstances: { timestampFormat: "ms" },
  }),
  likely("microseconds", "timestamp_unit", request({ timestamp: "1760000001234567" }), { proven: true }),
  proven("signer's clock ahead", "clock_skew", request({ timestamp: AT + 6 * MINUTE_MS }), {
    circumstances: { at: AT },
  }),
  proven("capture from the future", "clock_skew", request({ timestamp: CIRCUMSTANCES.now + 3_600_000 })),
  proven("replayed hours later", "too_old", request(), { circumstances: { at: AT + 3 * 3_600_000 } }),
  likely("replayed hours later, and another secret", "wrong_secret", request(), {
    ...holding("another-signing-secret-of-32-byt"),
    causes: ["wrong_secret", "too_old"],
    circumstances: { at: AT + 3 * 3_600_000 },
  }),
  proven("base64 where hex is expected", "signature_encoding", request({ encoding: "base64" }), {
    circumstances: { encoding: "hex" },
  }),
  likely(
    "base64 of the hex digits",
    "signature_form",
    mapValue(SIGNATURE, (text) => Buffer.from(text).toString("base64")),
  ),
  likely(
    "base64url with padding",
    "signature_form",
    mapValue(SIGNATURE, (text) => `${text}=`, request({ encoding: "base64url", timestamp: SIGNED_AT + 1 })),
  ),
  likely(
    "half a signature",
    "signature_form",
    mapValue(SIGNATURE, (text) => text.slice(0, 32)),
  ),
  likely(
    "signature that is none",
    "signature_form",
    mapValue(SIGNATURE, () => "none"),
  ),
  likely("wrong secret", "wrong_secret", request(), holding("another-signing-secret-of-32-byt")),
  proven(
    "previous secret",
    "previous_secret",
    request(),
    holding("another-signing-secret-of-32-byt", { previous: SECRET }),
  ),
  proven("line break behind our secret", "secret_line_break", request(), holding(`${SECRET}\n`)),
  proven("line break behind the service's secret", "secret_line_break", request({ secret: `${SECRET}\n` })),
  proven("space before our secret", "secret_line_break", request(), holding(` ${SECRET}`)),
  proven("quotes around our secret", "secret_quotes", request(), holding(`"${SECRET}"`)),
  proven("key decoded from base64 by the signer", "secret_encoding", request(), holding(BASE64_SECRET)),
  proven("key decoded from base64 here", "secret_encoding", request({ secret: BASE64_SECRET }), {
    ...holding(BASE64_SECRET, { encoding: "base64" }),
  }),
  proven("secret too short for a receiver", "secret_form", request({ secret: "short" }), holding("short")),
  proven("line break behind the body", "body_line_break", withBody(`${CONTENT}\n`)),
  proven("parsed and written again, for people", "body_reserialised", withBody(pretty())),
  proven(
    "parsed and written again by Python's json.dumps",
    "body_reserialised",
    withBody(CONTENT.replace(/(?<=["\d}\]]),(?=")/g, ", ").replace(/":/g, '": ')),
  ),
  proven("parsed and written again, compactly", "body_reserialised", withBody(CONTENT, request({ body: pretty() }))),
  likely("parsed, changed and laid out", "body_reserialised", withBody(pretty().replace("conv_1", "conv_2"))),
  likely("gzip", "body_compressed", withBody(gzipSync(CONTENT))),
  likely(
    "gzip by its header",
    "body_compressed",
    mapHeaders((each) => [each, ["Content-Encoding", "gzip"]]),
    { proven: true },
  ),
  likely("truncated", "body_truncated", { ...request(), body: Buffer.from(CONTENT).subarray(0, 100) }),
  likely("empty", "body_empty", withBody("")),
  likely("body of another request", "body_of_another_request", withBody(OTHER_EVENT)),
  likely("body of another length", "body_of_another_request", {
    ...request(),
    body: Buffer.from(JSON.stringify(fixtures.inbound())),
  }),
  proven(
    "line break behind a body nested deeper than the stack",
    "body_line_break",
    withBody(`${DEEP}\n`, request({ body: DEEP })),
  ),
];

function pretty(): string {
  return JSON.stringify(JSON.parse(CONTENT), null, 2);
}

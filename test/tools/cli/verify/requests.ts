/** A request as the service sends it, and the ways in which it is broken before somebody looks at it. */
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { signPayload, type WrittenEncoding } from "../../../../src/sources/messaging/sign.ts";
import type { Capture, Header } from "../../../../src/tools/cli/verify/capture.ts";
import type { CauseCode } from "../../../../src/tools/cli/verify/causes.ts";
import type { CapturedWith, GivenSecret } from "../../../../src/tools/cli/verify/steps.ts";
import { fixtures } from "../../../../src/tools/testing/fixtures.ts";

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const AT = 1_760_000_002_000;
const SIGNED_AT = 1_760_000_001_234;

const MINUTE_MS = 60_000;
export const CIRCUMSTANCES: CapturedWith = {
  at: undefined,
  now: AT + 365 * 86_400_000,
  timestampFormat: "auto",
  encoding: "auto",
  tolerance: { past: 90 * MINUTE_MS, future: 5 * MINUTE_MS },
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

function without(names: RegExp): Capture {
  return mapHeaders((header) => (names.test(header[0]) ? [] : [header]));
}

function renamed(names: Readonly<Record<string, string>>): Capture {
  return mapHeaders(([name, value]) => [[names[name] ?? name, value]]);
}

/** Its value written anew; in a text, `$&` stands for what it was. */
function rewritten(name: string, value: string | ((text: string) => string), of?: Capture): Capture {
  const change = (text: string) => (typeof value === "string" ? text.replace(/^.*$/, value) : value(text));
  return mapHeaders(([each, text]) => [[each, each === name ? change(text) : text]], of);
}

const TIMESTAMP = "X-Service-Timestamp";
const SIGNATURE = "X-Service-Signature";
const timestamp = (value: string, of?: Capture) => rewritten(TIMESTAMP, value, of);
const signature = (value: string | ((text: string) => string), of?: Capture) => rewritten(SIGNATURE, value, of);
const inBase64 = (text: string) => Buffer.from(text).toString("base64");
const firstHalf = (text: string) => text.slice(0, 32);
const BASE64_SECRET = inBase64(SECRET);
const OTHER_SECRET = "another-signing-secret-of-32-byt";
/** Nested deeper than the stack. */
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const OTHER_EVENT = JSON.stringify(fixtures.delivery({ occurredAt: SIGNED_AT + 3_600_000 }));
const LATER = AT + 3 * 3_600_000;

export interface BrokenRequest {
  readonly name: string;
  readonly capture: Capture;
  readonly causes: readonly CauseCode[];
  readonly proven: boolean;
  readonly secret?: Partial<GivenSecret>;
  readonly circumstances?: Partial<CapturedWith>;
}

type More = Partial<BrokenRequest>;

const proven = (name: string, cause: CauseCode, capture: Capture, more: More = {}): BrokenRequest => {
  return { name, capture, causes: [cause], proven: true, ...more };
};
const likely = (name: string, cause: CauseCode, capture: Capture, more: More = {}): BrokenRequest => {
  return proven(name, cause, capture, { proven: false, ...more });
};
const holding = (secret: string, more: Partial<GivenSecret> = {}) => ({ secret: { secret, ...more } });
const expecting = (circumstances: Partial<CapturedWith>) => ({ circumstances });

const TWICE = mapHeaders((each) => (each[0] === TIMESTAMP ? [each, each] : [each]));
const OF_A_PROXY = { [TIMESTAMP]: "X-Original-Timestamp", [SIGNATURE]: "X-Original-Signature" };
const OF_ANOTHER = { [SIGNATURE]: "X-Forwarded-Service-Signature" };
const ROUND = request({ timestamp: 1_760_000_001_000 });
const BASE64URL = request({ encoding: "base64url", timestamp: SIGNED_AT + 1 });
const BOTH = { ...holding(OTHER_SECRET), ...expecting({ at: LATER }), causes: ["wrong_secret", "too_old"] } as const;

const HEADERS: readonly BrokenRequest[] = [
  likely("both headers stripped", "headers_missing", without(/^X-/)),
  likely("timestamp stripped", "timestamp_missing", without(/^X-Service-Timestamp/)),
  likely("signature stripped", "signature_missing", without(/^X-Service-Signature/)),
  likely("headers renamed by a proxy", "header_renamed", renamed(OF_A_PROXY)),
  likely("headers with underscores", "header_renamed", renamed({ [SIGNATURE]: "X_Service_Signature" })),
  likely("renamed, and another secret", "header_renamed", renamed(OF_ANOTHER), holding(OTHER_SECRET)),
  likely("headers swapped", "headers_swapped", renamed({ [TIMESTAMP]: SIGNATURE, [SIGNATURE]: TIMESTAMP })),
  proven("timestamp twice", "header_duplicated", TWICE),
  proven("timestamp joined with itself", "header_duplicated", timestamp("$&, $&")),
  proven("timestamp in quotes", "timestamp_form", timestamp('"$&"')),
  likely("timestamp that is none", "timestamp_form", timestamp("yesterday")),
  proven("seconds signed, milliseconds sent", "timestamp_unit", timestamp(`${SIGNED_AT}`, request({ unit: "s" }))),
  proven("milliseconds signed, seconds sent", "timestamp_unit", timestamp("1760000001", ROUND)),
  proven("seconds, not milliseconds", "timestamp_unit", request({ unit: "s" }), expecting({ timestampFormat: "ms" })),
  proven("microseconds", "timestamp_unit", request({ timestamp: "1760000001234567" })),
  proven("signer's clock ahead", "clock_skew", request({ timestamp: AT + 6 * MINUTE_MS }), expecting({ at: AT })),
  proven("capture from the future", "clock_skew", request({ timestamp: CIRCUMSTANCES.now + 3_600_000 })),
  proven("replayed hours later", "too_old", request(), expecting({ at: LATER })),
  likely("replayed hours later, and another secret", "wrong_secret", request(), BOTH),
  proven("base64, not hex", "signature_encoding", request({ encoding: "base64" }), expecting({ encoding: "hex" })),
  likely("base64 of the hex digits", "signature_form", signature(inBase64)),
  likely("base64url with padding", "signature_form", signature("$&=", BASE64URL)),
  likely("half a signature", "signature_form", signature(firstHalf)),
  likely("signature that is none", "signature_form", signature("none")),
];

const WITH_BASE64 = request({ secret: BASE64_SECRET });

const SECRETS: readonly BrokenRequest[] = [
  likely("wrong secret", "wrong_secret", request(), holding(OTHER_SECRET)),
  proven("previous secret", "previous_secret", request(), holding(OTHER_SECRET, { previous: SECRET })),
  proven("line break behind our secret", "secret_line_break", request(), holding(`${SECRET}\n`)),
  proven("line break behind the service's secret", "secret_line_break", request({ secret: `${SECRET}\n` })),
  proven("space before our secret", "secret_line_break", request(), holding(` ${SECRET}`)),
  proven("quotes around our secret", "secret_quotes", request(), holding(`"${SECRET}"`)),
  proven("key decoded from base64 by the signer", "secret_encoding", request(), holding(BASE64_SECRET)),
  proven("key decoded here", "secret_encoding", WITH_BASE64, holding(BASE64_SECRET, { encoding: "base64" })),
  proven("secret too short for a receiver", "secret_form", request({ secret: "short" }), holding("short")),
];

/** As Python's json.dumps writes it. */
const SPACED = CONTENT.replace(/(?<=["\d}\]]),(?=")/g, ", ").replace(/":/g, '": ');
const PRETTY = JSON.stringify(JSON.parse(CONTENT), null, 2);
const INBOUND = Buffer.from(JSON.stringify(fixtures.inbound()));

const CALLED_GZIP = mapHeaders((each) => [each, ["Content-Encoding", "gzip"]]);

const BODIES: readonly BrokenRequest[] = [
  proven("line break behind the body", "body_line_break", withBody(`${CONTENT}\n`)),
  proven("parsed and written again, for people", "body_reserialised", withBody(PRETTY)),
  proven("parsed and written again by Python", "body_reserialised", withBody(SPACED)),
  proven("parsed and written again, compactly", "body_reserialised", withBody(CONTENT, request({ body: PRETTY }))),
  likely("parsed, changed and laid out", "body_reserialised", withBody(PRETTY.replace("conv_1", "conv_2"))),
  likely("gzip", "body_compressed", withBody(gzipSync(CONTENT))),
  proven("gzip by its header", "body_compressed", CALLED_GZIP),
  likely("truncated", "body_truncated", { ...request(), body: Buffer.from(CONTENT).subarray(0, 100) }),
  likely("empty", "body_empty", withBody("")),
  likely("body of another request", "body_of_another_request", withBody(OTHER_EVENT)),
  likely("body of another length", "body_of_another_request", { ...request(), body: INBOUND }),
  proven("line break behind a deep body", "body_line_break", withBody(`${DEEP}\n`, request({ body: DEEP }))),
];

export const BROKEN: readonly BrokenRequest[] = [...HEADERS, ...SECRETS, ...BODIES];

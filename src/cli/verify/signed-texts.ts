/** What signers put before and behind the body, and the timestamps they may mean. */
import { Buffer } from "node:buffer";
import type { HmacKey } from "../../signature/keyring.ts";
import type { Change } from "./change.ts";

/** A text made of timestamp and body: all known ones are a text before the body, and one behind it. */
export interface SignedText {
  before(timestamp: string): string;
  after(timestamp: string): string;
}

/** Digests the text under a key. With nothing behind the body, as a receiver does. */
export function digestOf(key: HmacKey, text: SignedText, signed: { timestamp: string; body: Buffer }): Buffer {
  const after = text.after(signed.timestamp);
  return key.digest(
    text.before(signed.timestamp),
    after === "" ? signed.body : Buffer.concat([signed.body, Buffer.from(after)]),
  );
}

/** First the specification's (DLV-5). @param id of a scheme that signs the delivery's id too; undefined for none */
export function signedTexts(id: string | undefined): readonly Change<SignedText>[] {
  const others: Change<SignedText>[] = [
    foreign("<body>", () => ""),
    foreign("<timestamp><body>", (timestamp) => timestamp),
    foreign("<timestamp>:<body>", (timestamp) => `${timestamp}:`),
    foreign("<timestamp>,<body>", (timestamp) => `${timestamp},`),
    foreign("<timestamp>|<body>", (timestamp) => `${timestamp}|`),
    foreign("<timestamp>_<body>", (timestamp) => `${timestamp}_`),
    foreign("<timestamp>-<body>", (timestamp) => `${timestamp}-`),
    foreign("<timestamp> <body>", (timestamp) => `${timestamp} `),
    foreign("<timestamp>, a line break, <body>", (timestamp) => `${timestamp}\n`),
    foreign("v0:<timestamp>:<body>", (timestamp) => `v0:${timestamp}:`),
    foreign("v1:<timestamp>:<body>", (timestamp) => `v1:${timestamp}:`),
    behind("<body><timestamp>", (timestamp) => timestamp),
    behind("<body>.<timestamp>", (timestamp) => `.${timestamp}`),
    behind("<body>:<timestamp>", (timestamp) => `:${timestamp}`),
  ];
  const withId = id === undefined ? [] : [foreign("<id>.<timestamp>.<body>", (timestamp) => `${id}.${timestamp}.`)];
  const own = { before: (timestamp: string) => `${timestamp}.`, after: () => "" };
  return [{ value: own, cause: null, told: "<timestamp>.<body>" }, ...withId, ...others];
}

function foreign(told: string, before: (timestamp: string) => string): Change<SignedText> {
  return { value: { before, after: () => "" }, cause: "signed_text", told };
}

function behind(told: string, after: (timestamp: string) => string): Change<SignedText> {
  return { value: { before: () => "", after }, cause: "signed_text", told };
}

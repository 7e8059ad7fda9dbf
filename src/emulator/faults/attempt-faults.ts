/** What goes wrong with one attempt: before it is signed, and after. An unsigned attempt has no signature to spoil. */
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/headers.ts";
import type { Signing } from "../delivery/signature.ts";
import type { Outgoing } from "../delivery/transport.ts";
import type { AttemptAction } from "./actions.ts";

/** Signed as it should be, but of another time, with another secret, or over bytes that are no UTF-8. */
export function beforeSigning(signing: Signing, actions: readonly AttemptAction[]): Signing {
  return actions.reduce(spoilSigning, signing);
}

function spoilSigning(signing: Signing, action: AttemptAction): Signing {
  const { body, timestamp, secrets } = signing;
  switch (action.type) {
    case "invalidUtf8":
      return { ...signing, body: withInvalidUtf8(body) };
    case "wrongSecret":
      return { ...signing, secrets: secrets.map((secret) => `not ${secret}`) };
    case "staleTimestamp":
      return { ...signing, timestamp: Math.max(0, timestamp - action.ms) };
    case "futureTimestamp":
      return { ...signing, timestamp: timestamp + action.ms };
    default:
      return signing;
  }
}

/** Signed as it should be, and spoilt on its way. */
export function afterSigning(outgoing: Outgoing, actions: readonly AttemptAction[]): Outgoing {
  return actions.reduce(spoilOutgoing, outgoing);
}

function spoilOutgoing(outgoing: Outgoing, action: AttemptAction): Outgoing {
  const { headers } = outgoing;
  switch (action.type) {
    case "corruptBody":
      return { ...outgoing, body: withFlippedBit(outgoing.body) };
    case "badSignature":
      return { ...outgoing, headers: withBadSignature(headers) };
    case "missingHeader":
      return {
        ...outgoing,
        headers: without(headers, [action.header === "timestamp" ? TIMESTAMP_HEADER : SIGNATURE_HEADER]),
      };
    case "unsigned":
      return { ...outgoing, headers: without(headers, [TIMESTAMP_HEADER, SIGNATURE_HEADER]) };
    case "dribble":
      return { ...outgoing, dribbleMs: action.ms };
    case "contentType":
      return { ...outgoing, headers: { ...headers, "content-type": action.value } };
    default:
      return outgoing;
  }
}

/** A byte that UTF-8 does not have, inside the last text: lenient decoders still find JSON there. */
function withInvalidUtf8(body: Buffer): Buffer {
  const end = Math.max(0, body.lastIndexOf('"'));
  return Buffer.concat([body.subarray(0, end), Buffer.of(0xff), body.subarray(end)]);
}

function withFlippedBit(body: Buffer): Buffer {
  const middle = body.length >> 1;
  return Buffer.concat([body.subarray(0, middle), Buffer.of((body[middle] ?? 0) ^ 1), body.subarray(middle + 1)]);
}

/** Signatures of the right form, each with another first character; so none of two is good. */
function withBadSignature(headers: Outgoing["headers"]): Outgoing["headers"] {
  const signature = headers[SIGNATURE_HEADER];
  if (signature === undefined) return headers;
  const spoilt = signature.replace(/(^|, )((?:sha256|v1)=)?(.)/g, (_, separator, prefix = "", first) => {
    return `${separator}${prefix}${first === "0" ? "1" : "0"}`;
  });
  return { ...headers, [SIGNATURE_HEADER]: spoilt };
}

function without(headers: Outgoing["headers"], names: readonly string[]): Outgoing["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}

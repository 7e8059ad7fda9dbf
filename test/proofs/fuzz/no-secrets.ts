/** Secrets that are none, as when an environment variable is not set: whoever sets one up is told, or anybody could sign with it. */
import { createHmac } from "node:crypto";
import { createReceiver, type ReceiverOptions, SetupError } from "../../../src/index.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../src/sources/messaging/sign.ts";
import { verifySignature } from "../../../src/sources/messaging/verify-signature.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { NOW, SECRET } from "./signed.ts";

const GOOD = SECRET;
const UNTIL = NOW + 3_600_000;
const BODY = '{"eventType":"message.sent"}';

const EMPTY: readonly (readonly [what: string, secrets: unknown])[] = [
  ["none at all", undefined],
  ["null", null],
  ["an empty text", ""],
  ["an empty text, with its encoding", { secret: "", encoding: "utf8" }],
  ["an empty text in base64", { secret: "", encoding: "base64" }],
  ["an empty text in hex", { secret: "", encoding: "hex" }],
  ["an empty current secret", { current: "" }],
  ["an empty list", { current: [] }],
  ["an empty text in a list", { current: [GOOD, ""] }],
  ["an empty previous secret", { current: GOOD, previous: { secret: "", validUntil: UNTIL } }],
  ["an empty next secret", { current: GOOD, next: "" }],
  ["an empty secret of one kind", { inbound: GOOD, delivery: "" }],
];

export interface NoSecretsOutcome {
  readonly cases: number;
  readonly problems: readonly string[];
}

/** Each is given to both that take secrets; a request that is signed with nothing may never pass. */
export function refuseNoSecrets(): NoSecretsOutcome {
  const problems = EMPTY.flatMap(([what, secrets]) => [...byVerifier(what, secrets), ...byReceiver(what, secrets)]);
  return { cases: 2 * EMPTY.length, problems };
}

function byVerifier(what: string, secrets: unknown): string[] {
  const timestamp = `${NOW}`;
  const signature = createHmac("sha256", "").update(`${timestamp}.${BODY}`).digest("hex");
  const headers = { [TIMESTAMP_HEADER]: timestamp, [SIGNATURE_HEADER]: signature };
  return refusalOf(`${what}, to the verifier`, () => {
    const { ok } = verifySignature({ headers, body: BODY, secrets: secrets as string, now: NOW });
    return ok ? "a request that is signed with nothing passes" : "no request passes, and nobody is told why";
  });
}

function byReceiver(what: string, secrets: unknown): string[] {
  const options = { secrets, store: memoryStore({ volatile: true }) } as ReceiverOptions<never>;
  return refusalOf(`${what}, to a receiver`, () => {
    createReceiver(options);
    return "it is made";
  });
}

/** Empty when `use` throws as it should. */
function refusalOf(what: string, use: () => string): string[] {
  try {
    return [`for a secret there is ${what}: ${use()}`];
  } catch (error) {
    if (error instanceof SetupError) return [];
    return [`for a secret there is ${what}: it threw ${String(error)}`];
  }
}

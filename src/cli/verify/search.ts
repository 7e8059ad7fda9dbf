/**
 * Looks for the way in which a request was signed: the one that differs least from what a receiver expects. Each difference
 * has a name, so that what is found says what went wrong.
 */
import type { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { HmacKey } from "../../signature/keyring.ts";
import { bodyChanges } from "./bodies.ts";
import { type Capture, declaredLength } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import type { Change } from "./change.ts";
import { type GivenSecret, type KeyGuess, keyChanges } from "./keys.ts";
import { type SignatureText, type Spelling, signatureChanges, spellingOf } from "./signatures.ts";
import { digestOf, type SignedText, signedTexts } from "./signed-texts.ts";
import { timestampChanges } from "./stamps.ts";

/** A way to sign. */
interface Way {
  readonly key: Change<KeyGuess>;
  readonly body: Change<Buffer>;
  readonly timestamp: Change<string>;
  readonly text: Change<SignedText>;
  readonly algorithm: Change<Algorithm>;
}

/** A way that made a signature of the request. */
export interface Finding extends Way {
  readonly signature: Change<SignatureText>;
  readonly spelling: Spelling;
}

type Algorithm = "sha256" | "sha1" | "sha384" | "sha512";

type Space = { readonly [Name in keyof Way]: readonly Way[Name][] } & { readonly signature: Finding["signature"][] };

const ALGORITHMS: readonly Change<Algorithm>[] = [
  { value: "sha256", cause: null, told: "SHA-256" },
  { value: "sha1", cause: "algorithm", told: "SHA-1" },
  { value: "sha384", cause: "algorithm", told: "SHA-384" },
  { value: "sha512", cause: "algorithm", told: "SHA-512" },
];

/**
 * @param most how many differences to allow at once
 * @throws SetupError for a secret that is not of its encoding
 */
export function search(capture: Capture, secret: GivenSecret, most: number): Finding | null {
  const space = spaceOf(capture, secret);
  const keys = new Map(space.key.map(({ value }) => [value, new HmacKey(value.bytes)]));
  for (let differences = 0; differences <= most; differences++) {
    for (const way of waysOf(space, differences)) {
      const found = comparison(digest(way, keys), space.signature);
      if (found !== null) return { ...way, ...found };
    }
  }
  return null;
}

/** What differs from what a receiver expects, each once; empty for a request that is right. */
export function differencesOf(finding: Finding): readonly CauseCode[] {
  const { timestamp, signature, spelling, key, body, text, algorithm } = finding;
  const causes = [timestamp, signature, spelling, key, body, text, algorithm].map(({ cause }) => cause);
  return [...new Set(causes.filter((cause) => cause !== null))];
}

function spaceOf(capture: Capture, secret: GivenSecret): Space {
  const { headers, body } = capture;
  const id = headers.find(([name]) => /(?:webhook|svix|message|event|request)-id$/i.test(name))?.[1];
  return {
    key: keyChanges(secret),
    body: bodyChanges(body, declaredLength(headers)),
    timestamp: timestampChanges(headers),
    text: signedTexts(id),
    algorithm: ALGORITHMS,
    signature: [...signatureChanges(headers)],
  };
}

/** All ways with exactly so many differences. */
function* waysOf(space: Space, differences: number): Generator<Way> {
  for (const [key, a] of within(space.key, differences))
    for (const [body, b] of within(space.body, a))
      for (const [timestamp, c] of within(space.timestamp, b))
        for (const [text, d] of within(space.text, c))
          for (const [algorithm, left] of within(space.algorithm, d))
            if (left === 0) yield { key, body, timestamp, text, algorithm };
}

/** The changes that may still be made, each with how many may be made after it. */
function* within<T>(changes: readonly Change<T>[], left: number): Generator<[Change<T>, number]> {
  for (const change of changes) {
    const after = change.cause === null ? left : left - 1;
    if (after >= 0) yield [change, after];
  }
}

function digest({ key, body, timestamp, text, algorithm }: Way, keys: ReadonlyMap<KeyGuess, HmacKey>): Buffer {
  const signed = { timestamp: timestamp.value, body: body.value };
  const hmac = keys.get(key.value);
  // The receiver's own; other algorithms are never a receiver's.
  if (algorithm.value === "sha256" && hmac !== undefined) return digestOf(hmac, text.value, signed);
  return createHmac(algorithm.value, key.value.bytes)
    .update(text.value.before(signed.timestamp))
    .update(signed.body)
    .update(text.value.after(signed.timestamp))
    .digest();
}

function comparison(digest: Buffer, texts: Space["signature"]): Pick<Finding, "signature" | "spelling"> | null {
  for (const signature of texts) {
    const spelling = spellingOf(digest, signature.value);
    if (spelling !== null) return { signature, spelling };
  }
  return null;
}

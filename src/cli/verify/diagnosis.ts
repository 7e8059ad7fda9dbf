/** What is wrong with a captured request: the receiver's checks one by one, and the likeliest cause of what failed. */
import { SetupError } from "../../errors.ts";
import { type CompiledKeyring, compileKeyring } from "../../signature/keyring.ts";
import { checkHeaders, matchSignature, type VerifyFailureCode } from "../../signature/verify.ts";
import { type Capture, headerRecord } from "./capture.ts";
import { type Cause, causeOf } from "./causes.ts";
import type { GivenSecret } from "./keys.ts";
import { differencesOf, type Finding, search } from "./search.ts";
import {
  ageStep,
  type Circumstances,
  headersStep,
  type Step,
  secretStep,
  signatureFormStep,
  timestampStep,
} from "./steps.ts";
import { bodyStep } from "./suspicions.ts";

export interface Diagnosis {
  /** A receiver with this secret takes it. */
  readonly verified: boolean;
  /** As a receiver logs it; null when no check of headers and signature failed. */
  readonly code: VerifyFailureCode | null;
  readonly steps: readonly Omit<Step, "cause">[];
  /** Empty when it is verified. */
  readonly causes: readonly Cause[];
}

/** Most differences at once that a fault on the way makes. */
const MOST = 2;

/** @throws SetupError for a secret that is not of its encoding */
export function diagnose(capture: Capture, secret: GivenSecret, circumstances: Circumstances): Diagnosis {
  const { headers } = capture;
  const { keyring, problem } = keyringOf(secret, circumstances.now);
  const { code, isSigned } = verdict(capture, keyring, circumstances);
  const steps = [
    headersStep(headers),
    timestampStep(headers, circumstances),
    ageStep(headers, circumstances),
    signatureFormStep(headers, circumstances),
    secretStep(secret, problem),
    bodyStep(capture, isSigned),
    signatureStep(isSigned),
  ];
  const failed = steps.filter(({ ok }) => ok === false);
  const verified = isSigned === true && failed.length === 0;
  const causes = verified ? [] : causesOf(search(capture, secret, MOST), failed);
  // One place says what it comes from: a check by itself knows less than all of them.
  return { verified, code, steps: steps.map(({ name, ok, text }) => ({ name, ok, text })), causes };
}

interface Verdict {
  readonly code: VerifyFailureCode | null;
  /** Null when it cannot be told. */
  readonly isSigned: boolean | null;
}

/** The receiver's own rule. The signature is looked at whatever the age: most captures are old. */
function verdict(capture: Capture, keyring: CompiledKeyring | null, circumstances: Circumstances): Verdict {
  const { at, now, tolerance } = circumstances;
  const headers = headerRecord(capture.headers);
  const past = { ...circumstances, tolerance: { ...tolerance, pastMs: Number.POSITIVE_INFINITY } };
  const inTime = checkHeaders(headers, at === undefined ? past : circumstances, at ?? now);
  const ageless = { pastMs: Number.POSITIVE_INFINITY, futureMs: Number.POSITIVE_INFINITY };
  const checked = checkHeaders(headers, { ...circumstances, tolerance: ageless }, now);
  const isComparable = checked.ok && keyring !== null;
  const isSigned = isComparable ? matchSignature(checked, capture.body, keyring, now) !== null : null;
  if (!inTime.ok) return { code: inTime.code, isSigned };
  return { code: isSigned === false ? "signature_mismatch" : null, isSigned };
}

/** The keyring of a receiver with this secret; without one, why a receiver would refuse it. */
function keyringOf({ secret, encoding }: GivenSecret, now: number) {
  try {
    return { keyring: compileKeyring({ secret, encoding }, now), problem: null };
  } catch (error) {
    if (error instanceof SetupError) return { keyring: null, problem: error.message };
    throw error;
  }
}

function signatureStep(isSigned: boolean | null): Step {
  const name = "signature";
  if (isSigned === null) return { name, ok: null, text: "not compared, for what it needs is missing or malformed" };
  if (isSigned) return { name, ok: true, text: "made with this secret, of <timestamp>.<body>" };
  return { name, ok: false, text: "not made with this secret, of <timestamp>.<body>", cause: "wrong_secret" };
}

/** What a way to sign was found with is proven; without one the first check that failed has to say it. */
function causesOf(finding: Finding | null, failed: readonly Step[]): readonly Cause[] {
  const suspected = failed.flatMap(({ name, cause }) => (cause === undefined ? [] : { name, cause }));
  const ofAge = suspected.filter(({ name }) => name === "age");
  const others = suspected.filter(({ name }) => name !== "age");
  const proven = finding === null ? [] : differencesOf(finding);
  // Made as a receiver expects it, so that only how this one is set up can be what refuses it.
  const isRight = finding !== null && proven.length === 0;
  const first = isRight ? others : proven.length > 0 ? [] : others.slice(0, 1);
  return [
    ...proven.map((code) => causeOf(code, true)),
    ...first.map(({ cause }) => causeOf(cause, isRight)),
    ...ofAge.map(({ cause }) => causeOf(cause, finding !== null)),
  ];
}

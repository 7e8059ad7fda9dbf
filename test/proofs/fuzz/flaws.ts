/** Receivers with a fault each: what does not see them could not see it in ours. */
import { createHmac } from "node:crypto";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../src/sources/messaging/sign.ts";
import { verifySignature } from "../../../src/sources/messaging/verify-signature.ts";
import type { Case } from "./case.ts";
import { SECRET } from "./signed.ts";

/** Whether it takes the request. */
export type Verify = (request: Case) => boolean;

export const verifyOurs: Verify = ({ headers, body, now, timestampFormat = "auto" }) =>
  verifySignature({ headers, body, secrets: SECRET, now, timestampFormat }).ok;

const kept: Buffer[] = [];

/** What is found in each of them; all else they do as ours does. */
export const FLAWS = {
  "compares a beginning only": {
    expect: "accepted",
    verify: (request: Case) => verifyOurs(isRight(request, 16) ? mended(request) : request),
  },
  "parses first and signs what it writes again": {
    expect: "accepted",
    verify: (request: Case) => verifyOurs({ ...request, body: Buffer.from(written(request.body)) }),
  },
  "does not look at the timestamp": {
    expect: "accepted",
    verify: (request: Case) => verifyOurs({ ...request, now: Number(one(request, TIMESTAMP_HEADER)) || request.now }),
  },
  "signs the decoded text": {
    expect: "accepted",
    verify: (request: Case) => verifyOurs({ ...request, body: Buffer.from(new TextDecoder().decode(request.body)) }),
  },
  "reads base64 leniently": {
    expect: "accepted",
    verify: (request: Case) => verifyOurs(isRight(request, 32) ? mended(request) : request),
  },
  "refuses rightly signed ones": {
    expect: "refused",
    verify: (request: Case) => verifyOurs(request) && request.body.length !== 0,
  },
  throws: {
    expect: "threw",
    verify: (request: Case) => {
      if (request.headers[SIGNATURE_HEADER] === undefined) throw new TypeError("There is no signature.");
      return verifyOurs(request);
    },
  },
  "takes long": {
    expect: "took",
    verify: (request: Case) => {
      const before = process.cpuUsage();
      while (one(request, TIMESTAMP_HEADER).includes("e+") && process.cpuUsage(before).user < 60_000)
        verifyOurs(request);
      return verifyOurs(request);
    },
  },
  "keeps what it was sent": {
    expect: "heap",
    verify: (request: Case) => {
      kept.push(Buffer.concat([request.body], 2_000));
      return verifyOurs(request);
    },
  },
} as const satisfies Readonly<Record<string, { readonly expect: string; readonly verify: Verify }>>;

export type Flaw = keyof typeof FLAWS;

function one({ headers }: Case, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}

/** Whether the first bytes of the signature are those of the right one, read with a lenient eye. */
function isRight(request: Case, count: number): boolean {
  const text = one(request, SIGNATURE_HEADER).replace(/^(?:sha256|v1)=/, "");
  const given = Buffer.from(text, text.length === 64 ? "hex" : "base64");
  return given.length === 32 && given.subarray(0, count).equals(rightSignature(request).subarray(0, count));
}

function mended(request: Case): Case {
  return { ...request, headers: { ...request.headers, [SIGNATURE_HEADER]: rightSignature(request).toString("hex") } };
}

function rightSignature(request: Case): Buffer {
  return createHmac("sha256", SECRET)
    .update(`${one(request, TIMESTAMP_HEADER)}.`)
    .update(request.body)
    .digest();
}

function written(body: Buffer): string {
  try {
    return JSON.stringify(JSON.parse(body.toString()));
  } catch {
    return body.toString("latin1");
  }
}

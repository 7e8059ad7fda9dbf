/** What jsfuzz calls with each input, which it makes from those that reached new code: it is taken for every part of a request. */
import { writeFileSync } from "node:fs";
import { eventIdentity, parseEvent } from "../../../src/sources/messaging/parse.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../src/sources/messaging/sign.ts";
import type { Case } from "./case.ts";
import { verifyOurs } from "./flaws.ts";
import { headersOf, Ledger, NOW, type Signed, signedAt, signedPool } from "./signed.ts";
import { heapMib, Watch } from "./watch.ts";

const INPUTS = Number(process.env.FUZZ_INPUTS ?? 0);
const OUTCOME = process.env.FUZZ_OUTCOME ?? "outcome.json";

const watch = new Watch();
const pool = signedPool();
const ledger = new Ledger(pool);
let inputs = 0;
let before = 0;

/** jsfuzz goes on for ever; this ends its process when it is enough. */
export function fuzz(input: Buffer): void {
  if (inputs === Math.floor(INPUTS / 5)) before = heapMib();
  const name = `guided input ${input.toString("hex", 0, 2_000)}`;
  const signed = pool[inputs % pool.length];
  if (signed === undefined) throw new Error("Nothing is signed.");
  signedBody(name, input);
  for (const request of requestsOf(input, signed)) judge(name, request);
  inputs += 1;
  if (inputs < INPUTS) return;
  watch.grew("guided inputs", before);
  const { cases, slowestMs, growthMib, problems } = watch;
  writeFileSync(OUTCOME, JSON.stringify({ cases, slowestMs, growthMib, problems }));
  process.exit(0);
}

/** Rightly signed, it is taken; what it is then is an event or is none, without a throw. */
function signedBody(name: string, body: Buffer): void {
  watch.count("signed");
  const request: Case = { kind: "signed", headers: headersOf(signedAt(body, NOW)), body, now: NOW, due: "accepted" };
  if (watch.run(name, () => verifyOurs(request)) !== true)
    watch.found(`${name} was refused, though it is rightly signed`);
  watch.run(name, () => {
    const result = parseEvent(body);
    if (result.ok) eventIdentity(result.event, body);
  });
}

function requestsOf(input: Buffer, signed: Signed): Pick<Case, "headers" | "body">[] {
  const { body } = signed;
  const text = input.toString("latin1");
  const cut = Math.max(0, text.indexOf("\n"));
  const parts = [text.slice(0, cut), text.slice(cut + 1)] as const;
  const timestamps = [text, input.toString(), signed.timestamp + text, text + signed.timestamp, parts[0]];
  const { signature } = signed;
  const signatures = [
    ...[text, input.toString(), `${signature}${text}`, `${text}${signature}`, `sha256=${text}`, `v1,${text}`],
    ...[`${signature},${text}`, `${text} ${signature}`, `${signature.slice(0, 32)}${text}`],
  ];
  const bodies = [input, Buffer.concat([body, input]), Buffer.concat([input, body])];
  return [
    ...timestamps.map((timestamp) => ({ headers: headersOf({ ...signed, timestamp }), body })),
    ...signatures.map((signature) => ({ headers: headersOf({ ...signed, signature }), body })),
    ...bodies.map((each) => ({ headers: headersOf(signed), body: each })),
    { headers: { [TIMESTAMP_HEADER]: [signed.timestamp, text], [SIGNATURE_HEADER]: signed.signature }, body },
    { headers: headersOf({ timestamp: parts[0], signature: parts[1] }), body: input },
  ];
}

function judge(name: string, part: Pick<Case, "headers" | "body">): void {
  watch.count("guided");
  const request: Case = { ...part, kind: "guided", now: NOW, due: "unless signed" };
  const isTaken = watch.run(name, () => verifyOurs(request));
  if (isTaken === true && !ledger.hasSigned(request)) watch.found(`${name} was accepted, and nobody signed it`);
}

/** The matrix in short: two readings with few messages, and what it says of receivers with a flaw. All of it: `npm run prove -- e2e --full`. */
import { describe, expect, it } from "vitest";
import { shortcomings } from "../e2e.ts";
import type { Verdict } from "../ledger.ts";
import { ALL_READINGS, nameOf, type Reading, SOME_READINGS } from "./readings.ts";
import { run } from "./run.ts";

const NOTHING: Verdict = { lost: [], twice: [], outOfOrder: [], unverified: [] };
const PLAIN: Reading = {
  overlapSigning: "current",
  retrySignature: "fresh",
  signatureEncoding: "hex",
  timestampUnit: "ms",
};
const HARD: readonly Reading[] = [
  { overlapSigning: "previous", retrySignature: "frozen", signatureEncoding: "base64url", timestampUnit: "s" },
  { overlapSigning: "alternate", retrySignature: "frozen", signatureEncoding: "v1=hex", timestampUnit: "ms" },
];

describe("client, service and receiver over three rotations, two absences and faults", { tags: "full" }, () => {
  it.each(HARD.map((reading) => [nameOf(reading), reading] as const))(
    "lose nothing, handle nothing twice, in order, with nothing unverified: %s (DLV-6, DLV-8, DLV-10, DLV-16, DLV-17, RCV-6, RCV-7, RCV-8, RCV-9)",
    async (_, reading) => {
      const outcome = await run({ reading, messages: 48 });
      expect(outcome).toMatchObject(NOTHING);
      expect(shortcomings(outcome)).toEqual([]);
    },
  );

  it("are found out when they lose, repeat, reorder, or learn of a secret too late", async () => {
    const { lost, twice, outOfOrder, unverified } = await run({
      reading: PLAIN,
      messages: 16,
      flaws: ["answered_and_dropped", "history_apart", "no_waiting", "secret_after_the_service"],
    });
    for (const found of [lost, twice, outOfOrder, unverified]) expect(found.length).toBeGreaterThan(0);
  });
});

describe("the matrix", () => {
  it("has 96 readings, all different", () => {
    expect(new Set(ALL_READINGS.map(nameOf)).size).toBe(96);
  });

  it("has every value of each in its short form, and each way of signing an overlap with each of a retry", () => {
    const values = (readings: readonly Reading[]) => new Set(readings.flatMap((reading) => Object.values(reading)));
    expect(values(SOME_READINGS)).toEqual(values(ALL_READINGS));
    const pairs = SOME_READINGS.map(({ overlapSigning, retrySignature }) => `${overlapSigning} ${retrySignature}`);
    expect(new Set(pairs).size).toBe(8);
    expect(new Set(SOME_READINGS.map(nameOf)).size).toBe(12);
  });

  it("calls a run without faults and rotations no proof", () => {
    const idle = { ...NOTHING, messages: 10, events: 0, inbound: 0, attempts: 0, failedAttempts: 0, rotations: 0 };
    for (const reading of HARD) expect(shortcomings({ ...idle, reading, signedOtherwise: 0 })).toHaveLength(5);
    expect(shortcomings({ ...idle, reading: PLAIN, signedOtherwise: 0 })).toHaveLength(4);
  });
});

/** Rotations under load in short: a few messages. `npm run prove -- rotations --full` rotates 50 times under 200 events/s. */
import { describe, expect, it } from "vitest";
import { problemsOf } from "../proofs/rotations.ts";
import { rotateUnderLoad } from "../proofs/rotations-trial.ts";

const EVENTS_PER_SECOND = 24;

describe("rotateSecret(), under load", { tags: "full" }, () => {
  it.each([
    { overlapSigning: "alternate", retrySignature: "frozen" },
    { overlapSigning: "current", retrySignature: "fresh" },
  ] as const)(
    "has no delivery refused and no event lost: %j (WHK-19, DLV-16, DLV-17, RCV-6, RCV-7, RCV-9)",
    async (signing) => {
      const trial = { signing, rotations: 2, eventsPerSecond: EVENTS_PER_SECOND };
      const outcome = await rotateUnderLoad(trial);
      expect(problemsOf(outcome, trial)).toEqual([]);
      expect(outcome.events).toBeGreaterThan(150);
    },
  );

  it("would see a receiver that got the secret after the service (WHK-11, RCV-2)", async () => {
    const signing = { overlapSigning: "current", retrySignature: "fresh" } as const;
    const careless = { signing, rotations: 1, eventsPerSecond: EVENTS_PER_SECOND, isCareless: true };
    expect((await rotateUnderLoad(careless)).unauthorized).toBeGreaterThan(0);
  });
});

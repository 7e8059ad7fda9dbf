import { describe, expect, inject, it } from "vitest";
import { FLAWLESS } from "./concurrency-family.ts";
import { runConcurrently } from "./concurrency-run.ts";

const SEED = Number(process.env.CONCURRENCY_SEED ?? 20_261_120);

describe("three processes on one Postgres inbox", () => {
  it("handle every event once in effect and in order, while deliveries repeat, handlers fail and pruning runs (I1, I3, I4, I5, I10)", {
    timeout: 60_000,
  }, async () => {
    const terms = { url: inject("postgresUrl"), processes: 3, messages: 100, seed: SEED, timeoutMs: 30_000 };
    const report = await runConcurrently(terms);
    console.log(` three processes on Postgres: ${JSON.stringify(report)}`);
    const { verdict, sent, answers, handled, duplicates, oldLeft, byProcess } = report;
    expect(verdict).toEqual(FLAWLESS);
    expect(answers.accepted + answers.late).toBe(sent);
    expect(handled).toBe(sent);
    expect(duplicates).toBe(answers.duplicate);
    expect(oldLeft).toBe(0);
    expect(byProcess).toHaveLength(3);
  });
});

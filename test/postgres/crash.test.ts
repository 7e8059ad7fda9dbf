import { describe, expect, it } from "vitest";
import { FLAWLESS } from "./concurrency-family.ts";
import { surviveCrashes } from "./crash-run.ts";
import { startPostgres } from "./server.ts";

const SEED = Number(process.env.CRASH_SEED ?? 20_261_120);

describe("processes on a Postgres inbox that are killed", () => {
  it("lose nothing acknowledged and repeat no effect over 4 SIGKILLs and an immediate restart of the server (I2, I3, I4, I5, RCV-3)", {
    timeout: 90_000,
  }, async () => {
    const server = await startPostgres();
    try {
      const terms = { server, kills: 4, restarts: 1, seed: SEED, timeoutMs: 40_000, say: () => {} };
      const report = await surviveCrashes(terms);
      console.log(` crashes on Postgres: ${JSON.stringify(report)}`);
      expect(report).toMatchObject({ lost: 0, strange: [], verdict: FLAWLESS });
      expect(report.acknowledged).toBeGreaterThan(50);
      // Otherwise no blow hit anything.
      expect(report.unanswered + report.refused).toBeGreaterThan(0);
    } finally {
      await server.stop();
    }
  });
});

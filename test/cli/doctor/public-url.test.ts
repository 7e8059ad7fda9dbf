/** What `oncehook doctor` says of an address that cannot be asked. */
import { expect, it } from "vitest";
import { urlFindings } from "../../../src/cli/doctor/service.ts";
import { systemClock } from "../../../src/internal/clock.ts";

it("says of a port that fetch refuses what is wrong with it", async () => {
  const findings = await urlFindings("http://127.0.0.1:6000/", { clock: systemClock, fetch, isLocal: true });
  expect(JSON.stringify(findings)).toContain("cannot be reached: fetch connects to no such port");
});

/** What `oncehook verify` says of requests that are broken in known ways. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CAUSES, type CauseCode } from "../../../../src/tools/cli/verify/causes.ts";
import { diagnose } from "../../../../src/tools/cli/verify/diagnosis.ts";
import { AT, BROKEN, CIRCUMSTANCES, request, SECRET } from "./requests.ts";

const GIVEN = { secret: SECRET, encoding: "utf8" } as const;

describe("diagnose()", () => {
  it.each(["hex", "HEX", "base64", "base64url", "sha256=hex", "v1=hex"] as const)("verifies %s", (encoding) => {
    const { verified, code, causes, steps } = diagnose(request({ encoding }), GIVEN, { ...CIRCUMSTANCES, at: AT });
    expect({ verified, code, causes }).toEqual({ verified: true, code: null, causes: [] });
    expect(steps.map(({ ok }) => ok)).toEqual(Array(7).fill(true));
  });

  it("does not judge the age of a capture without its time of arrival, and says so", () => {
    const { verified, steps } = diagnose(request(), GIVEN, CIRCUMSTANCES);
    expect([verified, steps.find(({ name }) => name === "age")]).toEqual([
      true,
      { name: "age", ok: null, text: "not judged: signed 365 d before now; --at TIME says when it arrived" },
    ]);
  });

  it.each(BROKEN)("names the cause, and no secret, of: $name", ({ capture, secret, circumstances, causes, proven }) => {
    const given = { ...GIVEN, ...secret };
    const found = diagnose(capture, given, { ...CIRCUMSTANCES, ...circumstances });
    expect(found.verified).toBe(false);
    expect(found.causes.map(({ code }) => code)).toEqual(causes);
    expect(found.causes[0]?.proven).toBe(proven);
    const told = JSON.stringify(found);
    const signature = capture.headers.find(([name]) => /signature/i.test(name))?.[1] ?? "none";
    for (const untold of [given.secret.trim(), signature, "Grüße", "+1415"])
      if (untold.length >= 5 && untold !== "short") expect(told).not.toContain(untold);
  });

  it("has every cause shown by a broken request", () => {
    const shown = new Set<CauseCode>(BROKEN.flatMap(({ causes }) => causes));
    expect(Object.keys(CAUSES).filter((code) => !shown.has(code as CauseCode))).toEqual([]);
  });

  it("has every cause explained in docs/cli.md", () => {
    const text = readFileSync(new URL("../../../../docs/cli.md", import.meta.url), "utf8");
    expect(Object.keys(CAUSES).filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
  });
});

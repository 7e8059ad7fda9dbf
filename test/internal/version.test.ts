import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { USER_AGENT, VERSION } from "../../src/internal/package.ts";

describe("VERSION", () => {
  it("is that of package.json", () => {
    const manifest: { version: string } = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    );
    expect(VERSION).toBe(manifest.version);
    expect(USER_AGENT).toBe(`oncehook/${manifest.version}`);
  });
});

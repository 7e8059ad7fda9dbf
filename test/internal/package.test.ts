/** Where a file is, without `import.meta`. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ownFile, USER_AGENT, VERSION } from "../../src/internal/package.ts";

describe("ownFile()", () => {
  it("names the file that calls it, or the directory that the process runs in, and leaves the stacks of errors alone", () => {
    const { prepareStackTrace, stackTraceLimit } = Error;
    const own = () => ownFile();
    expect(own()).toBe(fileURLToPath(import.meta.url));
    expect([Error.prepareStackTrace, Error.stackTraceLimit]).toEqual([prepareStackTrace, stackTraceLimit]);
    expect(new Error("x").stack).toContain("package.test.ts");
    const nameless = new Function("ownFile", "return ownFile()") as (own: typeof ownFile) => string;
    expect(nameless(ownFile)).toBe(`${process.cwd()}/index.js`);
  });
});

describe("VERSION", () => {
  it("is that of package.json", () => {
    const manifest: { version: string } = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    );
    expect(VERSION).toBe(manifest.version);
    expect(USER_AGENT).toBe(`oncehook/${manifest.version}`);
  });
});

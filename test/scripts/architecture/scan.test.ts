/** The import scanner against text that looks like code and code that looks like text. */
import { describe, expect, it } from "vitest";
import { scan } from "../../../scripts/architecture/scan.ts";

const specifiers = (text: string) => scan(text).imports.map(({ specifier }) => specifier);

describe("scan()", () => {
  it("finds every way to load a module", () => {
    const text = `
      import a from "a"; import { type b } from 'b'; import * as c from "c"; import "d";
      export { e } from "e"; export * from "f";
      const g = await import("g"); const h = require("h"); createRequire(import.meta.url)("i"); require.resolve("j");
    `;
    expect(specifiers(text).sort()).toEqual([..."abcdefghij"]);
  });

  it("tells type imports apart", () => {
    const [first, second] = scan('import type { A } from "a";\nimport { type B } from "b";').imports;
    expect([first?.typeOnly, second?.typeOnly]).toEqual([true, false]);
  });

  it("ignores comments, strings, templates and regular expressions", () => {
    const text = [
      '// import "a"',
      '/* import "b" */',
      "const text = 'import \"c\"';",
      'const more = `import "d" ${inner(`x ${{ a: 1 }.a} import "e"`)} import "f"`;',
      'const pattern = /import "g" [/"]/;',
      'const quotient = total / count; import "h"; const half = 1 / 2;',
    ].join("\n");
    expect(specifiers(text)).toEqual(["h"]);
  });

  it("keeps the length and the lines of the text, and the code inside templates", () => {
    const text = "const a = `one\ntwo ${Date.now()} three`; // four\n";
    const { bare } = scan(text);
    expect(bare).toHaveLength(text.length);
    expect(bare.split("\n")).toHaveLength(text.split("\n").length);
    expect(bare).toContain("Date.now()");
    expect(bare).not.toMatch(/one|two|three|four/);
  });
});

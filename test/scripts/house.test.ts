/** The figures of the house: what each counts. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import ts from "@typescript/typescript6";
import { describe, expect, it, onTestFinished } from "vitest";
import { codeLines, sumsOf } from "../../scripts/house/lines.ts";
import { CODE_LINES, line, problemOf } from "../../scripts/house/measure.ts";
import { type Ran, writtenFunctions } from "../../scripts/house/ran.ts";
import { readSurface, type Surface } from "../../scripts/house/surface.ts";

/** A folder with these files. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-house-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

describe("codeLines()", () => {
  it.each([
    ["a.ts", "/** What. */\nimport { b } from './b.ts';\n\n// Why.\nexport const a = b; // And.\n/* more */ a();\n", 3],
    ["a.ts", "/** Of a file.\n *\n */\n\nexport interface A {\n  /** Of a field. */\n  readonly b: string;\n}\n", 3],
    ["a.ts", 'const path = "src/**";\nconst url = "//host"; /* a\n   comment */ const c = 1;\nconst d = "*/";\n', 4],
    ["a.ts", "const sql = `\n  select 1 -- one\n\n  // no comment\n`;\n", 4],
    ["a.tsx", "const a = (\n  <p>\n    {/* why */}\n    text\n\n  </p>\n);\n", 5],
    ["a.js", "// @ts-check\nfoo(/[/*]/);\nbar();\n", 2],
    ["a.css", '/* a\n b */\np {\n  content: "/*";\n}\n\n/* c */ a { }\n', 4],
    ["a.ts", "", 0],
  ])("counts code of %s without blanks and comments: %j", (path, text, count) => {
    expect(codeLines(path, text)).toBe(count);
  });
});

describe("sumsOf()", () => {
  it("takes code of the package, contracts apart, and all lines of tests", () => {
    const texts = Object.entries({
      "src/a.ts": "one();\n\n// two\nthree();\n",
      "src/tools/inspector/page/b.css": "p {}\n",
      "src/page.html": "<p>\n",
      "adapters/c.tsx": "one();\n",
      "test/contracts/e.ts": "one();\n// two\n",
      "test/f.test.ts": "one();\n\n// three\n",
      "test/g.json": "{}\n",
      "scripts/h.ts": "one();\n",
    });
    expect(sumsOf(new Map(texts))).toEqual({ code: 4, contracts: 1, tests: 3 });
  });
});

describe("writtenFunctions()", () => {
  const source = `interface Before {}
export class Counter<Unit> {
  #count: number = 0;
  #byKey = new Map<string, () => void>([["a", () => {}]]);
  constructor(readonly: Unit) { void readonly; }
  get count(): number { return this.#count; }
  async add(more: number): Promise<void> {
    this.#count += more;
    [more].map((x) => (y: number) => x + y).forEach((f) => f(1));
  }
  never(): void {}
}
export function overloaded(a: string): void;
export function overloaded(a: number): void;
export function overloaded(a: unknown): void {
  void a;
}
`;

  const RUN = `import { Session } from "node:inspector/promises";
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const { Counter, overloaded } = await import("./a.js");
const counter = new Counter("unit");
await counter.add(counter.count);
overloaded(1);
const { result } = await session.post("Profiler.takePreciseCoverage");
const { functions } = result.find(({ url }) => url.endsWith("/a.js"));
const ran = functions.map(({ ranges: [range] }) => range).filter(({ count, startOffset }) => count > 0 && startOffset > 0);
console.log(JSON.stringify(ran.map(({ startOffset: start, endOffset: end }) => ({ path: "src/a.js", start, end }))));
`;

  /** As the engine sees it, in a process of its own. */
  function ranIn(compiled: string): Ran[] {
    const folder = folderOf({ "a.js": compiled, "run.js": RUN, "package.json": '{"type":"module"}' });
    return JSON.parse(execFileSync(process.execPath, [join(folder, "run.js")], { encoding: "utf8" })) as Ran[];
  }

  it("finds each function that ran in its source, with its lines, and no other", () => {
    const compiled = ts.transpile(source, { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext });
    const ran = ranIn(compiled);
    const found = writtenFunctions(ran, () => ({ file: "src/a.ts", compiled, source }));
    expect(found.map(({ place, lines }) => `${place} ${lines}`)).toEqual([
      "src/a.ts:5 constructor 1",
      "src/a.ts:6 count 1",
      "src/a.ts:7 add 4",
      "src/a.ts:9 (no name) 1",
      "src/a.ts:9 (no name) 1",
      "src/a.ts:9 (no name) 1",
      "src/a.ts:15 overloaded 3",
    ]);
  });

  it("refuses compiled code of another version", () => {
    const read = () => ({ file: "src/a.ts", compiled: "const a = () => 1;", source: "const a = 1;" });
    expect(() => writtenFunctions([{ path: "src/a.js", start: 10, end: 17 }], read)).toThrow(
      /src\/a\.ts has 0 functions/,
    );
  });
});

describe("readSurface()", () => {
  const surfaceOf = (files: Readonly<Record<string, string>>, entries = ["src/index.ts"]): Surface =>
    readSurface(
      folderOf({ "tsconfig.json": '{ "compilerOptions": { "strict": true, "noLib": true } }', ...files }),
      entries,
    );

  it("counts the private fields of a class, and those of its state objects, of its room only and once", () => {
    const { fields } = surfaceOf({
      "src/index.ts": 'export { A } from "./inbox/a.ts";\n',
      "src/inbox/a.ts": `import { Other } from "../other/other.ts";
        import { Part, type Seam, type Settings, type State } from "./part.ts";
        export class A {
          static #made = 0;
          readonly #part = new Part();
          #same: Part | null = null;
          readonly #settings: Settings;
          readonly #seam: Seam;
          readonly #state: State = { one: 1, two: 2 };
          readonly #other = new Other();
          #plain = 0;
          open = 1;
          get #got() { return this.#plain; }
          #method() {}
          constructor(settings: Settings, seam: Seam) { this.#settings = settings; this.#seam = seam; }
        }`,
      "src/inbox/part.ts": `export class Part { #a = 1; b = 2; readonly #deep = new Map<string, Deep>(); method() {} }
        export interface Settings { readonly a: number; readonly b: number }
        export interface Seam { a(): void; readonly b: string }
        export interface State { one: number; readonly two: number; run: () => void }
        interface Deep { one: number }`,
      "src/other/other.ts": "export class Other { #a = 1; #b = 2; }\n",
    });
    expect(fields).toContainEqual({ place: "A in src/inbox/a.ts", own: 7, withState: 7 + 3 + 2 });
    expect(fields).toContainEqual({ place: "Part in src/inbox/part.ts", own: 2, withState: 2 });
  });

  it("counts what entries export, and the fields of options that this leads to", () => {
    const { exports, options } = surfaceOf(
      {
        "src/index.ts": `export { make } from "./make.ts"; export type { PartOptions } from "./make.ts";`,
        "src/node.ts": `export * from "./make.ts";`,
        "src/make.ts": `
          interface CommonOptions { readonly common?: { readonly inner?: number } }
          export interface PartOptions extends CommonOptions { readonly part?: string; run?(options: { a: 1 }): void }
          export type ThroughOptions = { readonly wait?: (ms: { a: 1 }) => void };
          interface HiddenOptions { readonly hidden?: string }
          interface Answer { readonly answer: string }
          export class Made { #hidden?: HiddenOptions; through(options: ThroughOptions): Answer { return { answer: "" }; } }
          export function make(options: PartOptions): Made { const hidden: HiddenOptions = {}; return new Made(); }`,
      },
      ["src/index.ts", "src/node.ts"],
    );
    expect(exports).toBe(2 + 4);
    expect(options).toEqual([
      "CommonOptions.common",
      "CommonOptions.common.inner",
      "PartOptions.part",
      "PartOptions.run",
      "ThroughOptions.wait",
    ]);
  });
});

describe("problemOf()", () => {
  const of = (value: number) => [{ name: CODE_LINES, value, parts: [] }];

  it.each([
    [100, { [CODE_LINES]: 100 }, true],
    [99, { [CODE_LINES]: 100 }, true],
    [101, { [CODE_LINES]: 100 }, false],
    [100, {}, false],
  ])("of %d lines with %j written down: passes is %s", (value, before, passes) => {
    expect(problemOf(of(value), before) === null).toBe(passes);
  });

  it("says how a higher sum is written down", () => {
    expect(problemOf(of(101), { [CODE_LINES]: 100 })).toMatch(/101 code lines are more than the 100 .*--write$/);
  });
});

it("prints a figure next to the one before, and why one is missing", () => {
  expect([
    line({ name: "exports", value: 5, parts: [] }, 3),
    line({ name: "exports", value: 5, parts: [] }, 6),
    line({ name: "exports", value: 5, parts: [] }, 5),
    line({ name: "files", value: null, parts: ["not measured, because there is no Postgres"] }, 5),
  ]).toEqual([
    "      5 exports (2 more than written down)",
    "      5 exports (1 fewer than written down)",
    "      5 exports",
    "      - files: not measured, because there is no Postgres",
  ]);
});

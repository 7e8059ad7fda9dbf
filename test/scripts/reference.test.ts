/** The reference: what it writes for each kind of export, what it asks for, and when a page is outdated. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { commandPage, outdated, readReference } from "../../scripts/reference.ts";

const DECLARATIONS = `
/**
 * Makes it.
 *
 * @param options - what it takes
 * @returns a new one
 * @throws SetupError for a wrong option
 * @example
 * const it = createIt({ waitMs: 5 });
 */
export declare function createIt(options?: ItOptions): It;
/** What it waits for. */
interface Waiting {
  /** How long it waits, 1 to 10 ms. Default 5. */
  readonly waitMs?: number;
}
/** Options of \`createIt\`. */
export interface ItOptions extends Waiting {
  readonly bare?: boolean;
  /** The most. */
  readonly most?: number;
  /** Bounds. */
  readonly bounds?: {
    /** The lowest | the first. */
    readonly from: string;
  };
}
/** It. */
export declare class It {
  #private;
  private hidden;
  /** Ends it. @throws SetupError if it has ended */
  end(): Promise<void>;
}
export interface Bare {}
/** Codes. */
export type Code =
  /** The first. */
  | "one"
  | "two";
export {};
`;

const root = mkdtempSync(join(tmpdir(), "oncehook-reference-"));
afterAll(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, "dist"));
mkdirSync(join(root, "docs/reference"), { recursive: true });
const exports = { "./it": { types: "./dist/it.d.ts" }, "./package.json": "./package.json" };
writeFileSync(join(root, "package.json"), JSON.stringify({ type: "module", exports }));
writeFileSync(join(root, "dist/it.d.ts"), DECLARATIONS);
const reference = readReference(root);
const page = reference.pages.get("docs/reference/it.md") ?? "";

describe("readReference()", () => {
  it("shows a function with its signature, what it takes, returns and throws, and its example", () => {
    expect(page).toContain("function createIt(options?: ItOptions): It");
    expect(page).toContain("- `options`: what it takes\n- Returns a new one\n- Throws SetupError for a wrong option");
    expect(page).toContain("const it = createIt({ waitMs: 5 });");
  });

  it("lists the members of options, with those that they inherit and those of objects in them", () => {
    expect(page).toContain("| `waitMs?` | `number` | How long it waits, 1 to 10 ms. Default 5. |");
    expect(page).toContain("| `bounds.from` | `string` | The lowest \\| the first. |");
  });

  it("lists the members of a class, except private ones", () => {
    expect(page).toContain("| `end()` | `(): Promise<void>` | Ends it. Throws SetupError if it has ended |");
    expect(page).not.toMatch(/private|hidden/);
  });

  it("lists the cases of a union with their docstrings", () => {
    expect(page).toContain('| `"one"` | The first. |');
  });

  it("asks for a docstring of every export, option and case, and for the default of a number", () => {
    expect(reference.undocumented).toEqual([
      "oncehook/it: Bare",
      'Code: "two"',
      "oncehook/it: ItOptions.bare",
      "oncehook/it: ItOptions.most, of which it says no default",
    ]);
  });
});

describe("commandPage()", () => {
  it("has each command, also those of a group, with its arguments and flags", () => {
    const commands = commandPage();
    expect(commands).toContain("## oncehook inbox quarantine ls\n");
    expect(commands).toMatch(/^\| `--to <url>` \| .+ \|$/m);
    expect(commands.match(/^## /gm)?.length).toBeGreaterThan(25);
  });
});

describe("outdated()", () => {
  it("finds a page that is missing, changed, or of no entry", () => {
    const place = join(root, "docs/reference");
    expect(outdated(root, reference)).toEqual([expect.stringMatching(/^docs\/reference\/it\.md is outdated/)]);
    writeFileSync(join(place, "it.md"), page);
    expect(outdated(root, reference)).toEqual([]);
    writeFileSync(join(place, "it.md"), `${page}more`);
    writeFileSync(join(place, "gone.md"), "");
    expect(outdated(root, reference)).toEqual([
      "docs/reference/gone.md: no entry of this name",
      expect.stringMatching(/^docs\/reference\/it\.md is outdated/),
    ]);
  });
});

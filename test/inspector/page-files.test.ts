/** What the page's files may be: small, without markup made from texts, without anything from elsewhere. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { filesUnder } from "../../scripts/gates/gate.ts";
import { loadAssets } from "../../src/inspector/assets.ts";

const SOURCES = "src/inspector/page";
/** Made by the build, which each run of the tests starts first. */
const BUILT = "dist/page";
const MOST_GZIPPED_BYTES = 100_000;
const LIBRARY = dirname(createRequire(import.meta.url).resolve("preact/package.json"));

const MARKUP_OR_PROGRAMS =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|DOMParser|createContextualFragment|\.style\b|style=/g;

const { page, files } = loadAssets("/inspector", BUILT);

function textOf(name: string): string {
  return files.get(name)?.bytes.toString() ?? "";
}

describe("the built page", () => {
  it(`has at most ${MOST_GZIPPED_BYTES} bytes, compressed, with its library`, () => {
    expect([...files.keys()].sort()).toEqual(["icon.svg", "main.js", "style.css"]);
    const sizes = [page, ...files.values()].map(({ bytes }) => gzipSync(bytes).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MOST_GZIPPED_BYTES);
  });

  it("asks for all its files, and for nothing else", () => {
    const asked = [...page.bytes.toString().matchAll(/(?:src|href)="\/inspector\/assets\/([^"]+)"/g)].map(
      ([, name]) => name,
    );
    expect([...new Set(asked)].sort()).toEqual([...files.keys()].sort());
    // A rule of each stylesheet.
    for (const rule of [":root{", ".summary", ".acting"]) expect(textOf("style.css")).toContain(rule);
  });

  it("makes no markup of texts, and runs no text: only the library could, if it were asked to", () => {
    const count = (text: string) => {
      const counts: Record<string, number> = {};
      for (const [found] of text.matchAll(MARKUP_OR_PROGRAMS)) counts[found] = (counts[found] ?? 0) + 1;
      return counts;
    };
    expect(count(textOf("main.js"))).toEqual(count(readFileSync(join(LIBRARY, "dist/preact.mjs"), "utf8")));
    expect(textOf("main.js")).not.toMatch(/dangerouslySetInnerHTML\s*:/);
  });

  it("contains the licence of its library", () => {
    expect(textOf("main.js")).toContain(readFileSync(join(LIBRARY, "LICENSE"), "utf8").trim());
  });
});

describe.each([
  ["sources", SOURCES, 20],
  ["built files", BUILT, 4],
])("the page's %s", (_name, folder, atLeast) => {
  const all = filesUnder(folder).map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));

  /** Each place with the text around it: a built line is long. */
  function foundIn(name: RegExp, way: RegExp): string[] {
    expect(all.length).toBeGreaterThanOrEqual(atLeast);
    return all
      .filter((file) => name.test(file.name))
      .flatMap((file) =>
        [...file.text.matchAll(new RegExp(way, "g"))].map(
          ({ index }) => `${file.name}: ${file.text.slice(Math.max(0, index - 40), index + 60)}`,
        ),
      );
  }

  it("load nothing from elsewhere", () => {
    const ways = /(src|href)=["`{]?["`]?(https?:)?\/\/|@import (?:url|["'])|url\((?!["']?#)/;
    expect(foundIn(/./, ways)).toEqual([]);
  });

  it("import nothing but themselves, and in the sources the library", () => {
    if (folder === SOURCES)
      expect(foundIn(/./, /\bfrom ["'](?!\.|preact["/])|\bimport ?(\( ?)?["'`](?!\.)/)).toEqual([]);
    else expect(foundIn(/\.js$/, /\b(?:import|export)\b(?!\.meta)/)).toEqual([]);
  });

  it("have no way to make markup of a text in code of their own", () => {
    if (folder === SOURCES)
      expect(foundIn(/\.(tsx?|html)$/, new RegExp(`${MARKUP_OR_PROGRAMS.source}|dangerously`))).toEqual([]);
    else expect(foundIn(/\.html$/, MARKUP_OR_PROGRAMS)).toEqual([]);
  });
});

/** What the page's own files may be: few bytes as shipped, no markup made from texts, nothing from elsewhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesUnder } from "../../scripts/gates/gate.ts";
import { loadAssets } from "../../src/inspector/assets.ts";

const SOURCES = "src/inspector/page";
/** Made of them by `npm run build`, as each run of the tests does first. */
const SHIPPED = "dist/src/inspector/page";
/** Uncompressed, all that a browser gets beside the library. */
const MOST_BYTES = 60_000;

it(`the page is at most ${MOST_BYTES} bytes as shipped, beside the vendored library`, () => {
  const { page, files } = loadAssets("/inspector", SHIPPED);
  const own = [...files].filter(([name]) => !name.startsWith("vendor/"));
  const sizes = Object.fromEntries(own.map(([name, { bytes }]) => [name, bytes.length]));
  expect(Object.keys(sizes).sort()).toEqual(["icon.svg", "main.js", "style.css"]);
  const total = Object.values(sizes).reduce((sum, bytes) => sum + bytes, page.bytes.length);
  expect(total, JSON.stringify(sizes)).toBeLessThanOrEqual(MOST_BYTES);
});

it("the shipped page asks for all that is shipped, and for nothing else", () => {
  const { page, files } = loadAssets("/inspector", SHIPPED);
  const asked = [...page.bytes.toString().matchAll(/(?:src|href)="\/inspector\/assets\/([^"]+)"/g)].map(
    ([, name]) => name,
  );
  expect([...new Set(asked)].sort()).toEqual([...files.keys()].sort());
  // A rule of each of its sources.
  for (const rule of [":root{", ".summary", ".asked"]) expect(files.get("style.css")?.bytes.toString()).toContain(rule);
});

describe.each([
  ["sources", SOURCES, 40],
  ["shipped files", SHIPPED, 4],
])("the page's %s", (_name, folder, atLeast) => {
  const files = filesUnder(folder)
    .filter((name) => !name.startsWith("vendor/"))
    .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));

  /** Where it stands, with what is around it: a shipped line is long. */
  function foundIn(name: RegExp, way: RegExp): string[] {
    expect(files.length).toBeGreaterThanOrEqual(atLeast);
    return files
      .filter((file) => name.test(file.name))
      .flatMap((file) =>
        [...file.text.matchAll(new RegExp(way, "g"))].map(
          ({ index }) => `${file.name}: ${file.text.slice(Math.max(0, index - 40), index + 60)}`,
        ),
      );
  }

  it("make no markup of texts, and run no text", () => {
    const ways =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|DOMParser|createContextualFragment|\.style\b|style=/;
    expect(foundIn(/\.(js|html)$/, ways)).toEqual([]);
  });

  it("load nothing from elsewhere", () => {
    const ways =
      /(src|href)=["`]?(https?:)?\/\/|@import (?:url|["'])|url\((?!["']?#)|(\} ?from ?|\bfrom )["'](?!\.)|\bimport ?(\( ?)?["'`](?!\.)/;
    expect(foundIn(/./, ways)).toEqual([]);
  });

  it("come with the library as it was vendored, and its licences", () => {
    for (const name of ["LICENSE-htm", "LICENSE-preact", "htm-preact.js"])
      expect(readFileSync(join(folder, "vendor", name))).toEqual(readFileSync(join(SOURCES, "vendor", name)));
  });
});

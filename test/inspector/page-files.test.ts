/** What the page's own files may be: few bytes, no markup made from texts, nothing from elsewhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesUnder } from "../../scripts/gates/gate.ts";

const FOLDER = "src/inspector/page";
/** Uncompressed, all of them: docs/decisions tells why it is no less. */
const MOST_BYTES = 132_000;

const files = filesUnder(FOLDER)
  .filter((name) => !name.startsWith("vendor/"))
  .map((name) => ({ name, bytes: readFileSync(join(FOLDER, name)) }));

describe("the page's files", () => {
  it(`are at most ${MOST_BYTES} bytes beside the vendored library`, () => {
    const total = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(files.length).toBeGreaterThan(10);
    expect(total).toBeLessThanOrEqual(MOST_BYTES);
  });

  it("make no markup of texts, and run no text", () => {
    const ways =
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|DOMParser|createContextualFragment|\.style\b|style=/;
    expect(linesWith(/\.(js|html)$/, ways)).toEqual([]);
  });

  it("load nothing from elsewhere", () => {
    expect(linesWith(/./, /(src|href)="?(https?:)?\/\/|@import (?:url|["'])|url\((?!["']?#)|from "(?!\.)/)).toEqual([]);
  });

  it("come with the library's licences", () => {
    const vendored = filesUnder(join(FOLDER, "vendor"));
    expect(vendored).toEqual(expect.arrayContaining(["LICENSE-htm", "LICENSE-preact", "htm-preact.js"]));
  });
});

function linesWith(name: RegExp, line: RegExp): string[] {
  return files
    .filter((file) => name.test(file.name))
    .flatMap((file) =>
      file.bytes
        .toString()
        .split("\n")
        .flatMap((text, index) => (line.test(text) ? [`${file.name}:${index + 1} ${text.trim()}`] : [])),
    );
}

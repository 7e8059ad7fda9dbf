/** The links between the documents: one that leads nowhere is found, and none that leads somewhere is complained of. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linksOf, lostLinks } from "../../../scripts/docs/links.ts";

describe("linksOf()", () => {
  it("resolves paths against the document's folder", () => {
    expect(linksOf("docs/a.md", "one\n[b](../b.md) and [c](guides/c.md#it-works), [here](#top)")).toEqual([
      { place: "docs/a.md:2", path: "b.md", anchor: "" },
      { place: "docs/a.md:2", path: "docs/guides/c.md", anchor: "it-works" },
      { place: "docs/a.md:2", path: "docs/a.md", anchor: "top" },
    ]);
  });

  it("leaves out other sites, and what is code", () => {
    const text = "[a](https://example.com/a) `[b](b.md)`\n```ts\n[c](c.md)\n```\n[d](d.md)";
    expect(linksOf("a.md", text)).toEqual([{ place: "a.md:5", path: "d.md", anchor: "" }]);
  });
});

describe("lostLinks()", () => {
  let root = "";
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "oncehook-links-"));
    mkdirSync(join(root, "docs"));
    writeFileSync(join(root, "docs/b.md"), "# The `end`, and what's next\n```sh\n# no-heading\n```\n");
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const lost = (text: string) => lostLinks(root, linksOf("README.md", text));

  it("takes files, folders and headings that exist", () => {
    expect(lost("[a](docs) [b](docs/b.md) [c](docs/b.md#the-end-and-whats-next)")).toEqual([]);
  });

  it.each([
    ["a file", "[a](docs/c.md)", "README.md:1 links to docs/c.md, which does not exist"],
    ["a heading", "[a](docs/b.md#the-start)", "README.md:1 links to #the-start, which is no heading of docs/b.md"],
    [
      "a comment of code",
      "[a](docs/b.md#no-heading)",
      "README.md:1 links to #no-heading, which is no heading of docs/b.md",
    ],
  ])("names a link to %s that is not there", (_what, text, problem) => {
    expect(lost(text)).toEqual([problem]);
  });
});

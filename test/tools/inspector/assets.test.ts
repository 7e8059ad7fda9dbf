/** The page and its files: what they may be, small and without anything from elsewhere, and how they are served. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { filesUnder } from "../../../scripts/gates/gate.ts";
import { loadAssets } from "../../../src/tools/inspector/assets.ts";
import { inspected } from "./support/scene.ts";

/** As `npm run build` makes it, which each run of the tests starts first. */
const PAGE = join(dirname(createRequire(import.meta.url).resolve("oncehook/inspector")), "page");
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};
const SOURCES = "src/tools/inspector/page";
const MOST_GZIPPED_BYTES = 100_000;
const LIBRARY = dirname(createRequire(import.meta.url).resolve("preact/package.json"));

const MARKUP_OR_PROGRAMS =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|DOMParser|createContextualFragment|\.style\b|style=/g;

const { page, files } = loadAssets("/inspector", PAGE);

function textOf(name: string): string {
  return files.get(name)?.bytes.toString() ?? "";
}

const authorize = () => "read" as const;

describe("the page", () => {
  it.each([
    ["/inspector", "/inspector"],
    ["/ops/webhooks-2", "/ops/webhooks-2"],
    ["/", ""],
  ])("mounted at %s loads its files from there, asked for with a slash and a query, or without", async (path, base) => {
    const { server } = await inspected({ authorize, path });
    const pages = [
      await server.ask({ url: `${base}/?message=7` }),
      ...(base === "" ? [] : [await server.ask({ url: base })]),
    ];
    for (const page of pages) {
      expect(page).toMatchObject({ status: 200, headers: { "content-type": "text/html; charset=utf-8" } });
      expect(page.headers["cache-control"]).toBe("no-store");
      expect(page.body).not.toContain("{{");
      const links = [...page.body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link]) => link ?? "");
      expect(links.length).toBeGreaterThan(1);
      for (const link of links) {
        expect(link).toMatch(new RegExp(`^${base}/assets/`));
        expect(await server.ask({ url: link })).toMatchObject({ status: 200 });
      }
    }
  });
});

describe("the page's files", () => {
  const names = readdirSync(PAGE);
  const served = names.filter((name) => /\.(?:js|css|svg)$/.test(name));
  const kept = names.filter((name) => !served.includes(name));

  it("are all served as they lie there, and nothing else", async () => {
    const { server } = await inspected({ authorize });
    expect(served.length).toBe(3);
    for (const name of served) {
      const answer = await server.ask({ url: `/inspector/assets/${name}` });
      expect(answer.status, name).toBe(200);
      expect(answer.body).toBe(readFileSync(join(PAGE, name), "utf8"));
      const type = TYPES[extname(name)];
      expect(answer.headers).toMatchObject({ "content-type": type, "cache-control": "no-cache" });
      expect(answer.headers["content-length"]).toBe(`${Buffer.byteLength(answer.body)}`);
    }
    expect(kept).toEqual(["index.html"]);
    for (const name of kept)
      expect([name, (await server.ask({ url: `/inspector/assets/${name}` })).status]).toEqual([name, 404]);
  });

  it("are not sent again to a browser that has them", async () => {
    const { server } = await inspected({ authorize });
    const url = "/inspector/assets/main.js";
    const { headers } = await server.ask({ url });
    const etag = headers.etag ?? "";
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await server.ask({ url, headers: { "if-none-match": known } });
      expect([known, again.status, again.body, again.headers.etag]).toEqual([known, 304, "", etag]);
      expect(again.headers).toMatchObject({ "cache-control": "no-cache", "x-content-type-options": "nosniff" });
    }
    for (const other of ['"other"', etag.slice(1, -1), ""])
      expect(await server.ask({ url, headers: { "if-none-match": other } })).toMatchObject({ status: 200 });
  });

  it("have another ETag each, which stays the same from start to start", async () => {
    const first = loadAssets("/a");
    const etags = [...first.files.values()].map(({ etag }) => etag);
    expect(new Set(etags).size).toBe(etags.length);
    expect([...loadAssets("/b").files.values()].map(({ etag }) => etag)).toEqual(etags);
  });

  it("have a HEAD answer without their bytes", async () => {
    const { server } = await inspected({ authorize });
    for (const url of ["/inspector", "/inspector/assets/main.js"]) {
      const [got, told] = [await server.ask({ url }), await server.ask({ url, method: "HEAD" })];
      expect(told).toMatchObject({ status: 200, body: "" });
      expect(told.headers["content-length"]).toBe(`${Buffer.byteLength(got.body)}`);
      expect(told.headers["content-type"]).toBe(got.headers["content-type"]);
    }
  });

  it.each([
    ...["/inspector/assets/../inspector.ts", "/inspector/assets/..%2finspector.ts"],
    ...["/inspector/assets/%2e%2e/inspector.ts", "/inspector/assets/..\\inspector.ts"],
    ...["/inspector/assets/../../../package.json", "/inspector/assets/./main.js", "/inspector/assets//main.js"],
    ...["/inspector/assets/main.js/", "/inspector/assets/main.js%00.css", "/inspector/assets/MAIN.JS"],
    ...["/inspector/assets/vendor", "/inspector/assets/", "/inspector/assets", "/inspector/assets/__proto__"],
    ...["/inspector/assets/constructor", "/inspector/index.html", "/inspector/page/main.js", "/inspector//"],
    ...["/inspector/api", "/inspector/api/", "/inspector/../inspector/api/overview", "/inspectors"],
    ...["/inspector%2fapi/overview", "//inspector", "/", "*", ""],
  ])("are not reached by %j", async (url) => {
    const { inspector } = await inspected({ authorize, origins: ["http://ops.test"] });
    const answer = await inspector.handle({
      ...{ method: "GET", url, headers: { host: "ops.test" }, native: {} as never, signal: AbortSignal.abort() },
      readJson: () => Promise.reject(new Error("Nobody reads it.")),
    });
    expect(answer.status).toBe(404);
    expect(answer.body).toBe('{"error":"not_found","message":"The inspector has nothing here."}');
  });
});

describe("loadAssets()", () => {
  it("says what to do where a bundler has taken the code away from the page", () => {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-page-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const missing = expect.objectContaining({ code: "incomplete_package", message: expect.stringContaining("bundle") });
    expect(() => loadAssets("", join(folder, "nothing"))).toThrow(missing);
    expect(() => loadAssets("", folder)).toThrow(missing);
  });

  it("takes only the files for browsers", () => {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-page-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ["index.html", "c.js", "x.css", "x.d.ts", "LICENSE", "x.js.map", ".js"])
      writeFileSync(join(folder, name), "<p>{{path}} {{path}}");
    const { page, files } = loadAssets("/here", folder);
    expect([...files.keys()].sort()).toEqual(["c.js", "x.css"]);
    expect(page.bytes.toString()).toBe("<p>/here /here");
    expect(files.get("x.css")?.bytes.toString()).toBe("<p>{{path}} {{path}}");
  });
});

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
  ["built files", PAGE, 4],
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
    else {
      expect(foundIn(/\.html$/, MARKUP_OR_PROGRAMS)).toEqual([]);
      // The policy would refuse scripts and styles in the markup.
      expect(foundIn(/\.html$/, /<style|\sstyle=|\son\w+=|javascript:|<script[^>]*>[^<]/)).toEqual([]);
    }
  });
});

/** The page and its files, as they are served. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadAssets } from "../../src/inspector/assets.ts";
import { inspected } from "./support/scene.ts";

/** As `npm run build` makes it, which each run of the tests starts first. */
const PAGE = join(dirname(createRequire(import.meta.url).resolve("oncehook/inspector")), "page");
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};
const authorize = () => "read" as const;

describe("the page", () => {
  it.each([
    ["/inspector", "/inspector"],
    ["/ops/webhooks-2", "/ops/webhooks-2"],
    ["/", ""],
  ])("mounted at %s loads its files from there, asked for with a slash or without", async (path, base) => {
    const { server } = await inspected({ authorize, path });
    const pages = [await server.ask({ url: `${base}/` }), ...(base === "" ? [] : [await server.ask({ url: base })])];
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

  it("takes a query, and is the page then too", async () => {
    const { server } = await inspected({ authorize });
    expect(await server.ask({ url: "/inspector?message=7" })).toMatchObject({ status: 200 });
  });

  it("has no script or style in its markup, which the policy would refuse", () => {
    const markup = readFileSync(join(PAGE, "index.html"), "utf8");
    expect(markup).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [, inside] of markup.matchAll(/<script[^>]*>(.*?)<\/script>/gs)) expect(inside).toBe("");
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
    "/inspector/assets/../inspector.ts",
    "/inspector/assets/..%2finspector.ts",
    "/inspector/assets/%2e%2e/inspector.ts",
    "/inspector/assets/..\\inspector.ts",
    "/inspector/assets/../../../package.json",
    "/inspector/assets/./main.js",
    "/inspector/assets//main.js",
    "/inspector/assets/main.js/",
    "/inspector/assets/main.js%00.css",
    "/inspector/assets/MAIN.JS",
    "/inspector/assets/vendor",
    "/inspector/assets/",
    "/inspector/assets",
    "/inspector/assets/__proto__",
    "/inspector/assets/constructor",
    "/inspector/index.html",
    "/inspector/page/main.js",
    "/inspector//",
    "/inspector/api",
    "/inspector/api/",
    "/inspector/../inspector/api/overview",
    "/inspectors",
    "/inspector%2fapi/overview",
    "//inspector",
    "/",
    "*",
    "",
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

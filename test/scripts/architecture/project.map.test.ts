/** docs/architecture.md names files and folders: each must exist. */
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const PATH = /\b(?:src|adapters|test|scripts)\/[\w<>./-]*\w\/?/g;

it("names only files and folders that exist", () => {
  const page = readFileSync("docs/architecture.md", "utf8");
  const paths = [...new Set([...page.matchAll(PATH)].map(([path]) => path))];
  const all = paths.flatMap((path) =>
    path.includes("<store>") ? ["memory", "sqlite", "postgres"].map((store) => path.replace("<store>", store)) : [path],
  );
  expect(all.filter((path) => !existsSync(path))).toEqual([]);
  expect(all.length).toBeGreaterThan(50);
});

/** Pages of the documentation name files and folders: each must exist. */
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const PATH = /\b(?:src|adapters|test|scripts)\/[\w<>./-]*\w\/?/g;

it.each([
  ["docs/architecture.md", 50],
  ["docs/inbox.md", 3],
  ["docs/reliability.md", 50],
])("%s names only files and folders that exist", (file, least) => {
  const page = readFileSync(file, "utf8");
  const paths = [...new Set([...page.matchAll(PATH)].map(([path]) => path))];
  const all = paths.flatMap((path) =>
    path.includes("<store>") ? ["memory", "sqlite", "postgres"].map((store) => path.replace("<store>", store)) : [path],
  );
  expect(all.filter((path) => !existsSync(path))).toEqual([]);
  expect(all.length).toBeGreaterThan(least);
});

// Writes the files that a guide shows for a consumer: `node guide-files.mjs testing.md jest`. Their blocks say
// so in the marker before them: `<!-- no-check: jest.config.js of test/consumers/jest, … -->`.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const [page = "", consumer = ""] = process.argv.slice(2);
const text = readFileSync(`pages/docs/guides/${page}`, "utf8");
const block = /<!-- no-check: (\S+) of test\/consumers\/([\w-]+),[^>]*-->\n```\w+\n([\s\S]*?)^```$/gm;
let count = 0;
for (const [, file = "", wanted, code = ""] of text.matchAll(block)) {
  if (wanted !== consumer) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, code);
  console.log(`ok ${file} as ${page} shows it`);
  count += 1;
}
if (count === 0) throw new Error(`${page} shows nothing for ${consumer}.`);

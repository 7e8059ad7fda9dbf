// Writes the servers that the README and guides show: `node guide-servers.mjs NAME...`, where
// `readme-receiver` is the example of that name in the README. What they import as ./receiver.js is the guide's too.
import { readFileSync, writeFileSync } from "node:fs";
import { transform } from "esbuild";

const pages = {
  readme: "README.md",
  moving: "docs/guides/from-your-own-handler.md",
  receiving: "docs/guides/receiving.md",
};
const block = /<!-- example: ([\w-]+)(?:, [^>]*)? -->\n```ts\n([\s\S]*?)^```$/gm;
const examples = new Map();
for (const [page, path] of Object.entries(pages)) {
  const text = readFileSync(`pages/${path}`, "utf8");
  for (const [, name, code] of text.matchAll(block)) examples.set(`${page}-${name}`, code);
}
const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
async function write(name, file) {
  const source = examples.get(name);
  if (source === undefined) throw new Error(`No page shows ${name}.`);
  writeFileSync(file, (await transform(source, { loader: "ts", target: "node20", tsconfigRaw })).code);
  console.log(`ok ${name}, as the guide shows it`);
}

for (const name of process.argv.slice(2)) await write(name, `${name}.mjs`);
if (examples.has("receiving-receiver")) await write("receiving-receiver", "receiver.js");

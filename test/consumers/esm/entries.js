// Every entry can be imported where no peer is installed.
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL(import.meta.resolve("oncehook/package.json")), "utf8"));
for (const entry of Object.keys(manifest.exports)) {
  if (entry === "./package.json") continue;
  const name = `oncehook${entry.slice(1)}`;
  const loaded = await import(name);
  if (Object.keys(loaded).length === 0) throw new Error(`${name} exports nothing`);
  console.log(`ok import ${name}`);
}

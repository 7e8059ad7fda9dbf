/** `node scripts/run.mjs scripts/emulator-guide.ts`: writes the tables of docs/emulator.md anew from the sources. */
import { readFileSync, writeFileSync } from "node:fs";
import { withTables } from "./docs/emulator-tables.ts";

const FILE = "docs/emulator.md";
const guide = withTables(readFileSync(FILE, "utf8"));
writeFileSync(FILE, guide);
console.log(`${FILE}: ${guide.split("<!-- table: ").length - 1} tables`);

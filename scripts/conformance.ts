/** `npm run conformance`: which rules of docs/spec/conformance.md are named by a test, and exit code 1 when a required one is not. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { scan } from "./architecture/scan.ts";

export interface ConformanceRow {
  /** As in the document: `RCV`. */
  readonly group: string;
  readonly rules: readonly string[];
  readonly covered: readonly string[];
  /** The part that must obey these rules exists, so each needs a test. */
  readonly required: boolean;
}

/** Groups whose part exists. EVT and DLV describe the other side of the wire; GEN to SND the API that a client calls. */
const REQUIRED = new Set(["RCV"]);

/** One row per group of the document, in its order. */
export function conformance(root: string): ConformanceRow[] {
  const document = readFileSync(join(root, "docs/spec/conformance.md"), "utf8");
  const rules = [...document.matchAll(/^- ([A-Z]{3})-(\d+) /gm)].map((match) => `${match[1]}-${match[2]}`);
  // The published contract suites hold tests as well; test/ calls them.
  const named = new Set([
    ...namedRules(join(root, "test"), /\.test\.ts$/),
    ...namedRules(join(root, "src/testing"), /\.ts$/),
  ]);
  const groups = [...new Set(rules.map((rule) => rule.slice(0, 3)))];
  return groups.map((group) => {
    const own = rules.filter((rule) => rule.startsWith(`${group}-`));
    return { group, rules: own, covered: own.filter((rule) => named.has(rule)), required: REQUIRED.has(group) };
  });
}

/** Rule ids in texts of the code, such as test names: a comment that mentions a rule shows nothing. */
function namedRules(folder: string, files: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => files.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const texts = [...scan(text).literals, ...(text.match(/`[^`]*`/g) ?? [])];
      return texts.flatMap((name) => name.match(/\b[A-Z]{3}-\d+\b/g) ?? []);
    });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const rows = conformance(process.cwd());
  for (const { group, rules, covered, required } of rows) {
    const missing =
      required && covered.length < rules.length
        ? `  missing: ${rules.filter((rule) => !covered.includes(rule)).join(", ")}`
        : "";
    console.log(
      `${group}  ${`${covered.length} / ${rules.length}`.padStart(8)}${required ? "  required" : ""}${missing}`,
    );
  }
  const required = rows.filter((row) => row.required);
  const failed = required.filter(({ rules, covered }) => covered.length < rules.length || rules.length === 0).length;
  console.log(`${required.length - failed} passed, ${failed} failed`);
  if (failed > 0 || required.length === 0) process.exitCode = 1;
}

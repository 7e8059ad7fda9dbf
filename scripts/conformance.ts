/** `npm run conformance`: which rules of docs/spec/conformance.md are named by a test, and exit code 1 when a required one is not. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { scan } from "./architecture/scan.ts";

export interface ConformanceRow {
  /** As in the document: `RCV`. */
  readonly group: string;
  /** Without those of `clients`. */
  readonly rules: readonly string[];
  readonly covered: readonly string[];
  /** The part that must obey these rules exists, so each needs a test. */
  readonly required: boolean;
  /** Its rules that bind only a client, and no test names. */
  readonly clients: readonly string[];
  /** Empty when a required group is complete. */
  readonly problems: readonly string[];
}

/** The receiver's rules are tested all over; the published contract suites hold tests as well, which test/ calls. */
const ANYWHERE = ["test", "src/testing"];
/** A rule of the service is shown by the emulator: a receiver or a client that agrees with it shows nothing. */
const AT_THE_EMULATOR = ["test/emulator", "test/end-to-end"];

/** Groups whose part exists, and where their tests are. CLI is the client's alone. */
const REQUIRED: Readonly<Record<string, readonly string[] | undefined>> = {
  ...Object.fromEntries(
    ["GEN", "TOK", "AUT", "WHO", "WHK", "NUM", "UPD", "SEA", "SND", "EVT", "DLV"].map((group) => [
      group,
      AT_THE_EMULATOR,
    ]),
  ),
  RCV: ANYWHERE,
};

/** Rules in those groups that bind only a client, with the reason. One that a test names after all has to leave this list. */
export const CLIENTS_RULES: Readonly<Record<string, string>> = {
  "SEA-14": "what a client must not assume of `count`; whatever the service counts is right",
  "SEA-15": "a check that a client makes before it asks; the service's own refusals are SEA-2 to SEA-5",
};

/** One row per group of the document, in its order. */
export function conformance(
  root: string,
  clientsRules: readonly string[] = Object.keys(CLIENTS_RULES),
): ConformanceRow[] {
  const document = readFileSync(join(root, "docs/spec/conformance.md"), "utf8");
  const ids = [...document.matchAll(/^- ([A-Z]{3})-(\d+) /gm)].map((match) => `${match[1]}-${match[2]}`);
  const namedIn = new Map<readonly string[], ReadonlySet<string>>();
  for (const folders of [ANYWHERE, AT_THE_EMULATOR]) namedIn.set(folders, namedRules(root, folders));
  const groups = [...new Set(ids.map((id) => id.slice(0, 3)))];
  return groups.map((group) => {
    const folders = REQUIRED[group];
    const named = namedIn.get(folders ?? ANYWHERE) ?? new Set<string>();
    const own = ids.filter((id) => id.startsWith(`${group}-`));
    const clients = own.filter((id) => clientsRules.includes(id));
    const rules = own.filter((id) => !clients.includes(id));
    const covered = rules.filter((id) => named.has(id));
    const problems = [
      ...rules.filter((id) => !named.has(id)).map((id) => `${id} is named by no test`),
      ...clients.filter((id) => named.has(id)).map((id) => `${id} is named by a test, so it is not only the client's`),
    ];
    return {
      group,
      rules,
      covered,
      required: folders !== undefined,
      clients,
      problems: folders === undefined ? [] : problems,
    };
  });
}

/** Rule ids in texts of the code, such as test names: a comment that mentions a rule shows nothing. */
function namedRules(root: string, folders: readonly string[]): Set<string> {
  const files = folders.filter((folder) => existsSync(join(root, folder))).flatMap((folder) => testFiles(root, folder));
  return new Set(
    files.flatMap((file) => {
      const text = readFileSync(file, "utf8");
      const texts = [...scan(text).literals, ...(text.match(/`[^`]*`/g) ?? [])];
      return texts.flatMap((name) => name.match(/\b[A-Z]{3}-\d+\b/g) ?? []);
    }),
  );
}

function testFiles(root: string, folder: string): string[] {
  const ending = folder.startsWith("test") ? ".test.ts" : ".ts";
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(ending)).map((file) => join(root, folder, file));
}

/** Covered rules of the required groups, and how many of them there are. */
export function total(rows: readonly ConformanceRow[]): { covered: number; rules: number; clients: number } {
  const required = rows.filter((row) => row.required);
  const sum = (pick: "covered" | "rules" | "clients") => required.reduce((count, row) => count + row[pick].length, 0);
  return { covered: sum("covered"), rules: sum("rules"), clients: sum("clients") };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const rows = conformance(process.cwd());
  for (const { group, rules, covered, required, clients, problems } of rows) {
    const counts = `${covered.length} / ${rules.length}`.padStart(8);
    const others = clients.length > 0 ? `  client's: ${clients.join(", ")}` : "";
    console.log(`${group}  ${counts}${required ? "  required" : ""}${others}`);
    for (const problem of problems) console.log(`     ${problem}`);
  }
  for (const [id, reason] of Object.entries(CLIENTS_RULES)) console.log(`client's: ${id}, ${reason}`);
  const { covered, rules, clients } = total(rows);
  const required = rows.filter((row) => row.required);
  const failed = required.filter((row) => row.problems.length > 0 || row.rules.length === 0).length;
  console.log(
    `${covered} / ${rules} rules of ${required.length} groups are named by a test; ${clients} more are the client's`,
  );
  console.log(`${required.length - failed} passed, ${failed} failed`);
  if (failed > 0 || required.length === 0) process.exitCode = 1;
}

/** `npm run conformance`: which rules of docs/spec/conformance.md are named by a test, and exit code 1 when a required one is not. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { scan } from "./architecture/scan.ts";

export interface ConformanceRow {
  /** As in the document: `RCV`; `client` for the rules of all groups that bind the client as well. */
  readonly group: string;
  readonly rules: readonly string[];
  readonly covered: readonly string[];
  /** The part that must obey these rules exists, so each needs a test. */
  readonly required: boolean;
  /** Empty when a required group is complete. */
  readonly problems: readonly string[];
}

/** The receiver's rules are tested all over; the published contract suites hold tests as well, which test/ calls. */
const ANYWHERE = ["test", "src/tools/testing"];
/** A rule of the service is shown by the emulator: a receiver or a client that agrees with it shows nothing. */
const AT_THE_EMULATOR = ["test/messaging/emulator", "test/proofs/end-to-end"];
/** A rule of the client, by what uses it. */
const AT_THE_CLIENT = ["test/messaging/client", "test/proofs/end-to-end", "test/messaging/rotation"];
/** What binds service and client is shown at each of them. */
const BY_THE_CLIENT = ["test/messaging/client"];

/** Groups whose part exists, and where their tests are. */
const REQUIRED: Readonly<Record<string, readonly string[] | undefined>> = {
  ...Object.fromEntries(
    ["GEN", "TOK", "AUT", "WHO", "WHK", "NUM", "UPD", "SEA", "SND", "EVT", "DLV"].map((group) => [
      group,
      AT_THE_EMULATOR,
    ]),
  ),
  RCV: ANYWHERE,
  CLI: AT_THE_CLIENT,
};

/** What a rule asks of the client. */
export interface ClientsPart {
  readonly client: string;
  /** There is nothing to show at the service. */
  readonly isClientsAlone?: boolean;
}

/** Rules of the service's groups whose text speaks of the client: each is named by a test of the client, besides the service's. */
export const CLIENTS_RULES: Readonly<Record<string, ClientsPart>> = {
  "GEN-11": { client: "tolerates unknown codes, such as a rate limit's" },
  "GEN-12": { client: "classifies by the body's code, then by status" },
  "GEN-13": { client: "keeps the path of the base address" },
  "WHO-2": { client: "never makes a send depend on a capability" },
  "WHK-14": { client: "does not count on endpointUrl" },
  "WHK-15": { client: "takes any eventClass" },
  "WHK-16": { client: "takes timestamps that are absent, null or zero" },
  "WHK-27": { client: "says plainly what a 404 of these routes means" },
  "NUM-4": { client: "returns an array and invents no pages" },
  "UPD-7": { client: "writes campaignregId, and makes nothing else of campaignRegId" },
  "UPD-11": { client: "survives number: null and offers to read again" },
  "UPD-16": { client: "percent-encodes the number id" },
  "SEA-14": { client: "does not take count for numbers.length", isClientsAlone: true },
  "SEA-15": { client: "refuses early what SEA-2 to SEA-5 refuse, unless told not to", isClientsAlone: true },
  "SND-3": { client: "refuses an E.164 sendFrom early" },
  "SND-8": { client: "takes any text as errors[].to" },
  "SND-17": { client: "makes a send again with its key and request" },
  "SND-22": { client: "retries only 5xx, network errors and one 401, with the same key and bytes" },
  "SND-23": { client: "never retries 400, 403, 404 and 409" },
};

/** One row per group of the document, in its order, and a last one of the client's rules. */
export function conformance(
  root: string,
  clientsRules: Readonly<Record<string, ClientsPart>> = CLIENTS_RULES,
): ConformanceRow[] {
  const document = readFileSync(join(root, "docs/spec/conformance.md"), "utf8");
  const ids = [...document.matchAll(/^- ([A-Z]{3})-(\d+) /gm)].map((match) => `${match[1]}-${match[2]}`);
  const namedIn = new Map<readonly string[], ReadonlySet<string>>();
  for (const folders of [ANYWHERE, AT_THE_EMULATOR, AT_THE_CLIENT, BY_THE_CLIENT])
    namedIn.set(folders, namedRules(root, folders));
  const isNamed = (id: string, folders: readonly string[]) => namedIn.get(folders)?.has(id) ?? false;
  const groups = [...new Set(ids.map((id) => id.slice(0, 3)))];
  const rows = groups.map((group) => {
    const folders = REQUIRED[group];
    const rules = ids.filter((id) => id.startsWith(`${group}-`));
    const placeOf = (id: string) => (clientsRules[id]?.isClientsAlone ? BY_THE_CLIENT : (folders ?? ANYWHERE));
    return rowOf({ group, rules, required: folders !== undefined }, (id) => isNamed(id, placeOf(id)));
  });
  const clients = { group: "client", rules: Object.keys(clientsRules), required: true };
  const ofClient = rowOf(clients, (id) => isNamed(id, BY_THE_CLIENT) && ids.includes(id));
  return [...rows, ofClient];
}

function rowOf(
  { group, rules, required }: Pick<ConformanceRow, "group" | "rules" | "required">,
  isCovered: (id: string) => boolean,
): ConformanceRow {
  const covered = rules.filter(isCovered);
  const suffix = group === "client" ? " of the client" : "";
  const problems = rules.filter((id) => !covered.includes(id)).map((id) => `${id} is named by no test${suffix}`);
  return { group, rules, covered, required, problems: required ? problems : [] };
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

/** Without those of packages: proof programmes install some below test/. */
function testFiles(root: string, folder: string): string[] {
  const ending = folder.startsWith("test") ? ".test.ts" : ".ts";
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : testFiles(root, path);
    return entry.name.endsWith(ending) ? [join(root, path)] : [];
  });
}

/** Covered rules of the required groups, how many of them there are, and how many of those bind the client as well. */
export function total(rows: readonly ConformanceRow[]): { covered: number; rules: number; clients: number } {
  const ofDocument = rows.filter(({ required, group }) => required && group !== "client");
  const sum = (pick: "covered" | "rules") => ofDocument.reduce((count, row) => count + row[pick].length, 0);
  const clients = rows.find(({ group }) => group === "client")?.covered.length ?? 0;
  return { covered: sum("covered"), rules: sum("rules"), clients };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const rows = conformance(process.cwd());
  for (const { group, rules, covered, required, problems } of rows) {
    const counts = `${covered.length} / ${rules.length}`.padStart(8);
    console.log(`${group.padEnd(6)} ${counts}${required ? "  required" : ""}`);
    for (const problem of problems) console.log(`       ${problem}`);
  }
  for (const [id, { client, isClientsAlone }] of Object.entries(CLIENTS_RULES))
    console.log(`${id.padEnd(6)} the client ${client}${isClientsAlone ? "; its alone" : ""}`);
  const { covered, rules, clients } = total(rows);
  const required = rows.filter((row) => row.required);
  const failed = required.filter((row) => row.problems.length > 0 || row.rules.length === 0).length;
  console.log(`${covered} / ${rules} rules are named by a test; ${clients} of them by one of the client as well`);
  console.log(`${required.length - failed} passed, ${failed} failed`);
  if (failed > 0 || required.length === 0) process.exitCode = 1;
}

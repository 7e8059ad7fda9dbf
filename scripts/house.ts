/**
 * `node scripts/run.mjs scripts/house.ts`: how big the house is, each figure beside its target. `--lines` also lists what counts: names with
 * two homes and the files of a request. Ends with 1 when a figure misses its target.
 */
import { execFileSync } from "node:child_process";
import { readProject } from "./architecture/project.ts";
import { type Figure, isMet, line, sharedNames, sourceFigures } from "./house/figures.ts";

const root = process.cwd();
const project = readProject(root);
const request = run(process.execPath, [".build/scripts/house/request.js"]).split("\n");
const figures: readonly Figure[] = [
  ...sourceFigures(project, stylesAndMarkup()),
  { name: "files that one request runs, adapter to settled", value: request.length, unit: "files", most: 30 },
  ...packageFigures(),
];
for (const figure of figures) console.log(line(figure));
if (process.argv.includes("--lines")) {
  for (const [name, files] of sharedNames(project)) console.log(`two homes: ${name}: ${files.join(", ")}`);
  for (const file of request) console.log(`request: ${file}`);
}
const missed = figures.filter((figure) => !isMet(figure)).length;
console.log(`${figures.length - missed} passed, ${missed} failed`);
process.exitCode = missed > 0 ? 1 : 0;

function stylesAndMarkup(): number {
  const tracked = run("git", ["ls-files", "src", "adapters"]).split("\n");
  return tracked.filter((file) => /\.(?:css|html|js)$/.test(file)).length;
}

/** As npm would pack what is built. */
function packageFigures(): readonly Figure[] {
  const [packed] = JSON.parse(run("npm", ["pack", "--dry-run", "--ignore-scripts", "--json"])) as readonly {
    readonly entryCount: number;
    readonly unpackedSize: number;
  }[];
  if (packed === undefined) throw new Error("npm packs nothing");
  const kilobytes = Math.round(packed.unpackedSize / 1_000);
  return [
    { name: "files of the package", value: packed.entryCount, unit: "files", most: 150 },
    { name: "the package, unpacked", value: kilobytes, unit: "kB", most: 3_000 },
  ];
}

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 }).trim();
}

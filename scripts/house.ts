/**
 * `node scripts/run.mjs scripts/house.ts`: how big the house is, each figure next to the one that is written down. `--parts` lists what each
 * is made of; `--write` writes the figures down. Ends with 1 when there is more code than is written down.
 */
import { line, measure, problemOf, writeDown, writtenDown } from "./house/measure.ts";

const root = process.cwd();
const figures = measure(root);
const before = writtenDown(root);
for (const figure of figures) {
  console.log(line(figure, before[figure.name]));
  if (process.argv.includes("--parts")) for (const part of figure.parts) console.log(`          ${part}`);
}
if (process.argv.includes("--write")) writeDown(root, figures);
const problem = problemOf(figures, writtenDown(root));
if (problem !== null) console.error(problem);
process.exitCode = problem === null ? 0 : 1;

/** `npm run prove -- planted`: puts known bugs and mutants into the sources, one at a time. The test that each names must find it, and the programme if it names one. */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonIsMissing } from "../../tools/cli/python-application.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { straceIsMissing } from "../strace.ts";
import { BUGS, type Bug, editsOf } from "./bugs.ts";
import { inCopy } from "./copy.ts";
import { type Finding, proven, tested } from "./finding.ts";
import { MATRIX_FILE, withRows } from "./matrix.ts";

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** `AT_ONCE=4` for a machine that is idle otherwise. */
const AT_ONCE = Number(process.env.AT_ONCE ?? Math.max(2, availableParallelism()));
/** Characters of a problem. */
const SHOWN = 200;
/** Parts of the names of bugs, apart by commas, instead of all. */
const ONLY = process.env.BUGS?.split(",") ?? null;
/** Writes the rows of the bugs that were found by both into the documentation. */
const WRITES_MATRIX = process.env.MATRIX === "1";
/** Programmes that start the package's own command. */
const START_PACKAGE = ["sidecar"];
/** Programmes that cannot run everywhere, and why not. */
const NEEDS: Readonly<Record<string, () => string | null>> = { power: straceIsMissing, sidecar: pythonIsMissing };

export const planted: Programme = {
  name: "planted",
  what: `each of ${BUGS.length} bugs, planted in the sources, is found by the test that must find it, and by the programme that it names, if any; they find nothing without it`,
  hasSmallForm: true,
  async run({ small, say }: Terms): Promise<Proof> {
    const isWanted = ({ name, inSmall }: Bug) =>
      ONLY === null ? !small || inSmall === true : ONLY.some((part) => name.includes(part));
    const bugs = BUGS.filter(isWanted).filter((bug) => canBeFound(bug, say));
    const problems: string[] = [];
    const caught: Bug[] = [];
    const controls = controlsOf(bugs, small).map((control) => async () => {
      problems.push(...(await control(say)));
    });
    const searches = bugs.map((bug) => async () => {
      const missed = await search(bug, { small, say });
      if (missed.length === 0) caught.push(bug);
      problems.push(...missed);
    });
    await allOf([...controls, ...searches]);
    if (WRITES_MATRIX && !small) writeMatrix(caught);
    const by = small ? "by their programmes" : "by their programmes and tests";
    return { count: caught.length, unit: `of ${bugs.length} bugs found ${by}`, problems };
  },
};

function canBeFound({ name, caughtBy }: Bug, say: Terms["say"]): boolean {
  const reason = (caughtBy && NEEDS[caughtBy]?.()) ?? null;
  if (reason !== null) say(`${name.padEnd(28)} left out: ${caughtBy} needs what is missing (${reason})`);
  return reason === null;
}

type Control = (say: Terms["say"]) => Promise<readonly string[]>;

/** Without a bug the programmes and the tests find nothing, or their findings would say nothing. */
function controlsOf(bugs: readonly Bug[], small: boolean): readonly Control[] {
  const control =
    (by: string, find: (copy: string) => Promise<Finding>): Control =>
    async (say) => {
      const untouched = { edits: [], startsPackage: false };
      const { verdict, problems, seconds } = await inCopy(ROOT, untouched, (copy) => timed(find(copy)));
      say(lineOf("(none)", by, seconds, problems[0] ?? "nothing found"));
      return verdict === "pass" ? [] : [`without a bug ${by} finds one: ${problems[0] ?? "no problem"}`];
    };
  const programmes = [...new Set(bugs.flatMap(({ caughtBy = [] }) => caughtBy))];
  const paths = [...new Set(bugs.map(({ tests }) => tests))];
  return [
    ...programmes.map((programme) => control(programme, (copy) => proven(copy, programme))),
    ...(small ? [] : [control("tests", (copy) => tested(copy, paths))]),
  ];
}

/** Empty when all that it names found it; else what happened instead. */
async function search(bug: Bug, { small, say }: Pick<Terms, "small" | "say">): Promise<readonly string[]> {
  const { name, caughtBy, says = "", tests } = bug;
  const judge = ({ verdict, problems, seconds }: Timed, by: string, wanted: string) => {
    const seen = verdict === "FAIL" ? problems.find((problem) => problem.includes(wanted)) : undefined;
    const otherwise = `not found: ${problems[0] ?? "no problem"}`;
    say(lineOf(name, by, seconds, seen ?? otherwise));
    return seen === undefined ? [`${name}, by ${by}: ${otherwise}`] : [];
  };
  const look = async (copy: string) => [
    ...(caughtBy === undefined ? [] : judge(await timed(proven(copy, caughtBy)), caughtBy, says)),
    ...(small ? [] : judge(await timed(tested(copy, [tests])), tests, "")),
  ];
  const startsPackage = caughtBy !== undefined && START_PACKAGE.includes(caughtBy);
  return inCopy(ROOT, { edits: editsOf(ROOT, bug), startsPackage }, look).catch((error: unknown) => [
    `${name}: ${String(error)}`,
  ]);
}

type Timed = Finding & { readonly seconds: string };

async function timed(finding: Promise<Finding>): Promise<Timed> {
  const startedAt = performance.now();
  const found = await finding;
  return { ...found, seconds: ((performance.now() - startedAt) / 1_000).toFixed(0) };
}

function lineOf(name: string, by: string, seconds: string, said: string): string {
  return `${name.padEnd(28)} ${by.padEnd(8)} ${seconds.padStart(3)} s  ${said.slice(0, SHOWN)}`;
}

function writeMatrix(caught: readonly Bug[]): void {
  const file = join(ROOT, MATRIX_FILE);
  writeFileSync(file, withRows(readFileSync(file, "utf8"), caught));
}

async function allOf(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...tasks];
  const work = async () => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) await task();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

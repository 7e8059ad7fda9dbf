/** What a run of Stryker says about a room: who survived, and whether there is a written reason for each who did. */

/** The part of Stryker's JSON report that is looked at (mutation-testing-report-schema 2). */
export interface Report {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly ReportedMutant[] }>>;
}

export interface ReportedMutant {
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

/** Both from 1 on. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** Names a mutant by what it is, not by where, so that a line more above it changes nothing. White space counts as one space. */
export interface MutantName {
  readonly file: string;
  readonly mutator: string;
  /** What was written. */
  readonly code: string;
  /** What it became. */
  readonly becomes: string;
}

export interface Mutant extends MutantName {
  readonly line: number;
  readonly status: string;
}

/** A mutant that may live. */
export interface Explained extends MutantName {
  /** Why no test can tell it from the code, or why none has to. */
  readonly reason: string;
}

export interface Verdict {
  /** Mutants that ran. */
  readonly tried: number;
  readonly killed: number;
  /** Survivors with a reason. */
  readonly explained: number;
  /** Left out because only a restart of everything would try them. */
  readonly leftOut: number;
  readonly problems: readonly string[];
}

const KILLED = new Set(["Killed", "Timeout"]);
const SURVIVED = new Set(["Survived", "NoCoverage"]);

export function mutantsOf({ files }: Report): readonly Mutant[] {
  return Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split("\n");
    return mutants.map(({ mutatorName, replacement = "", status, location }) => ({
      ...{ file, line: location.start.line, mutator: mutatorName, status },
      ...{ code: asOneLine(textAt(lines, location)), becomes: asOneLine(replacement) },
    }));
  });
}

/** `least` percent of the mutants without a reason must be killed; every reason must have its survivor. */
export function judge(
  mutants: readonly Mutant[],
  { explained, least }: { readonly explained: readonly Explained[]; readonly least: number },
): Verdict {
  const reasons = new Set(explained.map(keyOf));
  const isExplained = (mutant: Mutant) => reasons.has(keyOf(mutant));
  const survivors = mutants.filter(({ status }) => SURVIVED.has(status));
  const unexplained = survivors.filter((mutant) => !isExplained(mutant));
  const killed = mutants.filter(({ status }) => KILLED.has(status)).length;
  const score = (100 * killed) / (killed + unexplained.length);
  const listed = unexplained.map(({ file, line, mutator, code, becomes }) => {
    return `survived: ${file}:${line} ${mutator}: ${code} => ${becomes}`;
  });
  const tooFew = killed === 0 ? "no mutant was killed" : `${score.toFixed(1)} % are killed instead of ${least} %`;
  const enough = score >= least ? [] : [tooFew, ...listed];
  return {
    ...{ tried: killed + survivors.length, killed, explained: survivors.length - unexplained.length },
    leftOut: mutants.filter(({ status }) => status === "Ignored").length,
    problems: [...enough, ...slow(mutants), ...strange(mutants), ...stale(mutants, explained)],
  };
}

/**
 * A reason whose mutant is killed, or is no more, explains nothing; so that a run in which everything dies shows itself. One that
 * timed out may have been slow only.
 */
function stale(mutants: readonly Mutant[], explained: readonly Explained[]): string[] {
  const alive = new Set(mutants.filter(({ status }) => status !== "Killed").map(keyOf));
  const files = new Set(mutants.map(({ file }) => file));
  const unneeded = explained.filter((each) => files.has(each.file) && !alive.has(keyOf(each)));
  return unneeded.map(({ file, mutator, code, becomes }) => {
    return `explained, but no survivor: ${file} ${mutator}: ${code} => ${becomes}`;
  });
}

function strange(mutants: readonly Mutant[]): string[] {
  const known = (status: string) => KILLED.has(status) || SURVIVED.has(status) || status === "Ignored";
  return mutants
    .filter(({ status }) => !known(status))
    .map(({ file, line, mutator, status }) => `${file}:${line} ${mutator} is ${status}`);
}

/** Where time ran out for every one, nothing was seen to be wrong. */
function slow(mutants: readonly Mutant[]): string[] {
  const killed = mutants.filter(({ status }) => KILLED.has(status));
  const outOfTime = killed.length > 0 && killed.every(({ status }) => status === "Timeout");
  return outOfTime ? ["time ran out for every mutant that was killed"] : [];
}

function keyOf({ file, mutator, code, becomes }: MutantName): string {
  return JSON.stringify([file, mutator, code, becomes]);
}

function textAt(lines: readonly string[], { start, end }: ReportedMutant["location"]): string {
  const within = lines.slice(start.line - 1, end.line);
  const last = within.length - 1;
  return within
    .map((line, index) => line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined))
    .join("\n");
}

/** As a reason quotes code: white space counts as one space. */
export function asOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

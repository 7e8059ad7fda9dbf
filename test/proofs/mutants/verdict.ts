/** What a run of Stryker says about a room: its score, and which mutants lived. */

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

/** White space counts as one space. */
export interface Mutant {
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  /** What was written. */
  readonly code: string;
  /** What it became. */
  readonly becomes: string;
  readonly status: string;
}

export interface Verdict {
  /** Mutants that ran. */
  readonly tried: number;
  readonly killed: number;
  /** Percent of the tried ones that were killed. */
  readonly score: number;
  /** Those that lived, each in a line. */
  readonly lived: readonly string[];
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

/** @param floor - the least percentage that must be killed. A mutant that no test can tell from the code counts as lived */
export function judge(mutants: readonly Mutant[], floor: number): Verdict {
  const lived = mutants.filter(({ status }) => SURVIVED.has(status));
  const killed = mutants.filter(({ status }) => KILLED.has(status)).length;
  const tried = killed + lived.length;
  const score = tried === 0 ? 0 : (100 * killed) / tried;
  const tooFew = killed === 0 ? "no mutant was killed" : `${score.toFixed(1)} % are killed instead of ${floor} %`;
  return {
    ...{ tried, killed, score },
    lived: lived.map(({ file, line, mutator, code, becomes }) => `${file}:${line} ${mutator}: ${code} => ${becomes}`),
    leftOut: mutants.filter(({ status }) => status === "Ignored").length,
    problems: [...(killed > 0 && score >= floor ? [] : [tooFew]), ...slow(mutants), ...strange(mutants)],
  };
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

function textAt(lines: readonly string[], { start, end }: ReportedMutant["location"]): string {
  const within = lines.slice(start.line - 1, end.line);
  const last = within.length - 1;
  return within
    .map((line, index) => line.slice(index === 0 ? start.column - 1 : 0, index === last ? end.column - 1 : undefined))
    .join("\n");
}

function asOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

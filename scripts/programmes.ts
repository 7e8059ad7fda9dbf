/** Holds the proof programmes against what CI runs of them and what CONTRIBUTING.md says of them: one that nobody runs shows nothing. */

export interface Entries {
  /** `.ci/run` */
  readonly ci: string;
  /** `CONTRIBUTING.md` */
  readonly guide: string;
}

/** The names in the list that `npm run prove` prints. */
export function listed(usage: string): readonly string[] {
  return namesIn(usage, /^ {2}(\S+) +\S/gm);
}

/** A line for each programme that has no step or no row, and for each step and row without a programme. */
export function disagreements(programmes: readonly string[], { ci, guide }: Entries): string[] {
  const table = guide.slice(Math.max(0, guide.indexOf("| programme |"))).split("\n\n")[0] ?? "";
  const entered = {
    ".ci/run": namesIn(ci, /^ *(?:traced |if .* then )?prove ([\w-]+) "/gm),
    "the table of CONTRIBUTING.md": namesIn(table, /^\| `([\w-]+)` \|/gm),
  };
  return Object.entries(entered).flatMap(([place, names]) => [
    ...programmes.filter((name) => !names.includes(name)).map((name) => `${name} is missing in ${place}`),
    ...names.filter((name) => !programmes.includes(name)).map((name) => `${place} has ${name}, which is no programme`),
  ]);
}

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = ""]) => name);
}

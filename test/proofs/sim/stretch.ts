/** Many seeds one after the other, added up; now and then one twice, since a seed that tells two stories repeats nothing. */
import type { Flaw } from "./flaws.ts";
import { runSeed } from "./seeds.ts";

const TWICE_EVERY = 200;
/** A world that goes wrong in every seed need not do so a thousand times. */
const MOST_PROBLEMS = 20;

export interface Stretch {
  readonly first: number;
  readonly seeds: number;
  readonly postgresUrl: string | null;
  readonly flaw: Flaw | null;
  /** Ends with the first seed in which something is found, as a planted fault must be. */
  readonly untilFound: boolean;
}

export interface StretchReport {
  readonly seeds: number;
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

export async function stretch({ first, seeds, untilFound, ...terms }: Stretch): Promise<StretchReport> {
  const problems: string[] = [];
  const counts: Record<string, number> = {};
  let done = 0;
  for (let seed = first; seed < first + seeds && problems.length < (untilFound ? 1 : MOST_PROBLEMS); seed++) {
    const isTwice = seed % TWICE_EVERY === 1;
    const report = await runSeed({ ...terms, seed, tells: isTwice });
    problems.push(...report.problems);
    for (const [name, count] of Object.entries(report.counts)) counts[name] = (counts[name] ?? 0) + count;
    if (isTwice) {
      const again = await runSeed({ ...terms, seed, tells: true });
      if (again.story.join() !== report.story.join()) problems.push(`seed ${seed} told another story the second time`);
    }
    done += 1;
  }
  return { seeds: done, problems, counts };
}

/**
 * Starts the test files that take longest before the others: a long file that starts last makes all wait, and a clean clone has no times.
 * The project with the longest file comes first, because projects run one after the other.
 */
import { existsSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** From nine seconds on, on two busy cores; the last two only in the full form. */
const LONGEST = [
  "test/stores/postgres/store.test.ts",
  "test/stores/sqlite.test.ts",
  "test/stores/postgres/effects.test.ts",
  "test/stores/postgres/fresh-lanes.test.ts",
  "test/stores/postgres/inspector.test.ts",
  "test/stores/postgres/pools.test.ts",
  "test/stores/postgres/copy.test.ts",
  "test/stores/postgres/effects-outage.test.ts",
  "test/stores/postgres/interleavings.test.ts",
  "test/receiver/quarantine.test.ts",
  "test/tools/inspector/access.guard.test.ts",
  "test/receiver/keyrings.test.ts",
  "test/stores/sqlite-erase-prune.test.ts",
  "test/proofs/family.several-processes.test.ts",
];

export class LongestFirst extends BaseSequencer {
  /** @throws Error when one of them was moved */
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((file) => !existsSync(file));
    if (missing.length > 0) throw new Error(`There is no ${missing.join(", ")}: fix the list in test/setup.`);
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const queues = projects.map((project) => {
      const own = sorted.filter((file) => file.project === project);
      return own.sort((a, b) => rank(a) - rank(b));
    });
    return queues.sort((a, b) => firstRank(a) - firstRank(b)).flat();
  }
}

/** A file with a process of its own comes first: the next ones start next to it. */
function firstRank(queue: readonly TestSpecification[]): number {
  return queue[0]?.project.config.isolate === true ? -1 : Math.min(...queue.map(rank));
}

function rank({ moduleId }: TestSpecification): number {
  const place = LONGEST.indexOf(relative(process.cwd(), moduleId));
  return place < 0 ? LONGEST.length : place;
}

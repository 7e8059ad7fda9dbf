/** Starts the test files that take longest before the others of their project: whoever is last makes all wait, and a clean clone has no times. */
import { existsSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** From ten seconds on, on two cores. */
const LONGEST = [
  "test/stores/sqlite.test.ts",
  "test/outages/outages.test.ts",
  "test/examples/servers.test.ts",
  "test/cli/inbox-commands.test.ts",
  "test/cli/companion.test.ts",
  "test/outages/gap-expiry.test.ts",
  "test/stores/memory.test.ts",
  "test/cli/emulator.test.ts",
  "test/concurrency/several-processes.test.ts",
  "test/inspector/guard.test.ts",
  "test/examples/fastify-postgres.test.ts",
  "test/postgres/store.test.ts",
  "test/postgres/copy.test.ts",
];

export class LongestFirst extends BaseSequencer {
  /** @throws Error when one of them was moved */
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((file) => !existsSync(file));
    if (missing.length > 0) throw new Error(`There is no ${missing.join(", ")}: mend the list in test/setup.`);
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return own.sort((a, b) => rank(a) - rank(b));
    });
  }
}

function rank({ moduleId }: TestSpecification): number {
  const place = LONGEST.indexOf(relative(process.cwd(), moduleId));
  return place < 0 ? LONGEST.length : place;
}

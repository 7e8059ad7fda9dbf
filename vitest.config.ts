/** How the tests run: real servers and files, so generous limits; examples get the sources, not an older build. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { COVERAGE_FLOOR } from "./scripts/coverage-floor.ts";
import { FULL } from "./test/setup/form.ts";
import { LongestFirst } from "./test/setup/longest-first.ts";

const { compilerOptions }: { compilerOptions: { paths: Record<string, readonly [string]> } } = JSON.parse(
  readFileSync("tsconfig.json", "utf8"),
);

/** `oncehook/express` means adapters/express.ts here: the same module that a test imports by its path. */
const alias = Object.entries(compilerOptions.paths).map(([entry, [source]]) => ({
  find: new RegExp(`^${entry}$`),
  replacement: fileURLToPath(new URL(source, import.meta.url)),
}));

/** Mocks a module, which others of its process would get too. */
const ALONE = ["test/adapters/next.test.ts"];
/** Tests on the one server of Postgres that is started for them. */
const ON_POSTGRES = ["test/stores/postgres/**/*.test.ts", "test/examples/*-postgres.test.ts"];
/** In Chromium: half a minute, so no part of `npm test`. They are measured too, and nothing runs beside them. */
const IN_BROWSER = ["test/tools/inspector/browser/**/*.test.ts"];
const NOT_HERE = [...ALONE, ...ON_POSTGRES, ...IN_BROWSER, "**/node_modules/**", "test/next/**", "test/consumers/**"];

export default defineConfig({
  resolve: { alias },
  // JSX is Preact's: the inspector's page is the only place with it.
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "postgres",
          include: ON_POSTGRES,
          globalSetup: ["test/setup/postgres.ts"],
        },
      },
      { extends: true, test: { name: "package", include: ["test/**/*.test.ts"], exclude: NOT_HERE } },
      { extends: true, test: { name: "alone", include: ALONE, isolate: true } },
      {
        extends: true,
        test: {
          name: "browser",
          include: IN_BROWSER,
          globalSetup: ["test/setup/browser.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    tags: [{ name: "full", description: "Runs with FULL=1 only." }],
    ...(!FULL && { tagsFilter: ["!full"] }),
    globalSetup: ["test/setup/build.ts"],
    setupFiles: ["test/setup/repeatable.ts"],
    reporters: ["default", "./test/setup/suite-reporter.ts"],
    // A test leaves nothing behind in its process, so files share them: loading is a third of the time otherwise.
    isolate: false,
    // Transformed modules are kept in node_modules, by their content: the next run transforms only what changed.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: LongestFirst },
    // A third of the time they wait, for processes, timers and disks.
    maxWorkers: 2 * availableParallelism(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // As long as a busy machine may need; nothing is waited for that should not come.
    expect: { poll: { timeout: 15_000 } },
    coverage: {
      provider: "v8",
      include: ["src/**", "adapters/**"],
      // The page runs in a browser: test/tools/inspector/browser drives every view and act of it. `adapters/**` is found in test/ as well.
      exclude: ["src/tools/inspector/page/**", "test/**"],
      reporter: ["text-summary", "json-summary"],
      reportOnFailure: true,
      ...(FULL && { thresholds: COVERAGE_FLOOR }),
    },
  },
});

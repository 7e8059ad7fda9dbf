/** What is mutated, which tests have to notice, and how many of the mutants. */

export interface Room {
  readonly name: string;
  /** Patterns of sources, from the root of the repository. */
  readonly sources: readonly string[];
  /** Patterns of its own tests: narrow, because each mutant is one run. */
  readonly tests: readonly string[];
  /** Percent of the mutants that have no written reason to live. */
  readonly least: number;
}

export const SIGNATURE: Room = {
  name: "signature",
  sources: [
    "src/service/keyring*.ts",
    "src/service/secret*.ts",
    "src/service/sign.ts",
    "src/service/verify*.ts",
    "src/sources/headers.ts",
    "src/sources/hmac-key.ts",
    "src/sources/keyring-provider.ts",
    "src/internal/same-secret.ts",
  ],
  // What a build may lack is tested where each maker of a secret is.
  tests: ["test/service/**/*.test.ts", "test/sources/**/*.test.ts", "test/internal/environment.test.ts"],
  least: 100,
};

export const OTHER_ROOMS: readonly Room[] = [
  {
    name: "events",
    sources: ["src/service/parse.ts", "src/internal/json.ts", "src/inbox/lane-key.ts"],
    tests: [
      "test/service/**/*.test.ts",
      "test/inbox/lane-key.test.ts",
      "test/internal/content.test.ts",
      "test/internal/structure.test.ts",
    ],
    least: 95,
  },
  {
    name: "inbox",
    sources: ["src/inbox/**/*.ts"],
    tests: ["test/inbox/**/*.test.ts", "test/stores/memory.test.ts", "test/telemetry/instrumentation.test.ts"],
    least: 95,
  },
  {
    name: "receiver",
    sources: ["src/receiver/**/*.ts"],
    tests: ["test/receiver/**/*.test.ts", "test/telemetry/channels.test.ts", "test/telemetry/instrumentation.test.ts"],
    least: 90,
  },
  {
    name: "internal",
    sources: ["src/internal/**/*.ts", "src/errors.ts"],
    tests: ["test/internal/**/*.test.ts"],
    least: 90,
  },
  {
    name: "adapters",
    sources: ["adapters/**/*.ts"],
    tests: ["test/adapters/**/*.test.ts"],
    least: 90,
  },
];

/** Tests that can tell nothing of a mutant. */
export const LEFT_OUT: readonly string[] = [
  // How long something takes: Stryker slows every statement down, and a mutant that is slower only is none to be killed.
  "test/**/*-speed.test.ts",
  // What they start was compiled, and no mutant is in it.
  "test/**/*-processes.test.ts",
];

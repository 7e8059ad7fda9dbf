/** What is mutated, which tests have to notice, and how many of the mutants: the floors of all rooms are here, and nowhere else. */

export interface Room {
  readonly name: string;
  /** Patterns of sources, from the root of the repository; with `!` of those that another room has. */
  readonly sources: readonly string[];
  /** Patterns of its own tests: narrow, because each mutant is one run. */
  readonly tests: readonly string[];
  /**
   * Percent of the mutants that the tests must kill. Whoever measures a higher score raises it: docs/reliability.md says what each was derived
   * from.
   */
  readonly floor: number;
}

/** A room that was never measured as a whole: so many at least, until it is. */
const UNMEASURED = 80;

export const SIGNATURE: Room = {
  name: "signature",
  sources: [
    "src/sources/keys.ts",
    "src/sources/secret.ts",
    "src/sources/messaging/keyring-source.ts",
    "src/sources/messaging/secret-store.ts",
    "src/sources/messaging/sign.ts",
    "src/sources/messaging/verify*.ts",
    "src/sources/headers.ts",
    "src/sources/hmac-key.ts",
    "src/sources/keyring-provider.ts",
    "src/internal/same-secret.ts",
  ],
  // What a build may lack is tested where each maker of a secret is.
  tests: ["test/sources/**/*.test.ts", "test/internal/environment.test.ts"],
  floor: 96,
};

export const OTHER_ROOMS: readonly Room[] = [
  {
    name: "events",
    sources: ["src/sources/messaging/parse.ts", "src/internal/json.ts", "src/inbox/lane-key.ts"],
    tests: [
      "test/sources/messaging/**/*.test.ts",
      "test/inbox/lane-key.test.ts",
      "test/internal/content.test.ts",
      "test/internal/structure.test.ts",
    ],
    floor: 90,
  },
  {
    name: "presets",
    sources: [
      "src/sources/*.ts",
      ...["define-source", "filter", "headers", "hmac-key", "keyring-provider", "keys", "secret", "source"].map(
        (file) => `!src/sources/${file}.ts`,
      ),
    ],
    tests: ["test/sources/*.test.ts"],
    floor: UNMEASURED,
  },
  {
    name: "sources",
    sources: [
      "src/sources/define-source.ts",
      "src/sources/filter.ts",
      "src/sources/source.ts",
      "src/sources/messaging/source.ts",
    ],
    tests: ["test/sources/*.test.ts", "test/receiver/filters.test.ts", "test/receiver/sources.test.ts"],
    floor: UNMEASURED,
  },
  {
    name: "flow",
    sources: ["src/inbox/flow.ts"],
    tests: ["test/inbox/flow.test.ts", "test/inbox/runner.test.ts", "test/inbox/worker*.test.ts"],
    floor: UNMEASURED,
  },
  {
    name: "inbox",
    sources: ["src/inbox/**/*.ts", "!src/inbox/flow.ts", "!src/inbox/lane-key.ts"],
    tests: ["test/inbox/**/*.test.ts", "test/stores/memory.test.ts", "test/tools/telemetry/measuring.test.ts"],
    floor: 94,
  },
  {
    name: "body limits",
    sources: ["src/receiver/body-limits.ts", "src/receiver/incoming.ts"],
    tests: [
      "test/receiver/answers.test.ts",
      "test/receiver/overload.test.ts",
      "test/receiver/reading.test.ts",
      "test/receiver/verifier.test.ts",
    ],
    floor: UNMEASURED,
  },
  {
    name: "receiver",
    sources: ["src/receiver/**/*.ts", "!src/receiver/body-limits.ts", "!src/receiver/incoming.ts"],
    tests: [
      "test/receiver/**/*.test.ts",
      "test/tools/telemetry/measuring.channels.test.ts",
      "test/tools/telemetry/measuring.test.ts",
    ],
    floor: 98,
  },
  {
    // Postgres needs a server, and each of its mutants would take minutes: `planted` changes it.
    name: "stores",
    sources: [
      "src/stores/memory*.ts",
      "src/stores/memory/**/*.ts",
      "src/stores/sqlite*.ts",
      "src/stores/sqlite/**/*.ts",
    ],
    tests: [
      "test/stores/memory.test.ts",
      "test/stores/sqlite.test.ts",
      "test/stores/sqlite-data.test.ts",
      "test/stores/sqlite-e*.test.ts",
      "test/stores/sqlite-fast-paths.test.ts",
      "test/stores/sqlite-o*.test.ts",
      "test/stores/sqlite-secrets.test.ts",
    ],
    floor: UNMEASURED,
  },
  {
    name: "internal",
    sources: ["src/internal/**/*.ts", "src/errors.ts", "!src/internal/same-secret.ts", "!src/internal/json.ts"],
    tests: ["test/internal/**/*.test.ts"],
    floor: 92,
  },
  {
    name: "adapters",
    sources: ["adapters/**/*.ts", "!adapters/**/*.d.ts"],
    tests: ["test/adapters/**/*.test.ts"],
    floor: 90,
  },
];

/** Tests that can tell nothing of a mutant. */
export const LEFT_OUT: readonly string[] = [
  // How long something takes: Stryker slows every statement down, and a mutant that is slower only is none to be killed.
  "test/**/*-speed.test.ts",
  // What they start was compiled, and no mutant is in it.
  "test/**/*-processes.test.ts",
];

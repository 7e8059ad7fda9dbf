/** What is measured behind the same route of Fastify, and what each has made sure of when it answers with a 2xx. */

/** What an event outlives once its delivery was answered. */
export type Outlives = "a power cut" | "the process" | "nothing";

export interface SideFacts {
  readonly label: string;
  readonly outlives: Outlives;
  /** What was done before the 2xx. */
  readonly before: string;
}

export const SIDES = {
  accept: {
    label: "oncehook on SQLite",
    outlives: "a power cut",
    before: "committed with others that came meanwhile, and synced; a duplicate is known by its identity",
  },
  postgres: {
    label: "oncehook on Postgres",
    outlives: "a power cut",
    before: "committed with others that came meanwhile, and synced by the server; a duplicate is known by its identity",
  },
  memory: {
    label: "oncehook in memory",
    outlives: "nothing",
    before:
      "kept in the process, and handled: a store that is not durable answers only then; a duplicate is known by its identity",
  },
  insert: {
    label: "one Postgres insert a request",
    outlives: "a power cut",
    before: "a Postgres row committed and synced, `on conflict do nothing` on the identity",
  },
  "pg-boss": {
    label: "pg-boss",
    outlives: "a power cut",
    before: "a Postgres job committed and synced; duplicates are kept",
  },
  "graphile-worker": {
    label: "graphile-worker",
    outlives: "a power cut",
    before: "a Postgres job committed and synced, with the identity as its key",
  },
  "bullmq-always": {
    label: "BullMQ, Redis syncs always",
    outlives: "a power cut",
    before: "a Redis job synced (`appendfsync always`), with the identity as its id",
  },
  "bullmq-everysec": {
    label: "BullMQ, Redis syncs every second",
    outlives: "the process",
    before:
      "a Redis job written, with the identity as its id; what came in the last second or two can be lost with the machine's power (`appendfsync everysec`)",
  },
  verify: { label: "Fastify, verifies and parses", outlives: "nothing", before: "verified and parsed" },
  bare: { label: "Fastify, reads the body", outlives: "nothing", before: "the body was read" },
} as const satisfies Record<string, SideFacts>;

export type Side = keyof typeof SIDES;

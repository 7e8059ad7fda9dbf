/** What each line of `oncehook inbox … --json` is, field by field: docs/cli.md tells the same. */
import { z } from "zod";

const id = z.int().positive();
const time = z.int().positive();
const count = z.int().nonnegative();
const text = z.string();
const order = z.enum(["sequence", "position", "arrival"]).nullable();
const key = { laneId: id, source: text, tenant: text.nullable(), lane: text.nullable(), order };
const state = z.enum(["pending", "done", "dead", "late", "discarded"]);

const eventFields = {
  ...{
    id,
    ...key,
    ownId: text.nullable(),
    identity: z.string().length(64).nullable(),
    sequence: count,
    eventType: text,
    state,
  },
  outcome: z.enum(["handled", "unhandled"]).nullable(),
  ...{ late: z.boolean(), forced: z.boolean(), conflict: z.boolean() },
  ...{ occurredAt: time, signedAt: time, acceptedAt: time, startedAt: time.nullable(), finishedAt: time.nullable() },
  ...{ attempts: count, duplicates: count, errorCode: text.nullable(), error: text.nullable(), hasBody: z.boolean() },
};

const masked = z.strictObject({ masked: z.unknown() });
const body = z.union([masked, z.strictObject({ text }), z.strictObject({ base64: text })]);

const laneFields = {
  ...{ ...key, status: z.enum(["idle", "ready", "gap", "leased", "backoff", "blocked"]) },
  ...{ cursor: count.nullable(), readyAt: time.nullable(), gapSince: time.nullable() },
  ...{ peer: text.nullable(), externalReference: text.nullable() },
};

const failure = { durationMs: z.number(), errorCode: text, error: text };
const attempt = z.strictObject({ eventId: id, attempt: id, at: time, ...failure });
const gap = z.strictObject({ from: count, to: count, skippedAt: time, filledAt: time.nullable() });

const quarantineFields = {
  ...{
    id,
    source: text,
    tenant: text.nullable(),
    reason: text,
    slot: text,
    kinds: z.array(text),
    state: z.enum(["held", "replayed", "discarded"]),
  },
  ...{ replayedAs: id.nullable(), signedAt: time, acceptedAt: time, digest: text, hasBody: z.boolean(), bytes: count },
};

const left = { in_progress: count, body_pruned: count, not_found: count, wrong_state: count, dryRun: z.boolean() };
const refusal = z.enum(["not_found", "in_progress", "body_pruned", "wrong_state", "invalid_event"]);
const ended = z.union([z.enum(["replayed", "discarded"]), refusal]);
const freed = z.union([z.enum(["unblocked", "released"]), refusal]);

export const SCHEMAS = {
  event: z.strictObject(eventFields),
  errorGroup: z.strictObject({
    ...{ errorCode: text.nullable(), error: text.nullable(), count: id, oldestAt: time, newestAt: time, exampleId: id },
  }),
  message: z.strictObject({
    ...laneFields,
    ...{ more: z.boolean(), events: z.array(z.strictObject({ ...eventFields, body: body.nullable() })) },
    ...{ gaps: z.array(gap), attempts: z.array(attempt) },
  }),
  lane: z.strictObject({
    ...laneFields,
    newest: z.strictObject({ id, ownId: text.nullable(), eventType: text, sequence: count, acceptedAt: time, state }),
  }),
  stats: z.strictObject({
    ...{ location: text, name: text, toleranceMs: count },
    ...{ gauges: z.record(text, count), counters: z.record(text, count), instances: z.array(z.unknown()) },
    ...{ oldestPendingAt: time.nullable(), newestSignedAt: time.nullable(), serviceResigns: z.boolean() },
  }),
  audit: z.strictObject({ id, at: time, by: text, act: text, detail: text }),
  replay: z.strictObject({ replayed: count, superseded: count, ...left }),
  discard: z.strictObject({ discarded: count, ...left }),
  eventAct: z.strictObject({ event: id, result: ended }),
  laneAct: z.strictObject({ laneId: id, event: id.optional(), result: freed }),
  quarantined: z.strictObject(quarantineFields),
  quarantinedBody: z.strictObject({ ...quarantineFields, body: body.nullable() }),
  quarantineAct: z.strictObject({ quarantined: id, event: id.optional(), result: ended }),
  held: z.looseObject({ kind: z.enum(["event", "quarantined"]) }),
  erase: z.strictObject({ erased: count }),
  prune: z.strictObject({ bodies: count, events: count, lanes: count, quarantined: count }),
  migrate: z.strictObject({ location: text, migrated: z.boolean(), from: count.nullable(), to: count.nullable() }),
  copy: z.strictObject({
    ...{ from: text, to: text, lanes: count, events: count, bodies: count },
    ...{ gaps: count, attempts: count, conflicts: count },
    ...{ pending: count, done: count, dead: count, late: count, discarded: count, quarantined: count, audit: count },
    ...{ lanesBefore: count, moved: z.boolean() },
  }),
  reopen: z.strictObject({ reopened: z.boolean(), movedTo: text.nullable() }),
};

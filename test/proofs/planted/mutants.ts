/**
 * The mutants of rooms.ts that were tried, as `node scripts/run.mjs test/proofs/planted/candidates.ts` makes them: those that a programme and a test
 * find are bugs, some do no harm, and some are not seen by any programme yet. The digest that samples them goes by their names: most are of the
 * sample of 27 November, when a name quoted the code.
 */
import type { Bug } from "./bugs.ts";

/** Named by its function and what changes there, without a name of a local variable, and found in the syntax tree: `isDue: <= to <`. */
interface Mutant extends Pick<Bug, "name" | "room"> {}

export interface FoundMutant extends Mutant, Pick<Bug, "caughtBy" | "says" | "tests" | "inSmall"> {}

export interface HarmlessMutant extends Mutant {
  /** Why no invariant breaks. */
  readonly reason: string;
}

export const MUTANTS: readonly FoundMutant[] = [
  {
    room: "accept",
    name: "#succeeded: === to !==",
    caughtBy: "operators",
    tests: "test/inbox/batcher.test.ts",
    // Whatever it asks for first: nothing ends.
    says: "does not ",
  },
  {
    room: "accept",
    name: "place: === to !== (2)",
    caughtBy: "operators",
    tests: "test/stores/sqlite-data.test.ts",
    says: "erased, and still in",
  },
  {
    room: "accept",
    name: "readSigned: === to !== (2)",
    caughtBy: "fuzz",
    tests: "test/sources/messaging/verify.test.ts",
    says: "was refused, though it is as it was signed",
  },
  {
    room: "claim",
    name: "#pass: !== to ===",
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "Cannot destructure property",
  },
  {
    room: "claim",
    name: "heldIn: === to !== (2)",
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "erased, and still in",
  },
  {
    room: "settle",
    name: "heldEvent: !== to === (3)",
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "The event was not settled",
  },
  {
    room: "settle",
    name: "completeWith: arguments of runEffect() swapped",
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "unsettled: ",
  },
  {
    room: "settle",
    name: "completeLast: dropped count()",
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "counted: ",
  },
  {
    room: "settle",
    name: "ends: ! dropped",
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "unsettled: ",
  },
  {
    room: "prune",
    name: "pruneEvents: arguments of removeEmptyLane() swapped",
    caughtBy: "operators",
    tests: "test/stores/sqlite-erase-prune.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "prune",
    inSmall: true,
    name: "retentionEnds: ?? to &&",
    caughtBy: "clock",
    tests: "test/stores/memory.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "prune",
    name: "endsOf: ?? to &&",
    caughtBy: "clock",
    tests: "test/stores/sqlite.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "replay",
    inSmall: true,
    name: "replay: if never (3)",
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "counted: ",
  },
  {
    room: "replay",
    name: "perform: arguments of heldQuarantine() swapped",
    caughtBy: "operators",
    tests: "test/receiver/quarantine.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "copy",
    inSmall: true,
    name: "exportLanes: 1 plus one",
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "copied: not the same events",
  },
  {
    room: "copy",
    name: "copyContent: arguments of lanePages() swapped",
    caughtBy: "operators",
    tests: "test/inbox/copy.test.ts",
    says: "export is not a function",
  },
  {
    room: "copy",
    name: "importPage: !== to === (2)",
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "StoreError: ",
  },
  {
    room: "rotation",
    name: "previousEnd: arguments of livePrevious() swapped",
    caughtBy: "rotations",
    tests: "test/messaging/rotation/rotate-secret.status.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "rotation",
    inSmall: true,
    name: "untilReceiversAreReady: === to !==",
    caughtBy: "rotations",
    tests: "test/messaging/rotation/waiting.test.ts",
    says: "receivers were waited for",
  },
  {
    room: "client",
    name: "request: 200 plus one",
    caughtBy: "sends",
    tests: "test/messaging/client/client.calls.test.ts",
    says: "never ended in success: OAuthError",
  },
  {
    room: "inspector",
    name: "createLoopbackSession: arguments of cookieOf() swapped",
    caughtBy: "operators",
    tests: "test/tools/inspector/access.loopback.test.ts",
    says: "the page with the cookie was answered with 401",
  },
  {
    room: "inspector",
    name: "refusedPost: ?? to &&",
    caughtBy: "operators",
    tests: "test/tools/inspector/access.guard.test.ts",
    says: "the inspector refused POST",
  },
  {
    room: "inspector",
    name: "isOwnSite: === to !== (5)",
    caughtBy: "operators",
    tests: "test/tools/inspector/access.guard.test.ts",
    says: "the inspector refused GET",
  },
  {
    room: "inspector",
    inSmall: true,
    name: "createGuard: === to !==",
    caughtBy: "operators",
    tests: "test/tools/inspector/access.guard.test.ts",
    says: "the inspector refused GET",
  },
  {
    room: "sources",
    name: "locate: === to !== (2)",
    caughtBy: "sim",
    tests: "test/sources/order.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "claim",
    name: "backoffMs: 1 plus one",
    caughtBy: "sim",
    says: " not within ",
    tests: "test/inbox/backoff.test.ts",
  },
  {
    room: "claim",
    name: "gapBefore: === to !==",
    caughtBy: "sim",
    tests: "test/inbox/gap.test.ts",
    says: "before the wait for",
  },
  {
    room: "accept",
    name: "acceptByRules: if (insertEvent) dropped",
    caughtBy: "sim",
    tests: "test/stores/sqlite.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "flow",
    name: "#start: dropped set() (3)",
    tests: "test/inbox/flow.test.ts",
  },
  {
    room: "body limits",
    name: "#sweepNow: && to ||",
    tests: "test/receiver/overload.test.ts",
  },
  {
    room: "body limits",
    name: "#makeRoom: if never",
    tests: "test/receiver/reading.test.ts",
  },
];

export const STRUCK_OUT: readonly HarmlessMutant[] = [
  {
    room: "settle",
    name: "finished: === to !==",
    reason: "It decides how many leases a process takes ahead, and no invariant.",
  },
  {
    room: "prune",
    name: "PRUNABLE: < to <= in SQL",
    reason: "A row goes at its last millisecond, and not one later.",
  },
  {
    room: "rotation",
    name: "commit: true flipped",
    reason: "The result of a rotation says who made the secret, and nothing else reads it.",
  },
  {
    room: "rotation",
    name: "begin: dropped throwIfAborted()",
    reason: "An abort is noticed at the next step instead of this one.",
  },
  {
    room: "emulator",
    name: "handleSend: === to !== (2)",
    reason: "A recipient that fails once is a tool for tests of the emulator, and no promise of the service.",
  },
  {
    room: "emulator",
    name: "recover: !== to === (2)",
    reason: "The list of deliveries that a control call tried again is an answer for tests.",
  },
  {
    room: "sources",
    name: "verify: if never (2)",
    reason: "Only the holder of the secret can sign a time that is not a number.",
  },
  {
    room: "sources",
    name: "liveAt: > to >=",
    reason: "A secret is live for the millisecond in which it ends, or not.",
  },
  {
    room: "sources",
    name: "hmac: if (sha256) dropped",
    reason: "The quick way of the same digest.",
  },
  {
    room: "accept",
    name: "parseCandidates: === to !==",
    reason: "The quick way for the usual form: the reader of lists takes the same texts.",
  },
  {
    room: "erase",
    name: "erase: === to !== (2)",
    reason: "A retry comes earlier than planned, or a lane that needs nothing is looked at again.",
  },
  {
    room: "replay",
    name: "discard: && to || (2)",
    reason: "What waits behind a discarded event begins at the end of the backoff instead of at once.",
  },
  {
    room: "sources",
    name: "piecesOf: !== to === (2)",
    reason: "No source can be made with it, so no process begins.",
  },
  {
    room: "emulator",
    name: "targetOf: if (enabled, endpointUrl) never",
    reason: "The emulator delivers to a webhook that is switched off: no invariant of a receiver or of a client.",
  },
  {
    room: "emulator",
    name: "afterAttempt: if (trigger, schedule) never",
    reason:
      "The emulator counts a delivery that was asked for by hand as a retry of the plan: no invariant of a receiver or of a client.",
  },
];

/** They may break an invariant, and no programme was seen to find them yet, or no test. */
export const UNSEEN: readonly Mutant[] = [
  {
    room: "claim",
    name: "claim: dropped apply()",
  },
  {
    room: "claim",
    name: "arm: if (forced) dropped",
  },
  {
    room: "accept",
    name: "#commitAccepts: if dropped",
  },
  {
    room: "effects",
    name: "#try: === to !== (2)",
  },
  {
    room: "effects",
    name: "#failed: || to && (2)",
  },
  {
    room: "effects",
    name: "#fateOf: if never",
  },
  {
    room: "effects",
    name: "isSuspect: if never",
  },
  {
    room: "replay",
    name: "replayQuarantined: if (outcome, failed) dropped",
  },
  {
    room: "copy",
    name: "copyOpen: if (sameNumbers, counters) never",
  },
  {
    room: "settle",
    name: "endWith: = to <> in SQL (8)",
  },
  {
    room: "erase",
    name: "restOf: false flipped",
  },
  {
    room: "erase",
    name: "createSubjectTest: || to &&",
  },
  {
    room: "client",
    name: "#planOf: if (meaningOf, error, UnauthorizedError) never",
  },
  {
    room: "client",
    name: "attempt: dropped local +=",
  },
  {
    room: "client",
    name: "retryDelay: ! dropped (2)",
  },
  {
    room: "flow",
    name: "#startsOf: dropped shift()",
  },
  {
    room: "flow",
    name: "remove: if dropped",
  },
  {
    room: "flow",
    name: "ended: if never",
  },
  {
    room: "body limits",
    name: "#mostStalled: dropped local = (2)",
  },
  {
    room: "body limits",
    name: "verify: if never (4)",
  },
];

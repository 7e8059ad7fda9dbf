/** Where mutants are made: the lines of each room that keep an invariant, and how many of their mutants are tried. */

export interface Room {
  readonly name: string;
  /** How many mutants are taken from these places. */
  readonly sampled: number;
  /** Files, and in each the functions, methods or constants that keep an invariant. */
  readonly places: Readonly<Record<string, readonly string[]>>;
}

export const ROOMS: readonly Room[] = [
  {
    name: "accept",
    sampled: 6,
    places: {
      "src/sources/messaging/verify.ts": ["readSigned", "parseTimestamp", "parseCandidates"],
      "src/sources/keys.ts": ["compiled", "previousEnd", "addSlot", "covering", "covers", "refuseNameless"],
      "src/sources/define-source.ts": ["checkAge"],
      "src/inbox/lane-key.ts": ["identityText", "isShared"],
      "src/inbox/lane.ts": ["arrivalOf", "#sequenceAt", "armArrival", "#mayRearm", "countArrival"],
      "src/inbox/group-commit.ts": ["#commit", "#commitAccepts", "#succeeded", "#failed"],
      "src/stores/sqlite/batch.ts": ["acceptByRules", "place", "knownById", "countRepeat", "amend"],
    },
  },
  {
    name: "claim",
    sampled: 6,
    places: {
      "src/inbox/gap.ts": ["arm", "armHeldBack", "gapSinceWithout", "isDue", "gapBefore", "gapDueAt", "backoffMs"],
      "src/inbox/lane.ts": ["claim", "#take", "lease", "#pass", "#passOver", "#retire", "schedule", "moveCursor"],
      "src/stores/sqlite/lanes.ts": ["claimDue", "claimLane", "claimOnly", "recoveryDue", "heads", "heldIn"],
      "src/stores/postgres/lanes.ts": ["DUE", "EXPIRED", "PENDING", "takeLease", "SOONEST"],
    },
  },
  {
    name: "settle",
    sampled: 6,
    places: {
      "src/inbox/lane.ts": ["heldEvent", "#ended", "#die"],
      "src/inbox/claims.ts": ["add", "finished", "#renew", "#drop", "takeWaiting"],
      "src/stores/sqlite/lanes.ts": ["settle", "complete", "completeWith", "completeLast", "ends"],
      "src/stores/postgres/end-lease.ts": ["endLease", "endWith"],
    },
  },
  {
    name: "effects",
    sampled: 4,
    places: {
      "src/stores/sqlite/lanes.ts": ["runEffect"],
      "src/stores/sqlite/transaction.ts": ["immediately", "inTransaction", "rollBack", "restore"],
      "src/stores/postgres/effects.ts": ["#try", "#settle", "#end", "#begin", "#fateOf", "#failed", "isSuspect"],
      "src/stores/postgres/declared-effects.ts": ["#try", "#judge", "#sendEach", "settle"],
    },
  },
  {
    name: "prune",
    sampled: 4,
    places: {
      "src/inbox/store-rules.ts": ["retentionEnds"],
      "src/stores/sqlite/prune.ts": ["PRUNABLE", "prune", "pruneEvents", "pruneBodies", "endsOf", "removeEmptyLane"],
      "src/receiver/options.ts": ["retentionOption"],
    },
  },
  {
    name: "erase",
    sampled: 3,
    places: {
      "src/inbox/subject.ts": ["createSubjectTest", "createMentionTest", "hasValue", "standsIn", "unescaped"],
      "src/inbox/lane.ts": ["erase"],
      "src/stores/sqlite/operator.ts": ["eraseBatch", "eraseLanes", "eraseQuarantined", "silent", "namedIn", "restOf"],
    },
  },
  {
    name: "replay",
    sampled: 4,
    places: {
      "src/inbox/lane.ts": ["replay", "discard", "#obstacle", "#endWaitOf", "unblock", "releaseGap"],
      "src/inbox/store-rules.ts": ["meetsPrecondition"],
      "src/receiver/bulk.ts": ["isSuperseded", "isInProgress", "turn"],
      "src/stores/sqlite/operator.ts": ["replayQuarantined", "perform"],
    },
  },
  {
    name: "copy",
    sampled: 4,
    places: {
      "src/inbox/copy.ts": ["copyOpen", "copyContent", "importInto", "refuseWorking", "compare", "differs", "#add"],
      "src/inbox/store-rules.ts": ["withoutLease"],
      "src/stores/sqlite/transfer.ts": ["take", "takeLane", "isFrom", "importPage", "exportLanes", "byLane", "EVENTS"],
    },
  },
  {
    name: "rotation",
    sampled: 4,
    places: {
      "src/messaging/rotation/rotate-secret.ts": [
        "commit",
        "handOver",
        "install",
        "endingOf",
        "isLatest",
        "begin",
        "takeBackIfTooMany",
      ],
      "src/messaging/rotation/slots.ts": [
        "livePrevious",
        "liveSecrets",
        "previousEnd",
        "withNext",
        "withPrevious",
        "stillOpen",
      ],
      "src/messaging/rotation/waiting.ts": ["notReady", "untilReceiversAreReady", "livingOf"],
    },
  },
  {
    name: "client",
    sampled: 4,
    places: {
      "src/messaging/client/attempts.ts": [
        "request",
        "attempt",
        "isRedirect",
        "coreAdvice",
        "isTransient",
        "retryDelay",
        "isRefusedForNow",
      ],
      "src/messaging/client/call.ts": ["run", "#planOf", "#begun"],
      "src/messaging/client/client.ts": ["messagesSendCall"],
      "src/messaging/client/token.ts": ["heldToken", "invalidate", "#ask", "#asking"],
    },
  },
  {
    name: "emulator",
    sampled: 4,
    places: {
      "src/messaging/emulator/delivery/attempt.ts": ["afterAttempt", "retryAt", "succeeded", "countOf", "atAfter"],
      "src/messaging/emulator/delivery/deliveries.ts": ["nextAttempt", "recover", "targetOf", "secretsOf", "renewed"],
      "src/messaging/emulator/routes/send.ts": ["handleSend", "recall", "keyOf", "isOver"],
    },
  },
  {
    name: "inspector",
    sampled: 4,
    places: {
      "src/tools/inspector/access.ts": [
        ...["createGuard", "isOwnOrigin", "isOwnSite", "refusedMethod", "refusedPost", "includes", "grantedBy", "use"],
        ...["authorization", "createLoopbackSession", "open"],
      ],
      "src/tools/inspector/inspector.ts": ["handle", "#answer", "reauthorize", "denied"],
    },
  },
  {
    name: "sources",
    sampled: 5,
    places: {
      "src/sources/stripe.ts": ["verify", "partsOf", "parse", "laneOf"],
      "src/sources/hmac-source.ts": ["verify", "place", "piecesOf"],
      "src/sources/twilio.ts": ["verify", "isTwilioUrl", "bodyDigestIn", "place", "portsOf"],
      "src/sources/define-source.ts": ["match", "liveAt", "read", "locate", "isEpochMs"],
      "src/sources/keys.ts": ["mergeEqualSecrets", "refuseNamelessAmongTenants", "hmac"],
      "src/sources/filter.ts": ["refusalOf", "filtered"],
    },
  },
  {
    name: "flow",
    sampled: 4,
    places: {
      "src/inbox/flow.ts": [
        ...[
          "next",
          "ended",
          "takeAll",
          "remove",
          "#keyOf",
          "#mayStart",
          "#startsOf",
          "#freeOf",
          "#start",
          "#plan",
          "#reserve",
        ],
        ...["#wanted", "#reserved", "#notReserved", "#park", "#parkByConcurrency", "reserve", "parkMs"],
      ],
    },
  },
  {
    name: "body limits",
    sampled: 4,
    places: {
      "src/receiver/body-limits.ts": [
        ...[
          "verify",
          "#matched",
          "#matchInParts",
          "#waitedFor",
          "received",
          "finish",
          "release",
          "cut",
          "ended",
          "wait",
          "waited",
        ],
        ...["#sweepNow", "#makeRoom", "#hasTurn", "#askPaused", "#cutHeaviest", "#cutStalled", "#mostStalled"],
      ],
    },
  },
];

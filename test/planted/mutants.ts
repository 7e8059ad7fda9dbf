/**
 * The mutants of rooms.ts that were tried, as `node scripts/run.mjs test/planted/candidates.ts` makes them: those that a programme and a test
 * find are bugs, some do no harm, and some are not seen by any programme yet.
 */
import type { Bug, Edit } from "./bugs.ts";

interface Mutant extends Pick<Bug, "name" | "room"> {
  readonly edit: Edit;
}

export interface FoundMutant extends Mutant, Pick<Bug, "caughtBy" | "says" | "tests" | "inSmall"> {}

export interface HarmlessMutant extends Mutant {
  /** Why no invariant breaks. */
  readonly reason: string;
}

export const MUTANTS: readonly FoundMutant[] = [
  {
    room: "accept",
    name: "#succeeded: === to !==",
    edit: {
      file: "src/inbox/group-commit.ts",
      find: 'if (settled.status === "unfinished") unfinished.push(queued);',
      replace: 'if (settled.status !== "unfinished") unfinished.push(queued);',
    },
    caughtBy: "operators",
    tests: "test/inbox/batcher.test.ts",
    // Whatever it asks for first: nothing ends.
    says: "does not ",
  },
  {
    room: "accept",
    name: "place: work.kindTable and incoming.eventType swapped",
    edit: {
      file: "src/stores/sqlite/batch.ts",
      find: "const kind = first !== undefined ? 0 : work.facts.kinds.id(work.kindTable, incoming.eventType);",
      replace: "const kind = first !== undefined ? 0 : work.facts.kinds.id(incoming.eventType, work.kindTable);",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite-data.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "accept",
    name: "checkHeaders: === to !==",
    edit: {
      file: "src/service/verify.ts",
      find: 'if (signatureText === undefined) return failure("missing_signature");',
      replace: 'if (signatureText !== undefined) return failure("missing_signature");',
    },
    caughtBy: "fuzz",
    tests: "test/service/verify.test.ts",
    says: "was refused, though it is as it was signed",
  },
  {
    room: "claim",
    name: "#pass: !== to ===",
    edit: {
      file: "src/inbox/lane.ts",
      find: "if (missing !== null) {",
      replace: "if (missing === null) {",
    },
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "Cannot destructure property",
  },
  {
    room: "claim",
    name: "heldIn: === to !==",
    edit: {
      file: "src/stores/sqlite/lanes.ts",
      find: "return lane === undefined || event === null ? null : { lane, event };",
      replace: "return lane === undefined || event !== null ? null : { lane, event };",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "erased, and still in",
  },
  {
    room: "settle",
    name: "heldEvent: !== to ===",
    edit: {
      file: "src/inbox/lane.ts",
      find: "if (lane === undefined || lane.leased !== ref.event || lane.token !== ref.token || lane.holder !== holder)",
      replace:
        "if (lane === undefined || lane.leased !== ref.event || lane.token !== ref.token || lane.holder === holder)",
    },
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "The event was not settled",
  },
  {
    room: "settle",
    name: "completeWith: connection and effect swapped",
    edit: {
      file: "src/stores/sqlite/lanes.ts",
      find: "for (const effect of effects) runEffect(connection, effect);",
      replace: "for (const effect of effects) runEffect(effect, connection);",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "unsettled: ",
  },
  {
    room: "settle",
    name: "completeLast: dropped tally.count(outcome);",
    edit: {
      file: "src/stores/sqlite/lanes.ts",
      find: "tally.count(outcome);",
      replace: "{}",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "counted: ",
  },
  {
    room: "settle",
    name: "ends: ! dropped",
    edit: {
      file: "src/stores/sqlite/lanes.ts",
      find: "if (!db.inTransaction) return false;",
      replace: "if (db.inTransaction) return false;",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite-effects.test.ts",
    says: "unsettled: ",
  },
  {
    room: "prune",
    name: "pruneEvents: work and lane swapped",
    edit: {
      file: "src/stores/sqlite/prune.ts",
      find: "if (removeEmptyLane(work, lane)) lanes++;",
      replace: "if (removeEmptyLane(lane, work)) lanes++;",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite-erase-prune.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "prune",
    inSmall: true,
    name: "retentionEnds: ?? to &&",
    edit: {
      file: "src/inbox/store-rules.ts",
      find: "return { timed: Math.min(now, newestSigned ?? now), untimed: now };",
      replace: "return { timed: Math.min(now, newestSigned && now), untimed: now };",
    },
    caughtBy: "clock",
    tests: "test/stores/memory.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "prune",
    name: "endsOf: ?? to &&",
    edit: {
      file: "src/stores/sqlite/prune.ts",
      find: 'const newest = sql.readCounter.get("newest_signed")?.value ?? -1;',
      replace: 'const newest = sql.readCounter.get("newest_signed")?.value && -1;',
    },
    caughtBy: "clock",
    tests: "test/stores/sqlite.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "replay",
    inSmall: true,
    name: "replay: if (mayRearm) never",
    edit: {
      file: "src/inbox/lane.ts",
      find: "if (mayRearm) this.rearm(lane);",
      replace: "if (false) this.rearm(lane);",
    },
    caughtBy: "operators",
    tests: "test/stores/memory.test.ts",
    says: "counted: ",
  },
  {
    room: "replay",
    name: "perform: work and request.quarantine swapped",
    edit: {
      file: "src/stores/sqlite/operator.ts",
      find: "const row = heldQuarantine(work, request.quarantine);",
      replace: "const row = heldQuarantine(request.quarantine, work);",
    },
    caughtBy: "operators",
    tests: "test/receiver/quarantine.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "copy",
    inSmall: true,
    name: "exportLanes: 1 plus one",
    edit: {
      file: "src/stores/sqlite/transfer.ts",
      find: "const range = [lanes[0]?.id ?? 0, lanes.at(-1)?.id ?? 0];",
      replace: "const range = [lanes[0]?.id ?? 0, lanes.at(-2)?.id ?? 0];",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "copied: not the same events",
  },
  {
    room: "copy",
    name: "copyContent: options.from and after swapped",
    edit: {
      file: "src/inbox/copy.ts",
      find: "for await (const lanes of lanePages(options.from, after)) {",
      replace: "for await (const lanes of lanePages(after, options.from)) {",
    },
    caughtBy: "operators",
    tests: "test/inbox/copy.test.ts",
    says: "export is not a function",
  },
  {
    room: "copy",
    name: "importPage: !== to ===",
    edit: {
      file: "src/stores/sqlite/transfer.ts",
      find: "return { ok: true, lastLane: last, finished: finished || page.totals !== null };",
      replace: "return { ok: true, lastLane: last, finished: finished || page.totals === null };",
    },
    caughtBy: "operators",
    tests: "test/stores/sqlite.test.ts",
    says: "StoreError: ",
  },
  {
    room: "rotation",
    name: "previousEnd: slots and now swapped",
    edit: {
      file: "src/rotation/slots.ts",
      find: "const ends = livePrevious(slots, now).map(({ validUntil }) => validUntil);",
      replace: "const ends = livePrevious(now, slots).map(({ validUntil }) => validUntil);",
    },
    caughtBy: "rotations",
    tests: "test/rotation/status.test.ts",
    says: "Cannot read properties of undefined",
  },
  {
    room: "rotation",
    inSmall: true,
    name: "untilReceiversAreReady: === to !==",
    edit: {
      file: "src/rotation/waiting.ts",
      find: 'if (look.outcome === "ready") {',
      replace: 'if (look.outcome !== "ready") {',
    },
    caughtBy: "rotations",
    tests: "test/rotation/waiting.test.ts",
    says: "receivers were waited for",
  },
  {
    room: "client",
    name: "request: 200 plus one",
    edit: {
      file: "src/client/attempts.ts",
      find: "const refusal = status >= 200 && status < 300 ? null : plan.refusal(outcome);",
      replace: "const refusal = status >= 201 && status < 300 ? null : plan.refusal(outcome);",
    },
    caughtBy: "sends",
    tests: "test/client/calls.test.ts",
    says: "never ended in success: OAuthError",
  },
  {
    room: "inspector",
    name: "createLoopbackSession: headers.cookie and name swapped",
    edit: {
      file: "src/inspector/access.ts",
      find: "authorize: ({ headers }) => isSameSecret(cookieOf(headers.cookie, name), session) && { access, by },",
      replace: "authorize: ({ headers }) => isSameSecret(cookieOf(name, headers.cookie), session) && { access, by },",
    },
    caughtBy: "operators",
    tests: "test/inspector/loopback.test.ts",
    says: "the page with the cookie was answered with 401",
  },
  {
    room: "inspector",
    name: "refusedPost: ?? to &&",
    edit: {
      file: "src/inspector/access.ts",
      find: 'const [type = ""] = (readHeader(headers, "content-type") ?? "").split(";");',
      replace: 'const [type = ""] = (readHeader(headers, "content-type") && "").split(";");',
    },
    caughtBy: "operators",
    tests: "test/inspector/guard.test.ts",
    says: "the inspector refused POST",
  },
  {
    room: "inspector",
    name: "isOwnSite: === to !==",
    edit: {
      file: "src/inspector/access.ts",
      find: 'readHeader(headers, "sec-fetch-mode") === "navigate" && readHeader(headers, "sec-fetch-dest") === "document";',
      replace:
        'readHeader(headers, "sec-fetch-mode") === "navigate" && readHeader(headers, "sec-fetch-dest") !== "document";',
    },
    caughtBy: "operators",
    tests: "test/inspector/guard.test.ts",
    says: "the inspector refused GET",
  },
  {
    room: "inspector",
    inSmall: true,
    name: "createGuard: === to !==",
    edit: {
      file: "src/inspector/access.ts",
      find: 'return refusedMethod(head.method, place) ?? (head.method === "POST" ? refusedPost(headers) : null);',
      replace: 'return refusedMethod(head.method, place) ?? (head.method !== "POST" ? refusedPost(headers) : null);',
    },
    caughtBy: "operators",
    tests: "test/inspector/guard.test.ts",
    says: "the inspector refused GET",
  },
  {
    room: "sources",
    name: "placeOf: === to !==",
    edit: {
      file: "src/sources/define-source.ts",
      find: "if (lane === null) return ALONE;",
      replace: "if (lane !== null) return ALONE;",
    },
    caughtBy: "sim",
    tests: "test/presets/order.test.ts",
    says: "(acknowledged and not stored)",
  },
  {
    room: "claim",
    name: "backoffMs: 1 plus one",
    edit: {
      file: "src/inbox/gap.ts",
      find: "const wait = WAITS[Math.min(Math.max(attempt, 1), WAITS.length) - 1] ?? HOUR;",
      replace: "const wait = WAITS[Math.min(Math.max(attempt, 2), WAITS.length) - 1] ?? HOUR;",
    },
    caughtBy: "sim",
    says: " not within ",
    tests: "test/inbox/backoff.test.ts",
  },
  {
    room: "claim",
    name: "gapBefore: === to !==",
    edit: {
      file: "src/inbox/gap.ts",
      find: 'if (lane.order !== "sequence" || expected === null || head.sequence <= expected) return null;',
      replace: 'if (lane.order !== "sequence" || expected !== null || head.sequence <= expected) return null;',
    },
    caughtBy: "sim",
    tests: "test/inbox/gap.test.ts",
    says: "before the wait for",
  },
  {
    room: "accept",
    name: "acceptByRules: if (!insertEvent(lanes, placed, false)) dropped",
    edit: {
      file: "src/stores/sqlite/batch.ts",
      find: "if (!insertEvent(lanes, placed, false)) return countDuplicate(lanes, placed);",
      replace: "{}",
    },
    caughtBy: "sim",
    tests: "test/stores/sqlite.test.ts",
    says: "(acknowledged and not stored)",
  },
];

export const STRUCK_OUT: readonly HarmlessMutant[] = [
  {
    room: "settle",
    name: "finished: === to !==",
    edit: {
      file: "src/inbox/claims.ts",
      find: "this.#averageMs === null ? durationMs : this.#averageMs + (durationMs - this.#averageMs) * SMOOTHING;",
      replace: "this.#averageMs !== null ? durationMs : this.#averageMs + (durationMs - this.#averageMs) * SMOOTHING;",
    },
    reason: "It decides how many leases a process takes ahead, and no invariant.",
  },
  {
    room: "prune",
    name: "PRUNABLE: < to <= in SQL",
    edit: {
      file: "src/stores/sqlite/prune.ts",
      find: '"select id, lane, keep from oncehook_event where keep is not null and keep = ? and finished < ? and accepted < ? and signed < ? and untimed is null order by finished limit ?";',
      replace:
        '"select id, lane, keep from oncehook_event where keep is not null and keep = ? and finished <= ? and accepted < ? and signed < ? and untimed is null order by finished limit ?";',
    },
    reason: "A row goes at its last millisecond, and not one later.",
  },
  {
    room: "rotation",
    name: "commit: true flipped",
    edit: {
      file: "src/rotation/rotate-secret.ts",
      find: "return { ...ending, generated: true };",
      replace: "return { ...ending, generated: false };",
    },
    reason: "The result of a rotation says who made the secret, and nothing else reads it.",
  },
  {
    room: "rotation",
    name: "begin: dropped rotation.signal?.throwIfAborted();",
    edit: {
      file: "src/rotation/rotate-secret.ts",
      find: "}\n    rotation.signal?.throwIfAborted();",
      replace: "}\n    {}",
    },
    reason: "An abort is noticed at the next step instead of this one.",
  },
  {
    room: "emulator",
    name: "handleSend: === to !==",
    edit: {
      file: "src/emulator/routes/send.ts",
      find: 'if (hasRecipient(call, "errorOnce") && earlier === undefined) {',
      replace: 'if (hasRecipient(call, "errorOnce") && earlier !== undefined) {',
    },
    reason: "A recipient that fails once is a tool for tests of the emulator, and no promise of the service.",
  },
  {
    room: "emulator",
    name: "recover: !== to ===",
    edit: {
      file: "src/emulator/delivery/deliveries.ts",
      find: "return (await Promise.all(tried)).filter((delivery) => delivery !== undefined);",
      replace: "return (await Promise.all(tried)).filter((delivery) => delivery === undefined);",
    },
    reason: "The list of deliveries that a control call tried again is an answer for tests.",
  },
  {
    room: "sources",
    name: "verify: if (signedAt === null) never",
    edit: {
      file: "src/presets/stripe.ts",
      find: "if (signedAt === null) return MALFORMED_TIME;",
      replace: "if (false) return MALFORMED_TIME;",
    },
    reason: "Only the holder of the secret can sign a time that is not a number.",
  },
  {
    room: "sources",
    name: "liveAt: > to >=",
    edit: {
      file: "src/sources/define-source.ts",
      find: "return keys.filter(({ validUntil }) => validUntil > now);",
      replace: "return keys.filter(({ validUntil }) => validUntil >= now);",
    },
    reason: "A secret is live for the millisecond in which it ends, or not.",
  },
  {
    room: "sources",
    name: 'hmac: if (hash === "sha256" && text !== null && la…) dropped',
    edit: {
      file: "src/sources/keys.ts",
      find: 'if (hash === "sha256" && text !== null && last instanceof Uint8Array) return this.#hmac.digest(text, last);',
      replace: "{}",
    },
    reason: "The quick way of the same digest.",
  },
  {
    room: "accept",
    name: "parseCandidates: === to !==",
    edit: {
      file: "src/service/verify.ts",
      find: "if (text.length === 64 && HEX.test(text)) {",
      replace: "if (text.length !== 64 && HEX.test(text)) {",
    },
    reason: "The quick way for the usual form: the reader of lists takes the same texts.",
  },
  {
    room: "erase",
    name: "erase: === to !==",
    edit: {
      file: "src/inbox/lane.ts",
      find: 'const retries = lane.status === "backoff" && head !== undefined && this.#headOf(lane)?.id === head;',
      replace: 'const retries = lane.status !== "backoff" && head !== undefined && this.#headOf(lane)?.id === head;',
    },
    reason: "A retry comes earlier than planned, or a lane that needs nothing is looked at again.",
  },
  {
    room: "replay",
    name: "discard: && to ||",
    edit: {
      file: "src/inbox/lane.ts",
      find: ': lane.status === "backoff" && this.#headOf(lane)?.id === head;',
      replace: ': lane.status === "backoff" || this.#headOf(lane)?.id === head;',
    },
    reason: "What waits behind a discarded event begins at the end of the backoff instead of at once.",
  },
  {
    room: "sources",
    name: "piecesOf: !== to ===",
    edit: {
      file: "src/presets/hmac-source.ts",
      find: 'if (isWrong || !names.includes("body") || new Set(names).size !== names.length) {',
      replace: 'if (isWrong || !names.includes("body") || new Set(names).size === names.length) {',
    },
    reason: "No source can be made with it, so no process begins.",
  },
  {
    room: "emulator",
    name: "targetOf: if (config === undefined || !config.enabled …) never",
    edit: {
      file: "src/emulator/delivery/deliveries.ts",
      find: "if (config === undefined || !config.enabled || config.endpointUrl === null) return null;",
      replace: "if (false) return null;",
    },
    reason: "The emulator delivers to a webhook that is switched off: no invariant of a receiver or of a client.",
  },
  {
    room: "emulator",
    name: 'afterAttempt: if (attempt.trigger !== "schedule") never',
    edit: {
      file: "src/emulator/delivery/attempt.ts",
      find: 'if (attempt.trigger !== "schedule") return counted;',
      replace: "if (false) return counted;",
    },
    reason:
      "The emulator counts a delivery that was asked for by hand as a retry of the plan: no invariant of a receiver or of a client.",
  },
];

/** They may break an invariant, and no programme was seen to find them yet, or no test. */
export const UNSEEN: readonly Mutant[] = [
  {
    room: "claim",
    name: "claim: dropped this.apply(lane, arming);",
    edit: {
      file: "src/inbox/lane.ts",
      find: "this.apply(lane, arming);",
      replace: "{}",
    },
  },
  {
    room: "claim",
    name: "arm: if (head.forced) dropped",
    edit: {
      file: "src/inbox/gap.ts",
      find: 'if (head.forced) return { status: "ready", head, missing: null, gapSince: lane.gapSince };',
      replace: "{}",
    },
  },
  {
    room: "accept",
    name: "#commitAccepts: if (result !== null) dropped",
    edit: {
      file: "src/inbox/group-commit.ts",
      find: "if (result !== null) {\n      answer(batch.accepts, result);\n      // The accepted events may be due, and this batch claims nothing.\n      if (this.#driver.isStarted) this.#wanted = true;\n    }",
      replace: "{}",
    },
  },
  {
    room: "effects",
    name: "#try: === to !==",
    edit: {
      file: "src/stores/postgres/effects.ts",
      find: 'const isDone = fate === "committed" || (await this.#isDone(session, request.lease));',
      replace: 'const isDone = fate !== "committed" || (await this.#isDone(session, request.lease));',
    },
  },
  {
    room: "effects",
    name: "#failed: || to &&",
    edit: {
      file: "src/stores/postgres/effects.ts",
      find: "if (isOfEffects || !isUnanswered(error)) {",
      replace: "if (isOfEffects && !isUnanswered(error)) {",
    },
  },
  {
    room: "effects",
    name: "#fateOf: if (transaction === null) never",
    edit: {
      file: "src/stores/postgres/effects.ts",
      find: "if (transaction === null) return null;",
      replace: "if (false) return null;",
    },
  },
  {
    room: "effects",
    name: "isSuspect: if (!hasBegun) never",
    edit: {
      file: "src/stores/postgres/effects.ts",
      find: "if (!hasBegun) return false;",
      replace: "if (false) return false;",
    },
  },
  {
    room: "replay",
    name: 'replayQuarantined: if (acceptance.outcome === "failed") dropped',
    edit: {
      file: "src/stores/sqlite/operator.ts",
      find: 'if (acceptance.outcome === "failed") throw acceptance.error;',
      replace: "{}",
    },
  },
  {
    room: "copy",
    name: "copyOpen: if (!sameNumbers(counters, before.counters)) never",
    edit: {
      file: "src/inbox/copy.ts",
      find: "if (!sameNumbers(counters, before.counters)) {",
      replace: "if (false) {",
    },
  },
  {
    room: "settle",
    name: "endWith: = to <> in SQL",
    edit: {
      file: "src/stores/postgres/end-lease.ts",
      find: "where l.id = $1::bigint and l.token = $2::bigint and l.leased = $3::bigint and l.holder = $4::int and l.status + 0 = ${STATUS.leased}",
      replace:
        "where l.id = $1::bigint and l.token <> $2::bigint and l.leased = $3::bigint and l.holder = $4::int and l.status + 0 = ${STATUS.leased}",
    },
  },
  {
    room: "erase",
    name: "restOf: false flipped",
    edit: {
      file: "src/stores/sqlite/operator.ts",
      find: "return { lanes: await search.lanes(), quarantined: new Set(await search.quarantined()), replayed: false, isNamedIn };",
      replace:
        "return { lanes: await search.lanes(), quarantined: new Set(await search.quarantined()), replayed: true, isNamedIn };",
    },
  },
  {
    room: "erase",
    name: "createSubjectTest: || to &&",
    edit: {
      file: "src/inbox/subject.ts",
      find: 'const isSilent = isSingle || key.tag === "unlaned" || (byPeer && peer === null);',
      replace: 'const isSilent = isSingle || key.tag === "unlaned" && (byPeer && peer === null);',
    },
  },
  {
    room: "client",
    name: "#planOf: if (meaningOf(refusal).error !== Unauthorize…) never",
    edit: {
      file: "src/client/call.ts",
      find: "if (meaningOf(refusal).error !== UnauthorizedError) return false;",
      replace: "if (false) return false;",
    },
  },
  {
    room: "client",
    name: "attempt: dropped attempts += 1;",
    edit: {
      file: "src/client/attempts.ts",
      find: "attempts += 1;",
      replace: "{}",
    },
  },
  {
    room: "client",
    name: "retryDelay: ! dropped",
    edit: {
      file: "src/client/attempts.ts",
      find: "if (!isTransient(failure) && !(rules.retryRateLimited && isRefusedForNow(failure))) return null;",
      replace: "if (!isTransient(failure) && (rules.retryRateLimited && isRefusedForNow(failure))) return null;",
    },
  },
];

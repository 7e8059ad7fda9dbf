/** Bugs of the kind that receivers of webhooks have, each as a change of our own sources, and who must find it. */

import { MUTANTS } from "./mutants.ts";
import { mutantNamed } from "./mutations.ts";

/** A change of one file, in which `find` must stand exactly once. */
export interface Edit {
  /** From the repository's root. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Bug {
  readonly name: string;
  /** What it is about, as in rooms.ts. */
  readonly room: string;
  /** Default: by hand. */
  readonly madeBy?: "mutation";
  /** It is in the small form too, which runs the programmes alone. */
  readonly inSmall?: true;
  /** The tests that must find it too: a file or a folder, as for `npx vitest run`. */
  readonly tests: string;
  /** The programme, as in `npm run prove -- NAME --small`. */
  readonly caughtBy: string;
  /** A part of the line that it must say: another failure would show something else. */
  readonly says: string;
  /** Default: what mutations.ts makes of its name. */
  readonly edits?: readonly Edit[];
}

const LOST = "(acknowledged and not stored)";
const UNSIGNED = "was accepted, and nobody signed it";

const BY_HAND: readonly Bug[] = [
  {
    name: "NORMAL sync",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-open.test.ts",
    caughtBy: "power",
    says: "lost row-",
    edits: [
      edit("src/stores/sqlite/connection.ts", '"synchronous = FULL"', '"synchronous = NORMAL"'),
      // The store looks what became of its setting.
      edit("src/stores/sqlite/connection.ts", "synchronous === 2 ||", "synchronous === 1 ||"),
    ],
  },
  {
    name: "answer before commit",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/answers.test.ts",
    caughtBy: "crash",
    says: LOST,
    edits: [
      edit(
        "src/receiver/http.ts",
        "const acceptance = await engine.accept(",
        `const acceptance = { outcome: "accepted", event: 0, lane: 0 } as Awaited<ReturnType<typeof engine.accept>>;
        void engine.accept(`,
      ),
    ],
  },
  {
    // What is left is a look into what this process has committed, and then the insert.
    name: "check-then-insert",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-data.test.ts",
    caughtBy: "race",
    says: "double: ",
    edits: [
      edit(
        "src/stores/sqlite/schema.ts",
        "create unique index oncehook_event_identity",
        "create index oncehook_event_identity",
      ),
    ],
  },
  {
    name: "identity from the signature",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/told.test.ts",
    caughtBy: "e2e",
    says: "twice msg_",
    edits: [
      edit(
        "src/service/source.ts",
        "const stored = newEvent(event, body, { signedAt, trace }, gapWaitMs);",
        `const signature = claimed.timestamp === null ? [] : (claimed.candidates[0] ?? []);
        const stored: NewEvent = {
          ...newEvent(event, body, { signedAt, trace }, gapWaitMs),
          lane: { apiClientId: "", tag: "unlaned", messageId: Buffer.from(signature).toString("hex") },
          sequence: 0,
        };`,
      ),
    ],
  },
  {
    name: "prefix compare",
    room: "accept",
    tests: "test/service/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: UNSIGNED,
    edits: [
      edit(
        "src/service/verify.ts",
        "timingSafeEqual(expected, candidate)",
        "timingSafeEqual(expected.subarray(0, 16), candidate.subarray(0, 16))",
      ),
    ],
  },
  {
    name: "re-serialised body",
    room: "accept",
    tests: "test/service/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: UNSIGNED,
    edits: [
      edit(
        "src/service/verify.ts",
        'const bytes = typeof body === "string" ? Buffer.from(body) : body;',
        `let bytes = Buffer.from(body);
        try {
          bytes = Buffer.from(JSON.stringify(JSON.parse(bytes.toString())));
        } catch {}`,
      ),
    ],
  },
  {
    name: "deferred BEGIN",
    inSmall: true,
    room: "accept",
    tests: "test/stores/sqlite-sharing.test.ts",
    caughtBy: "race",
    says: "was answered with 503",
    edits: [
      edit("src/stores/sqlite/transaction.ts", 'db.exec("begin immediate")', 'db.exec("begin")'),
      // What another wrote meanwhile makes it fail; our waiting for locks would try it again, and it were only slower.
      edit("src/stores/sqlite/failures.ts", "/^SQLITE_(BUSY|LOCKED)/", "/^SQLITE_(BUSY|LOCKED)$/"),
    ],
  },
  {
    name: "short retention",
    inSmall: true,
    room: "prune",
    tests: "test/receiver/options.test.ts",
    caughtBy: "clock",
    says: "double: ",
    edits: [
      edit("src/receiver/options.ts", "value?.identitiesMs, 30 * DAY_MS", "value?.identitiesMs, DAY_MS / 144"),
      edit("src/receiver/options.ts", "const shortest = toleranceMs + DAY_MS;", "const shortest = 0 * toleranceMs;"),
    ],
  },
  {
    name: "no fencing",
    inSmall: true,
    room: "settle",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "double: ",
    edits: [
      edit(
        "src/inbox/lane.ts",
        "lane.leased !== ref.event || lane.token !== ref.token || lane.holder !== holder",
        'holder === ""',
      ),
      edit("src/inbox/lane.ts", 'return event?.state === "pending" ? event : null;', "return event;"),
    ],
  },
  {
    name: "future timestamps allowed",
    inSmall: true,
    room: "accept",
    tests: "test/service/verify.test.ts",
    caughtBy: "fuzz",
    says: "(too old or from the future) was accepted wrongly",
    edits: [
      edit(
        "src/service/verify.ts",
        'return timestamp - now > tolerance.futureMs ? "timestamp_in_future" : null;',
        "return null;",
      ),
    ],
  },
  {
    name: "empty secret",
    room: "accept",
    tests: "test/service/secret.test.ts",
    caughtBy: "fuzz",
    says: "an empty text, to the verifier: a request that is signed with nothing passes",
    edits: [
      edit("src/service/secret.ts", 'if (text === "") throw', 'if (text === "never") throw'),
      edit("src/service/secret.ts", 'if (text.trim() === "") throw', 'if (text.trim() === "never") throw'),
      edit("src/service/secret.ts", "const MIN_SECRET_BYTES = 16;", "const MIN_SECRET_BYTES = 0;"),
    ],
  },
  {
    name: "parse before verify",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/answers.test.ts",
    caughtBy: "fuzz",
    says: 'was told {"error":"invalid_event"} before it was verified',
    edits: [
      edit(
        "src/receiver/body-limits.ts",
        "const match = await this.#matched({ claimed, bytes, reading }, { context, keyring, cameAt });",
        `if (!parseEvent(bytes).ok) return refused("signature_mismatch", answers.UNPROCESSABLE);
        const match = await this.#matched({ claimed, bytes, reading }, { context, keyring, cameAt });`,
      ),
      edit(
        "src/receiver/body-limits.ts",
        'import type { Clock, Timer } from "../internal/clock.ts";',
        `import { parseEvent } from "../service/parse.ts";
        import type { Clock, Timer } from "../internal/clock.ts";`,
      ),
    ],
  },
  {
    name: "text HMAC",
    room: "accept",
    tests: "test/service/verify-signature.test.ts",
    caughtBy: "fuzz",
    says: "(body, decodes alike) was accepted, and nobody signed it",
    edits: [
      edit(
        "src/service/verify.ts",
        "key.hmac.digest(signedText, bytes)",
        "key.hmac.digest(signedText, Buffer.from(new TextDecoder().decode(bytes)))",
      ),
    ],
  },
  {
    name: "swallowed store error",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/faults.test.ts",
    caughtBy: "disk",
    says: LOST,
    edits: [
      edit(
        "src/receiver/engine.ts",
        "if (acceptance === null) return reject(this.#notStored(error));",
        'if (acceptance === null) return resolve({ outcome: "accepted", event: 0, lane: 0 });',
      ),
    ],
  },
  {
    name: "prune by wall clock",
    inSmall: true,
    room: "prune",
    tests: "test/stores/memory.test.ts",
    caughtBy: "clock",
    says: LOST,
    edits: [
      edit(
        "src/inbox/store-rules.ts",
        "timed: Math.min(now, newestSigned ?? now)",
        "timed: Math.max(now, newestSigned ?? now)",
      ),
    ],
  },
  {
    // Of several headers of one name the first counts, whatever is in the others.
    name: "header join",
    inSmall: true,
    room: "sources",
    tests: "test/sources/headers.test.ts",
    caughtBy: "fuzz",
    says: "(timestamp, several) was accepted, and nobody signed it",
    edits: [edit("src/sources/headers.ts", 'value.length > 0 ? value.join(", ")', "value.length > 0 ? value[0]")],
  },
  {
    name: "redirects followed",
    inSmall: true,
    room: "forward",
    tests: "test/forward/http.test.ts",
    caughtBy: "sidecar",
    says: "followed a redirect to somebody else",
    edits: [
      edit(
        "src/forward/http.ts",
        "const { statusCode = 0, headers } = response;",
        `const { statusCode = 0, headers } = response;
        if (headers.location !== undefined) {
          answered = true;
          response.resume();
          const again = plainRequest(headers.location, { method: "POST", headers: request.getHeaders() });
          return resolve(exchange(again, body));
        }`,
      ),
    ],
  },
  {
    name: "body logged",
    inSmall: true,
    room: "accept",
    tests: "test/receiver/secrecy.test.ts",
    caughtBy: "leak",
    says: "log said ",
    edits: [
      edit(
        "src/receiver/http.ts",
        '{ code: "quarantined", reason, slot }',
        '{ code: "quarantined", reason, slot, body: Buffer.from(quarantine.raw).toString() }',
      ),
    ],
  },
  {
    name: "late event dropped",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: LOST,
    edits: [
      edit(
        "src/stores/memory/batch.ts",
        "const lane = known ?? addLane(state, incoming);",
        `const lane = known ?? addLane(state, incoming);
        if (lane.cursor !== null && incoming.sequence < lane.cursor) {
          return { outcome: "late", event: state.lastEventId, lane: lane.id };
        }`,
      ),
    ],
  },
  {
    // It is counted as one, and waits for its next attempt like any other.
    name: "dead letters retried",
    inSmall: true,
    room: "settle",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "had given it up",
    edits: [
      edit(
        "src/inbox/lane.ts",
        "return this.#die(lane, event, request.onDead);",
        'port.tally.count("deadLettered"); return this.rearm(lane);',
      ),
    ],
  },
  {
    // An older event that comes while a newer one is in its handler is not late, and goes to `on` behind it.
    name: "cursor moved at the end",
    inSmall: true,
    room: "claim",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "inversion: ",
    edits: [
      edit(
        "src/inbox/lane.ts",
        'if (!event.forced || port.order(lane) !== "sequence") moveCursor(lane, event.sequence);',
        'if (!event.forced && port.order(lane) !== "position") moveCursor(lane, event.sequence);',
      ),
      edit(
        "src/inbox/lane.ts",
        'port.finish(lane, event, "done", request.outcome);',
        `port.finish(lane, event, "done", request.outcome);
        if (port.order(lane) === "position" && !event.late && !event.forced) moveCursor(lane, event.sequence);`,
      ),
    ],
  },
  {
    name: "ties reversed",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "crash",
    says: "inversion",
    edits: [
      edit(
        "src/inbox/lane.ts",
        'order === "position" ? this.#sequenceAt(lane, given)',
        'order === "position" ? given * PLACES + PLACES - 1 - (id % PLACES)',
      ),
    ],
  },
  {
    // Falling positions delay each other without an end.
    name: "hold-back of the lowest",
    inSmall: true,
    room: "claim",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "though it is due at",
    edits: [edit("src/inbox/gap.ts", "const gapSince = lane.heldSince();", "const gapSince = head.acceptedAt;")],
  },
  {
    name: "positions without gaps",
    inSmall: true,
    room: "claim",
    tests: "test/inbox/gap.test.ts",
    caughtBy: "sim",
    says: "where nothing can be",
    edits: [
      edit(
        "src/inbox/gap.ts",
        'if (lane.order === "position" && head.gapWaitMs > 0) return',
        "if (lane.order === null) return",
      ),
      edit(
        "src/inbox/gap.ts",
        'if (lane.order !== "sequence" ||',
        'if (lane.order === "arrival" || lane.order === null ||',
      ),
    ],
  },
  {
    name: "identity without the type",
    room: "accept",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "(acknowledged and not stored)",
    edits: [
      edit("src/stores/sqlite/schema.ts", "on oncehook_event (lane, seq, kind);", "on oncehook_event (lane, seq);"),
      edit(
        "src/stores/sqlite/statements.ts",
        "from oncehook_event where lane = ? and seq = ? and kind = ?`",
        "from oncehook_event where lane = ? and seq = ? and ? >= 0`",
      ),
    ],
  },
  {
    // What has the cursor's own sequence is late to it.
    name: "cursor takes an equal sequence",
    room: "accept",
    tests: "test/stores/memory.test.ts",
    caughtBy: "sim",
    says: "not late: ",
    edits: [
      edit(
        "src/inbox/lane.ts",
        "const below = order !== null && lane.cursor !== null && sequence < lane.cursor;",
        "const below = order !== null && lane.cursor !== null && sequence <= lane.cursor;",
      ),
    ],
  },
  {
    name: "token not checked on SQLite",
    room: "settle",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "was recorded as failed, and no handler saw it",
    edits: [
      edit(
        "src/stores/sqlite/lanes.ts",
        "const event = lanes.rules.heldEvent(lane, ref);",
        "const event = lanes.rules.heldEvent(lane, { ...ref, token: lane?.token ?? ref.token });",
      ),
    ],
  },
  {
    name: "settled before the commit",
    room: "settle",
    tests: "test/inbox/batcher.test.ts",
    caughtBy: "sim",
    says: "was reported, and is not stored",
    edits: [
      edit(
        "src/inbox/group-commit.ts",
        "const claim = this.#driver.nextClaim();",
        `const claim = this.#driver.nextClaim();
        for (const { done } of batch.settles) done({ status: "settled" });`,
      ),
      edit("src/inbox/group-commit.ts", "guard(() => queued.done(settled));", ""),
    ],
  },
  {
    name: "backoff off by one",
    room: "claim",
    tests: "test/inbox/backoff.test.ts",
    caughtBy: "sim",
    says: " not within ",
    edits: [
      edit(
        "src/inbox/gap.ts",
        "const wait = WAITS[Math.min(Math.max(attempt, 1), WAITS.length) - 1] ?? HOUR;",
        "const wait = WAITS[Math.min(Math.max(attempt, 1), WAITS.length - 1)] ?? HOUR;",
      ),
    ],
  },
  {
    name: "effects of a lost lease",
    room: "effects",
    tests: "test/stores/sqlite.test.ts",
    caughtBy: "sim",
    says: "double: ",
    edits: [edit("src/stores/sqlite/lanes.ts", "if (heldIn(lanes, lease) === null) return LOST;", "")],
  },
  {
    name: "effects of a failed attempt stay",
    room: "effects",
    tests: "test/stores/sqlite-effects.test.ts",
    caughtBy: "sim",
    says: "double: ",
    edits: [
      edit(
        "src/stores/sqlite/lanes.ts",
        "if (!ends(work, rollbackTo, release)) throw",
        "if (!ends(work, release)) throw",
      ),
    ],
  },
  {
    name: "a refused attempt counts as delivered",
    inSmall: true,
    room: "emulator",
    tests: "test/emulator/retries.test.ts",
    caughtBy: "e2e",
    says: "lost msg_",
    edits: [
      edit(
        "src/emulator/delivery/attempt.ts",
        "return status !== null && status >= 200 && status <= 299;",
        "return status !== null && status >= 200 && status <= 599;",
      ),
    ],
  },
];

/** In the order of the matrix. */
export const BUGS: readonly Bug[] = [...BY_HAND, ...MUTANTS.map((mutant): Bug => ({ ...mutant, madeBy: "mutation" }))];

/** The changes of a bug in the sources below `root`. @throws where no place has the name of a mutant */
export function editsOf(root: string, { room, name, edits }: Bug): readonly Edit[] {
  return edits ?? [mutantNamed(root, room, name).edit];
}

function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

/** Bugs of the kind that receivers of webhooks have, each as a change of our own sources, and who must find it. */

/** A change of one file, in which `find` must stand exactly once. */
export interface Edit {
  /** From the repository's root. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Bug {
  readonly name: string;
  /** The programme, as in `npm run prove -- NAME --small`. */
  readonly caughtBy: string;
  /** A part of the line that it must say: another failure would show something else. */
  readonly says: string;
  readonly edits: readonly Edit[];
}

const LOST = "(acknowledged and not stored)";
const UNSIGNED = "was accepted, and nobody signed it";

export const BUGS: readonly Bug[] = [
  {
    name: "NORMAL sync",
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
    caughtBy: "e2e",
    says: "twice msg_",
    edits: [
      edit(
        "src/service/source.ts",
        "const toStore = () => newEvent(event, body, { signedAt, trace }, gapWaitMs);",
        `const signature = claimed.timestamp === null ? [] : (claimed.candidates[0] ?? []);
        const toStore = (): NewEvent => ({
          ...newEvent(event, body, { signedAt, trace }, gapWaitMs),
          lane: { apiClientId: "", tag: "unlaned", messageId: Buffer.from(signature).toString("hex") },
          sequence: 0,
        });`,
      ),
    ],
  },
  {
    name: "prefix compare",
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
    caughtBy: "clock",
    says: "double: ",
    edits: [
      edit("src/receiver/options.ts", "value?.identitiesMs, 30 * DAY_MS", "value?.identitiesMs, DAY_MS / 144"),
      edit("src/receiver/options.ts", "const shortest = toleranceMs + DAY_MS;", "const shortest = 0 * toleranceMs;"),
    ],
  },
  {
    name: "no fencing",
    caughtBy: "sim",
    says: "double: ",
    edits: [
      edit(
        "src/inbox/lane.ts",
        "lane.leased !== ref.event || lane.epoch !== ref.epoch || lane.holder !== holder",
        'holder === ""',
      ),
      edit("src/inbox/lane.ts", 'return event?.state === "pending" ? event : null;', "return event;"),
    ],
  },
  {
    name: "future timestamps allowed",
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
    caughtBy: "fuzz",
    says: 'was told {"error":"invalid_event"} before it was verified',
    edits: [
      edit(
        "src/receiver/body-limits.ts",
        "const match = matchWith(keyring)",
        `if (!parseEvent(bytes).ok) return refused("signature_mismatch", answers.UNPROCESSABLE);
        const match = matchWith(keyring)`,
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
    caughtBy: "fuzz",
    says: "(timestamp, several) was accepted, and nobody signed it",
    edits: [edit("src/sources/headers.ts", 'value.length > 0 ? value.join(", ")', "value.length > 0 ? value[0]")],
  },
  {
    name: "redirects followed",
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
    caughtBy: "sim",
    says: "after event",
    edits: [
      edit(
        "src/inbox/lane.ts",
        "if (!outOfPlace) moveCursor(lane, event.sequence);",
        'if (!outOfPlace && port.order(lane) !== "position") moveCursor(lane, event.sequence);',
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
    caughtBy: "sim",
    says: "though it is due at",
    edits: [edit("src/inbox/gap.ts", "const gapSince = lane.heldSince();", "const gapSince = head.acceptedAt;")],
  },
  {
    name: "positions without gaps",
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
];

function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}
